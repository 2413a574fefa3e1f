// Runs a kernel test once per instruction set that this CPU supports.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/instruction_set.h"

namespace muster::kernels {

// fn(name); the best instruction set is chosen again afterwards.
template <class Fn>
void ForEachInstructionSet(const Fn& fn) {
  const auto names = SupportedInstructionSets();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(ForceInstructionSet(name).ok());
    ASSERT_EQ(CurrentInstructionSet(), name);
    fn(name);
  }
  ASSERT_TRUE(ForceInstructionSet(names.back()).ok());
}

}  // namespace muster::kernels
