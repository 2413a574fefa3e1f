#include "formats/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace muster::formats {

Status Cursor::Error(const std::string& message) const {
  return Corrupt(
      fmt::format("{}: at offset {}: {}", file_.path(), offset_, message));
}

Status Cursor::CheckCount(uint64_t count, uint64_t min_bytes,
                          const char* what) const {
  if (count <= bytes_left() / min_bytes) return {};
  return Error(fmt::format(
      "found {} {}, expected at most the {} that the {} bytes left can hold",
      count, what, bytes_left() / min_bytes, bytes_left()));
}

Result<std::string> Cursor::ReadString(uint64_t max_bytes, const char* what) {
  ASSIGN_OR_RETURN(const auto length, Read<uint64_t>(what));
  if (length > max_bytes) {
    return Error(fmt::format("{} is {} bytes long, expected at most {}", what,
                             length, max_bytes));
  }
  RETURN_IF_ERROR(CheckCount(length, 1, what));
  std::string text(length, '\0');
  RETURN_IF_ERROR(ReadBytes(text.data(), length, what));
  return text;
}

Status Cursor::ReadBytes(void* dst, size_t n, const char* what) {
  if (n > bytes_left()) {
    return Error(
        fmt::format("the file ends inside {}: expected {} bytes, {} "
                    "are left",
                    what, n, bytes_left()));
  }
  auto* out = static_cast<std::byte*>(dst);
  while (n > 0) {
    const bool buffered =
        offset_ >= buffer_offset_ && offset_ < buffer_offset_ + buffer_.size();
    if (!buffered) {
      constexpr uint64_t kBufferBytes = 1 << 16;
      buffer_.resize(std::min(kBufferBytes, bytes_left()));
      buffer_offset_ = offset_;
      RETURN_IF_ERROR(file_.ReadAt(offset_, buffer_));
    }
    const size_t at = offset_ - buffer_offset_;
    const size_t count = std::min(n, buffer_.size() - at);
    std::memcpy(out, buffer_.data() + at, count);
    out += count;
    offset_ += count;
    n -= count;
  }
  return {};
}

}  // namespace muster::formats
