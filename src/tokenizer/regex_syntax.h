// The patterns of tokenizer files are written for Oniguruma. PCRE2 reads nearly
// the same language; where it does not, the pattern is rewritten or refused,
// never read differently.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::tokenizer {

// kUnsupported names the construct that has no counterpart.
Result<std::string> ToPcre2(std::string_view oniguruma);

}  // namespace muster::tokenizer
