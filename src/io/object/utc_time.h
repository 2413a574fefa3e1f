// Times as signatures write them, in UTC.
#pragma once

#include <cstdint>
#include <string>

namespace muster::io {

std::string BasicIsoTime(int64_t unix_seconds);  // 20150830T123600Z
std::string HttpDate(int64_t unix_seconds);  // Sun, 30 Aug 2015 12:36:00 GMT

}  // namespace muster::io
