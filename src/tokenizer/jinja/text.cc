#include "tokenizer/jinja/text.h"

#include <algorithm>

namespace muster::jinja {
namespace {

// Marks never outgrow the text by much. No conversation has so many pieces.
constexpr size_t kMaxRanges = size_t{1} << 18;

}  // namespace

Text Text::FromInput(std::string bytes) {
  Text text(std::move(bytes));
  text.MarkInput(0, text.size());
  return text;
}

void Text::MarkInput(size_t begin, size_t end) {
  if (begin == end) return;
  const auto first = static_cast<uint32_t>(begin);
  const auto last = static_cast<uint32_t>(end);
  // With too many ranges, template text between two of them is given up.
  const bool extends = !input_.empty() && (input_.back().end == first ||
                                           input_.size() >= kMaxRanges);
  if (extends) {
    input_.back().end = last;
  } else {
    input_.push_back({first, last});
  }
}

void Text::Append(const Text& other) { AppendPart(other, 0, other.size()); }

void Text::AppendMarked(std::string_view bytes, bool from_input) {
  const size_t begin = size();
  bytes_ += bytes;
  if (from_input) MarkInput(begin, size());
}

void Text::AppendPart(const Text& other, size_t begin, size_t end) {
  const size_t shift = size();
  bytes_.append(other.bytes_, begin, end - begin);
  auto range =
      std::partition_point(other.input_.begin(), other.input_.end(),
                           [&](const ByteRange& r) { return r.end <= begin; });
  for (; range != other.input_.end() && range->begin < end; ++range) {
    const size_t from = std::max<size_t>(range->begin, begin);
    const size_t to = std::min<size_t>(range->end, end);
    MarkInput(from - begin + shift, to - begin + shift);
  }
}

Text Text::Part(size_t begin, size_t end) const {
  Text part;
  part.AppendPart(*this, begin, end);
  return part;
}

}  // namespace muster::jinja
