// Unigram: of all ways to cut a word into tokens the one whose scores (log
// probabilities) have the greatest sum. Source: SentencePiece, Kudo 2018.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tokenizer/trie.h"
#include "tokenizer/unicode.h"
#include "tokenizer/unknown.h"
#include "tokenizer/word_encoder.h"

namespace muster::tokenizer {
namespace {

// How much worse than the worst token an unknown character is.
constexpr double kUnknownPenalty = 10.0;

Trie MakeTrie(const TokenizerSpec& spec) {
  const WordTable words = MakeWordTable(spec);
  const std::vector<Trie::Entry> entries(words.begin(), words.end());
  return Trie(entries);
}

class UnigramEncoder final : public WordEncoder {
 public:
  explicit UnigramEncoder(const TokenizerSpec& spec)
      : trie_(MakeTrie(spec)), scores_(spec.scores), unknown_(spec) {
    float worst = 0;
    for (const float score : scores_) worst = std::min(worst, score);
    unknown_score_ = worst - kUnknownPenalty;
  }

  void Encode(std::string_view word, std::vector<TokenId>& out) const override {
    const std::vector<Best> best = Search(word);
    std::vector<Best> path;  // from the end
    for (size_t end = word.size(); end > 0; end -= path.back().size) {
      path.push_back(best[end]);
    }
    size_t pos = 0;
    bool after_unknown = false;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      const bool is_known = it->id != kNoToken;
      if (is_known) out.push_back(it->id);
      after_unknown = !is_known && unknown_.Append(word.substr(pos, it->size),
                                                   after_unknown, out);
      pos += it->size;
    }
  }

 private:
  // The best way to reach a byte of the word: by a token, or kNoToken for an
  // unknown character, of `size` bytes.
  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    TokenId id = kNoToken;
    size_t size = 0;
  };

  std::vector<Best> Search(std::string_view word) const {
    std::vector<Best> best(word.size() + 1);
    best[0].score = 0;
    for (size_t pos = 0; pos < word.size();) {
      const size_t character = CharacterAt(word, pos).size;
      bool has_single = false;
      const auto reach = [&](size_t size, TokenId id, double score) {
        Best& there = best[pos + size];
        const double sum = best[pos].score + score;
        if (there.size != 0 && sum <= there.score) return;
        there = {.score = sum, .id = id, .size = size};
      };
      trie_.ForEachPrefix(word.substr(pos), [&](size_t size, TokenId id) {
        has_single |= size == character;
        reach(size, id, scores_[static_cast<size_t>(id)]);
      });
      if (!has_single) reach(character, kNoToken, unknown_score_);
      pos += character;
    }
    return best;
  }

  Trie trie_;
  const std::vector<float>& scores_;
  double unknown_score_ = 0;
  UnknownCharacters unknown_;
};

}  // namespace

Result<std::unique_ptr<WordEncoder>> MakeUnigramEncoder(
    const TokenizerSpec& spec) {
  if (spec.scores.size() != spec.tokens.size()) {
    return Corrupt("the vocabulary has no score for each token");
  }
  for (const float score : spec.scores) {
    if (!std::isfinite(score)) return Corrupt("a token's score is not finite");
  }
  return std::unique_ptr<WordEncoder>(std::make_unique<UnigramEncoder>(spec));
}

}  // namespace muster::tokenizer
