// A string that remembers which of its bytes a user gave. Control tokens may
// only be read from bytes that the template made (CASES K03), so every string
// operation of the interpreter carries this along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::jinja {

// Longest string, in bytes, that a template may hold or print.
inline constexpr size_t kMaxTextBytes = size_t{8} << 20;

// Bytes [begin, end) of a Text.
struct ByteRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// UTF-8. A plain value; no operation fails. Callers keep it below
// kMaxTextBytes (Limits::CheckText).
class Text {
 public:
  Text() = default;
  // All bytes made by the template.
  explicit Text(std::string bytes) : bytes_(std::move(bytes)) {}
  static Text FromInput(std::string bytes);

  const std::string& bytes() const { return bytes_; }
  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  // Sorted, apart from each other, none empty. Where there would be too many
  // of them, more is marked than was given, never less.
  const std::vector<ByteRange>& input_ranges() const { return input_; }
  bool has_input() const { return !input_.empty(); }

  void Append(const Text& other);
  void Append(std::string_view template_bytes) { bytes_ += template_bytes; }
  // Bytes [begin, end) of `other`. REQUIRES: begin <= end <= other.size().
  void AppendPart(const Text& other, size_t begin, size_t end);
  // As if given by the user when `from_input`.
  void AppendMarked(std::string_view bytes, bool from_input);

  Text Part(size_t begin, size_t end) const;

 private:
  void MarkInput(size_t begin, size_t end);

  std::string bytes_;
  std::vector<ByteRange> input_;
};

}  // namespace muster::jinja
