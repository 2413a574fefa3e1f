#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"

namespace muster::cli {

int Fail(const Status& status) {
  fmt::print(stderr, "muster: {}\n", status.message());
  return status.code() == Code::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace muster::cli
