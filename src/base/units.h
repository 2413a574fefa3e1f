// Numbers for people: "4.2 GiB", "7.7 B", "1.3 s".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster {

// Powers of 1024: "512 B", "1.5 KiB", "4.2 GiB".
std::string FormatBytes(uint64_t size_bytes);

// "8G", "1.5 GiB", "800m", "4096": powers of 1024, whatever the unit is called.
// Fails with kInvalidArgument on anything else, naming the forms.
Result<uint64_t> ParseBytes(std::string_view text);

// Powers of 1000: "950", "28.8 M", "7.7 B".
std::string FormatCount(uint64_t count);

// "0.8 ms", "3.2 s", "2 min 05 s".
std::string FormatSeconds(double seconds);

}  // namespace muster
