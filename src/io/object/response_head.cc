#include "io/object/response_head.h"

#include <charconv>

#include "io/object/ascii.h"

namespace muster::io {
namespace {

std::optional<uint64_t> ParseNumber(std::string_view digits) {
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

void SetNumber(std::string_view value, std::optional<uint64_t>* field,
               bool* is_malformed) {
  const auto number = ParseNumber(value);
  // Two that differ are an attack or a broken proxy.
  if (!number || (field->has_value() && *field != number)) *is_malformed = true;
  *field = number;
}

std::string_view WithoutQuotes(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    return value.substr(1, value.size() - 2);
  }
  return value;
}

// Of an error's code, what can be shown.
std::string Word(std::string_view value) {
  std::string out;
  for (const char c : value.substr(0, 64)) {
    if (IsAlnum(c) || c == '-' || c == '_') out += c;
  }
  return out;
}

int ParseStatus(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos) return 0;
  const auto status = ParseNumber(line.substr(space + 1, 3));
  return status && *status >= 100 && *status <= 999 ? static_cast<int>(*status)
                                                    : 0;
}

void SetContentRange(std::string_view value, ResponseHead* head) {
  if (head->content_range) head->is_malformed = true;
  head->content_range = ParseContentRange(value);
  if (!head->content_range) head->is_malformed = true;
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view value) {
  if (Lower(value.substr(0, 6)) != "bytes ") return std::nullopt;
  value = Trim(value.substr(6));
  const size_t slash = value.find('/');
  if (slash == value.npos) return std::nullopt;
  const std::string_view span = value.substr(0, slash);
  const std::string_view total = value.substr(slash + 1);
  ContentRange range;
  if (total != "*") {
    range.total = ParseNumber(total);
    if (!range.total) return std::nullopt;
  }
  if (span == "*") {
    return range.total ? std::optional(range) : std::nullopt;
  }
  const size_t dash = span.find('-');
  if (dash == span.npos) return std::nullopt;
  range.first = ParseNumber(span.substr(0, dash));
  range.last = ParseNumber(span.substr(dash + 1));
  const bool ordered = range.first && range.last && *range.first <= *range.last;
  const bool inside = !range.total || (ordered && *range.last < *range.total);
  return ordered && inside ? std::optional(range) : std::nullopt;
}

void AddHeaderLine(std::string_view line, ResponseHead* head) {
  if (line.substr(0, 5) == "HTTP/") {
    *head = {.status = ParseStatus(line)};
    return;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return;
  const std::string name = Lower(line.substr(0, colon));
  const std::string_view value = Trim(line.substr(colon + 1));
  bool* malformed = &head->is_malformed;
  if (name == "content-length") {
    SetNumber(value, &head->content_length, malformed);
  } else if (name == "content-range") {
    SetContentRange(value, head);
  } else if (name == "x-linked-size") {
    SetNumber(value, &head->linked_size, malformed);
  } else if (name == "retry-after") {
    head->retry_after_seconds = ParseNumber(value);  // or a date: ignored
  } else if (name == "etag") {
    head->etag = value;
  } else if (name == "last-modified") {
    head->last_modified = value;
  } else if (name == "location") {
    head->location = value;
  } else if (name == "content-encoding") {
    head->content_encoding = Lower(value);
  } else if (name == "x-linked-etag") {
    head->linked_etag = WithoutQuotes(value);
  } else if (name == "x-amz-bucket-region") {
    head->bucket_region = Word(value);
  } else if (name == "x-ms-error-code" || name == "x-error-code") {
    head->error_code = Word(value);
  }
}

}  // namespace muster::io
