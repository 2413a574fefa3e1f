// Status line and headers of a response: what of them counts here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::io {

struct ContentRange {
  std::optional<uint64_t> first, last;  // none: "bytes */TOTAL"
  std::optional<uint64_t> total;        // none: "*"
};

// "bytes 0-99/1234", "bytes 0-99/*" or "bytes */1234".
std::optional<ContentRange> ParseContentRange(std::string_view value);

struct ResponseHead {
  int status = 0;
  std::string etag;  // with its quotes, and W/ of a weak one
  std::string last_modified;
  std::string location;
  std::string content_encoding;
  std::string error_code;     // x-ms-error-code, x-error-code
  std::string bucket_region;  // x-amz-bucket-region
  std::string linked_etag;    // x-linked-etag, without quotes
  std::optional<uint64_t> linked_size;
  std::optional<uint64_t> content_length;
  std::optional<uint64_t> retry_after_seconds;
  std::optional<ContentRange> content_range;
  bool is_malformed = false;  // a header that counts is not what it should be
};

// Takes one line as it came, with or without its line end. A status line
// ("HTTP/...") starts anew: of several responses the last counts.
void AddHeaderLine(std::string_view line, ResponseHead* head);

}  // namespace muster::io
