// BPE as SentencePiece does it: of all neighbours whose joint text is a token,
// the one with the best score becomes one, the leftmost of equals first.
#include <algorithm>
#include <cmath>

#include "tokenizer/unicode.h"
#include "tokenizer/unknown.h"
#include "tokenizer/word_encoder.h"

namespace muster::tokenizer {
namespace {

struct Symbol {
  size_t begin;
  size_t size;  // bytes; 0 once merged into the one before
  size_t prev;  // wraps round before the first
  size_t next;  // number of symbols behind the last
};

struct Candidate {
  float score;
  size_t left;  // symbol
  size_t size;  // bytes of both: tells whether either has changed since

  // Heaps put the greatest first.
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

class ScoreEncoder final : public WordEncoder {
 public:
  explicit ScoreEncoder(const TokenizerSpec& spec)
      : words_(MakeWordTable(spec)), scores_(spec.scores), unknown_(spec) {
    for (const auto& [text, id] : words_) {
      longest_ = std::max(longest_, text.size());
    }
  }

  void Encode(std::string_view word, std::vector<TokenId>& out) const override {
    std::vector<Symbol> symbols = CharactersOf(word);
    std::vector<Candidate> heap;
    const auto consider = [&](size_t left) {
      if (left >= symbols.size() || symbols[left].next >= symbols.size()) {
        return;
      }
      const Symbol& a = symbols[left];
      const size_t size = a.size + symbols[a.next].size;
      if (size > longest_) return;
      const auto it = words_.find(word.substr(a.begin, size));
      if (it == words_.end()) return;
      heap.push_back({.score = scores_[static_cast<size_t>(it->second)],
                      .left = left,
                      .size = size});
      std::push_heap(heap.begin(), heap.end());
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(i);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      const Candidate best = heap.back();
      heap.pop_back();
      Symbol& left = symbols[best.left];
      if (left.size == 0 || left.next >= symbols.size()) continue;
      Symbol& right = symbols[left.next];
      if (left.size + right.size != best.size) continue;
      left.size = best.size;
      left.next = right.next;
      right.size = 0;
      if (left.next < symbols.size()) symbols[left.next].prev = best.left;
      consider(left.prev);
      consider(best.left);
    }
    Append(word, symbols, out);
  }

 private:
  static std::vector<Symbol> CharactersOf(std::string_view word) {
    std::vector<Symbol> symbols;
    for (size_t pos = 0; pos < word.size();) {
      const size_t size = CharacterAt(word, pos).size;
      const size_t i = symbols.size();
      symbols.push_back(
          {.begin = pos, .size = size, .prev = i - 1, .next = i + 1});
      pos += size;
    }
    return symbols;
  }

  void Append(std::string_view word, const std::vector<Symbol>& symbols,
              std::vector<TokenId>& out) const {
    bool after_unknown = false;
    for (size_t i = 0; i < symbols.size(); i = symbols[i].next) {
      const std::string_view text =
          word.substr(symbols[i].begin, symbols[i].size);
      const auto it = words_.find(text);
      const bool is_known = it != words_.end();
      if (is_known) out.push_back(it->second);
      after_unknown = !is_known && unknown_.Append(text, after_unknown, out);
    }
  }

  WordTable words_;
  const std::vector<float>& scores_;
  UnknownCharacters unknown_;
  size_t longest_ = 0;
};

}  // namespace

Result<std::unique_ptr<WordEncoder>> MakeScoreEncoder(
    const TokenizerSpec& spec) {
  if (spec.scores.size() != spec.tokens.size()) {
    return Corrupt("the vocabulary has no score for each token");
  }
  for (const float score : spec.scores) {
    if (!std::isfinite(score)) return Corrupt("a token's score is not finite");
  }
  return std::unique_ptr<WordEncoder>(std::make_unique<ScoreEncoder>(spec));
}

}  // namespace muster::tokenizer
