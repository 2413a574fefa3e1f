// Where the model is that runs when none is named.
#pragma once

#include <string>

#include "base/status.h"

namespace muster::cli {

// `named` if it is not empty; else $MUSTER_DEMO_MODEL, else the demo model as
// it was installed beside this program, else as it stands in the source tree.
// Fails with kNotFound and the places that were tried.
Result<std::string> ModelOrDemo(const std::string& named);

}  // namespace muster::cli
