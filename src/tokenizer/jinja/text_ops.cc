#include "tokenizer/jinja/text_ops.h"

#include <algorithm>

#include "tokenizer/jinja/convert.h"

namespace muster::jinja {
namespace {

// A part is a Text and then a Value.
constexpr size_t kItemsPerPart = 3;

}  // namespace

Text Upper(const Text& text) {
  Text out;
  AppendConverted(
      text,
      [](char32_t code, std::string_view, std::string* to) {
        AppendUtf8(ToUpper(code), to);
      },
      &out);
  return out;
}

Text Lower(const Text& text) {
  Text out;
  AppendConverted(
      text,
      [](char32_t code, std::string_view, std::string* to) {
        AppendUtf8(ToLower(code), to);
      },
      &out);
  return out;
}

Text Capitalize(const Text& text) {
  Text out;
  bool first = true;
  AppendConverted(
      text,
      [&first](char32_t code, std::string_view, std::string* to) {
        AppendUtf8(first ? ToUpper(code) : ToLower(code), to);
        first = false;
      },
      &out);
  return out;
}

Text Title(const Text& text, bool (*starts_word)(char32_t previous)) {
  Text out;
  char32_t previous = ' ';
  AppendConverted(
      text,
      [&](char32_t code, std::string_view, std::string* to) {
        AppendUtf8(starts_word(previous) ? ToUpper(code) : ToLower(code), to);
        previous = code;
      },
      &out);
  return out;
}

Text Strip(const Text& text, Side side,
           const std::optional<std::string>& chars) {
  const auto taken = [&](std::string_view bytes, char32_t code) {
    if (!chars) return IsSpace(code);
    return chars->find(bytes) != std::string::npos;
  };
  size_t begin = 0;
  size_t end = 0;  // behind the last character that stays
  bool inside = side == Side::kRight;
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text.view(), pos);
    const bool is_taken = taken(text.view().substr(pos, c.size), c.code);
    pos += c.size;
    if (!inside && is_taken) begin = pos;
    if (!is_taken) {
      inside = true;
      end = pos;
    }
  }
  if (side == Side::kLeft) end = text.size();
  return text.Part(begin, std::max(begin, end));
}

Result<Text> Replace(Limits& limits, const Text& text, const Text& old_part,
                     const Text& new_part, int64_t count) {
  RETURN_IF_ERROR(limits.Scan(text.size()));
  Text out;
  size_t copied = 0;
  for (size_t pos = 0; count != 0 && pos <= text.size(); --count) {
    const size_t found = text.view().find(old_part.view(), pos);
    if (found == std::string_view::npos) break;
    out.AppendPart(text, copied, found);
    out.Append(new_part);
    RETURN_IF_ERROR(limits.Step());
    if (out.size() > kMaxTextBytes) break;
    copied = found + old_part.size();
    pos = copied;
    if (!old_part.empty()) continue;
    if (pos == text.size()) break;
    pos += CharacterAt(text.view(), pos).size;
  }
  out.AppendPart(text, copied, text.size());
  RETURN_IF_ERROR(limits.CheckText(out.size()));
  return out;
}

