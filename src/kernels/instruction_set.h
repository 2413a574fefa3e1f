// Which instructions the kernels use. Chosen from the CPU at first use; a test,
// `--isa` or MUSTER_ISA can force a lesser one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::kernels {

// "avx2", "avx512" (F, BW, DQ, VL), "avx512vnni" and "avx512bf16" (VNNI and
// BF16) are the names in use.
// What this CPU supports and this build contains, best last.
std::vector<std::string> SupportedInstructionSets();

// The one that the kernels run with now.
std::string CurrentInstructionSet();

// Makes every kernel use `name` from now on. Fails with a message that lists
// the supported ones when this CPU lacks it. Not while kernels are running.
Status ForceInstructionSet(std::string_view name);

// True when products of BF16 pairs (vdpbf16ps) are part of the instruction set
// in use. Highway 1.0 knows no target with them: kernels that have a way for
// them ask.
bool UsesBFloatProducts();

// An error that says what is missing when this CPU is below AVX2 with FMA and
// F16C; uses no instruction above the x86-64 baseline. Call it first in main().
Status CheckCpu();

}  // namespace muster::kernels
