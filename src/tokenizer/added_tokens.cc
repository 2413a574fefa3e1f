#include "tokenizer/added_tokens.h"

#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

Trie MakeTrie(std::span<const AddedTokens::Entry> entries) {
  std::vector<Trie::Entry> strings;
  for (size_t i = 0; i < entries.size(); ++i) {
    strings.emplace_back(entries[i].text, static_cast<TokenId>(i));
  }
  return Trie(strings);
}

// Where the character before `pos` begins. REQUIRES: pos > 0.
size_t Before(std::string_view text, size_t pos) {
  for (size_t size = 1; size <= 4 && size <= pos; ++size) {
    const Character c = CharacterAt(text, pos - size);
    if (c.valid && c.size == size) return pos - size;
  }
  return pos - 1;
}

bool IsWordAt(std::string_view text, size_t pos) {
  const Character c = CharacterAt(text, pos);
  return c.valid && IsWordCharacter(c.code);
}

bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  const bool left = begin > 0 && IsWordAt(text, Before(text, begin));
  const bool right = end < text.size() && IsWordAt(text, end);
  return !left && !right;
}

bool IsSpaceAt(std::string_view text, size_t pos) {
  const Character c = CharacterAt(text, pos);
  return c.valid && IsWhiteSpace(c.code);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<Entry> entries)
    : entries_(std::move(entries)), trie_(MakeTrie(entries_)) {}

AddedTokens::Match AddedTokens::LongestAt(std::string_view text, size_t pos,
                                          size_t control_end) const {
  Match longest;
  trie_.ForEachPrefix(text.substr(pos), [&](size_t size, TokenId index) {
    const Entry& entry = entries_[static_cast<size_t>(index)];
    if (entry.is_control && pos + size > control_end) return;
    if (entry.token.single_word && !StandsAlone(text, pos, pos + size)) return;
    longest = {.entry = &entry, .size = size};
  });
  return longest;
}

std::vector<Section> AddedTokens::Split(
    std::string_view text, std::span<const Span> control_allowed) const {
  std::vector<Section> sections;
  size_t text_begin = 0;  // of the text since the last token
  size_t allowed = 0;     // index of the first span that ends behind `pos`
  for (size_t pos = 0; pos < text.size();) {
    if (!trie_.MayBegin(text[pos])) {
      ++pos;
      continue;
    }
    while (allowed < control_allowed.size() &&
           control_allowed[allowed].end <= pos) {
      ++allowed;
    }
    const bool may_be_control = allowed < control_allowed.size() &&
                                control_allowed[allowed].begin <= pos;
    const Match match =
        LongestAt(text, pos, may_be_control ? control_allowed[allowed].end : 0);
    if (match.entry == nullptr) {
      ++pos;
      continue;
    }
    size_t begin = pos;
    size_t end = pos + match.size;
    if (match.entry->token.lstrip) {
      while (begin > text_begin && IsSpaceAt(text, Before(text, begin))) {
        begin = Before(text, begin);
      }
    }
    if (match.entry->token.rstrip) {
      while (end < text.size() && IsSpaceAt(text, end)) {
        end += CharacterAt(text, end).size;
      }
    }
    if (text_begin < begin) {
      sections.push_back({.text = text.substr(text_begin, begin - text_begin)});
    }
    sections.push_back({.text = text.substr(begin, end - begin),
                        .token = match.entry->token.id});
    pos = text_begin = end;
  }
  if (text_begin < text.size()) {
    sections.push_back({.text = text.substr(text_begin)});
  }
  return sections;
}

}  // namespace muster::tokenizer
