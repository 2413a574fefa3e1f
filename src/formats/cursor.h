// A file read from front to back in small typed pieces, through one buffer.
// Each read is checked against the bytes that the file has left, so that no
// count in a header can ask for more than the file could hold.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/file.h"

namespace muster::formats {

class Cursor {
 public:
  // `file` must outlive the cursor.
  explicit Cursor(const io::File& file) : file_(file) {}

  uint64_t offset() const { return offset_; }
  uint64_t bytes_left() const { return file_.size_bytes() - offset_; }

  // A little-endian number, as x86-64 has them. `what` is for the message.
  template <class T>
  Result<T> Read(const char* what) {
    T value;
    RETURN_IF_ERROR(ReadBytes(&value, sizeof(T), what));
    return value;
  }

  // A string behind its 64-bit length. Fails when it is over `max_bytes`.
  Result<std::string> ReadString(uint64_t max_bytes, const char* what);

  // Fails unless `count` things of at least `min_bytes` each fit in what is
  // left: call it before reserving.
  Status CheckCount(uint64_t count, uint64_t min_bytes, const char* what) const;

  // kCorrupt with file and offset in front of `message`.
  Status Error(const std::string& message) const;

 private:
  Status ReadBytes(void* dst, size_t n, const char* what);

  const io::File& file_;
  uint64_t offset_ = 0;
  uint64_t buffer_offset_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace muster::formats