Result<std::vector<Text>> Split(Limits& limits, const Text& text,
                                std::string_view separator, int64_t max_splits,
                                bool from_right) {
  RETURN_IF_ERROR(limits.Allocate(text.size()));
  std::vector<Text> parts;
  if (from_right) {
    size_t end = text.size();
    for (; max_splits != 0; --max_splits) {
      const size_t found = text.view().substr(0, end).rfind(separator);
      if (found == std::string_view::npos) break;
      RETURN_IF_ERROR(limits.AllocateItems(kItemsPerPart));
      parts.push_back(text.Part(found + separator.size(), end));
      end = found;
    }
    parts.push_back(text.Part(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  size_t begin = 0;
  for (; max_splits != 0; --max_splits) {
    const size_t found = text.view().find(separator, begin);
    if (found == std::string_view::npos) break;
    RETURN_IF_ERROR(limits.AllocateItems(kItemsPerPart));
    parts.push_back(text.Part(begin, found));
    begin = found + separator.size();
  }
  parts.push_back(text.Part(begin, text.size()));
  return parts;
}

namespace {

std::vector<ByteRange> FindWords(std::string_view text) {
  std::vector<ByteRange> words;
  bool inside = false;
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text, pos);
    const bool space = IsSpace(c.code);
    const auto begin = static_cast<uint32_t>(pos);
    pos += c.size;
    if (!space && !inside) words.push_back({begin, begin});
    if (!space) words.back().end = static_cast<uint32_t>(pos);
    inside = !space;
  }
  return words;
}

}  // namespace

Result<std::vector<Text>> SplitSpaces(Limits& limits, const Text& text,
                                      int64_t max_splits, bool from_right) {
  RETURN_IF_ERROR(limits.Allocate(text.size()));
  const std::vector<ByteRange> words = FindWords(text.view());
  RETURN_IF_ERROR(limits.AllocateItems(kItemsPerPart * words.size()));
  const bool all =
      max_splits < 0 || static_cast<uint64_t>(max_splits) >= words.size();
  std::vector<Text> parts;
  if (all) {
    for (const ByteRange& w : words) parts.push_back(text.Part(w.begin, w.end));
    return parts;
  }
  const auto num_splits = static_cast<size_t>(max_splits);
  if (from_right) {
    const size_t first = words.size() - num_splits;
    parts.push_back(text.Part(0, words[first - 1].end));
    for (size_t i = first; i < words.size(); ++i) {
      parts.push_back(text.Part(words[i].begin, words[i].end));
    }
    parts[0] = Strip(parts[0], Side::kRight, std::nullopt);
    return parts;
  }
  for (size_t i = 0; i < num_splits; ++i) {
    parts.push_back(text.Part(words[i].begin, words[i].end));
  }
  parts.push_back(text.Part(words[num_splits].begin, text.size()));
  return parts;
}

Result<std::vector<Text>> SplitLines(Limits& limits, const Text& text,
                                     bool keep_ends) {
  RETURN_IF_ERROR(limits.Allocate(text.size()));
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text.view(), pos);
    const bool ends = (c.code >= 10 && c.code <= 13) ||
                      (c.code >= 28 && c.code <= 30) || c.code == 0x85 ||
                      c.code == 0x2028 || c.code == 0x2029;
    const size_t line_end = pos;
    pos += c.size;
    if (!ends) continue;
    RETURN_IF_ERROR(limits.AllocateItems(kItemsPerPart));
    if (c.code == '\r' && pos < text.size() && text.view()[pos] == '\n') ++pos;
    lines.push_back(text.Part(begin, keep_ends ? pos : line_end));
    begin = pos;
  }
  if (begin < text.size()) lines.push_back(text.Part(begin, text.size()));
  return lines;
}

Result<Text> Pad(Limits& limits, const Text& text, int64_t width, Side text_at,
                 std::string_view fill) {
  const auto length = static_cast<int64_t>(CountCharacters(text.view()));
  const int64_t missing = std::max<int64_t>(width - length, 0);
  if (missing > static_cast<int64_t>(kMaxTextBytes)) {
    return Limits::Exhausted("the template makes a text that is too long");
  }
  RETURN_IF_ERROR(limits.CheckText(text.size() +
                                   static_cast<size_t>(missing) * fill.size()));
  // str.center puts the odd one out left when the width is odd.
  int64_t left = missing / 2 + (missing & width & 1);
  if (text_at == Side::kLeft) left = 0;
  if (text_at == Side::kRight) left = missing;
  Text out;
  for (int64_t i = 0; i < left; ++i) out.Append(fill);
  out.Append(text);
  for (int64_t i = left; i < missing; ++i) out.Append(fill);
  return out;
}

}  // namespace muster::jinja
