// BPE with a list of merges: again and again the pair of neighbours that stands
// first in the list becomes one, the leftmost of equal pairs first.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "base/check.h"
#include "tokenizer/flat_map.h"
#include "tokenizer/unicode.h"
#include "tokenizer/unknown.h"
#include "tokenizer/word_encoder.h"

namespace muster::tokenizer {
namespace {

constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

struct RankedMerge {
  uint32_t rank = kNoRank;
  TokenId result = kNoToken;
};

class MergeTable {
 public:
  explicit MergeTable(std::span<const Merge> merges) : table_(merges.size()) {
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const auto& [left, right, result] = merges[rank];
      table_.Insert(Key(left, right),
                    (rank << 32) | static_cast<uint32_t>(result));
    }
  }

  RankedMerge Find(TokenId left, TokenId right) const {
    const uint64_t* found = table_.Find(Key(left, right));
    if (found == nullptr) return {};
    return {.rank = static_cast<uint32_t>(*found >> 32),
            .result = static_cast<TokenId>(*found & 0xFFFFFFFFu)};
  }

 private:
  // Ids are not negative: the key is never FlatMap::kNoKey.
  static uint64_t Key(TokenId left, TokenId right) {
    return (uint64_t{static_cast<uint32_t>(left)} << 32) |
           static_cast<uint32_t>(right);
  }

  FlatMap table_;
};

// Merges in place in O(n²) with no memory but `ids`; returns the new count.
size_t MergeShort(const MergeTable& merges, std::span<TokenId> ids) {
  constexpr size_t kMax = 32;
  CHECK_LE(ids.size(), kMax);
  std::array<RankedMerge, kMax> pairs;
  size_t count = ids.size();
  for (size_t i = 0; i + 1 < count; ++i) {
    pairs[i] = merges.Find(ids[i], ids[i + 1]);
  }
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) break;
    ids[best] = pairs[best].result;
    --count;
    std::copy(ids.data() + best + 2, ids.data() + count + 1,
              ids.data() + best + 1);
    std::copy(pairs.data() + best + 1, pairs.data() + count,
              pairs.data() + best);
    if (best > 0) pairs[best - 1] = merges.Find(ids[best - 1], ids[best]);
    if (best + 1 < count) pairs[best] = merges.Find(ids[best], ids[best + 1]);
  }
  return count;
}

// The same for any length: the pairs in a heap, the ids in a linked list.
class LongMerger {
 public:
  LongMerger(const MergeTable& merges, std::span<const TokenId> ids)
      : merges_(merges), symbols_(ids.size()) {
    for (size_t i = 0; i < ids.size(); ++i) {
      symbols_[i] = {.id = ids[i], .prev = i - 1, .next = i + 1, .pair = {}};
    }
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      symbols_[i].pair = merges_.Find(ids[i], ids[i + 1]);
      if (symbols_[i].pair.rank != kNoRank) heap_.push_back(Entry(i));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  void Run(std::vector<TokenId>& out) {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const auto [rank, at] = heap_.back();
      heap_.pop_back();
      // Else something else has become of the pair in the meantime.
      if (symbols_[at].pair.rank == rank) MergeAt(at);
    }
    for (size_t i = 0; i < symbols_.size(); i = symbols_[i].next) {
      out.push_back(symbols_[i].id);
    }
  }

 private:
  struct Symbol {
    TokenId id;
    size_t prev;       // wraps round before the first
    size_t next;       // symbols_.size() behind the last
    RankedMerge pair;  // with the next; no rank once merged into the one before
  };

  std::pair<uint32_t, size_t> Entry(size_t at) const {
    return {symbols_[at].pair.rank, at};
  }

  void MergeAt(size_t at) {
    Symbol& left = symbols_[at];
    Symbol& right = symbols_[left.next];
    left.id = left.pair.result;
    left.next = right.next;
    right.pair = {};
    if (left.next < symbols_.size()) symbols_[left.next].prev = at;
    Pair(at);
    if (left.prev < symbols_.size()) Pair(left.prev);
  }

  void Pair(size_t at) {
    Symbol& symbol = symbols_[at];
    symbol.pair = {};
    if (symbol.next >= symbols_.size()) return;
    symbol.pair = merges_.Find(symbol.id, symbols_[symbol.next].id);
    if (symbol.pair.rank == kNoRank) return;
    heap_.push_back(Entry(at));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  std::vector<std::pair<uint32_t, size_t>> heap_;
};

class RankEncoder final : public WordEncoder {
 public:
  explicit RankEncoder(const TokenizerSpec& spec)
      : merges_(spec.merges),
        words_(MakeWordTable(spec)),
        unknown_(spec),
        byte_level_(spec.byte_level),
        ignore_merges_(spec.ignore_merges) {
    bytes_.fill(kNoToken);
    for (const auto& [text, id] : words_) {
      if (text.size() == 1) bytes_[static_cast<unsigned char>(text[0])] = id;
    }
  }

  void Encode(std::string_view word, std::vector<TokenId>& out) const override {
    if (ignore_merges_) {
      const auto it = words_.find(word);
      if (it != words_.end()) {
        out.push_back(it->second);
        return;
      }
    }
    const size_t start = out.size();
    AppendSymbols(word, out);
    const auto symbols = std::span(out).subspan(start);
    if (symbols.size() < 2) return;
    if (symbols.size() <= 32) {
      out.resize(start + MergeShort(merges_, symbols));
      return;
    }
    LongMerger merger(merges_, symbols);
    out.resize(start);
    merger.Run(out);
  }

 private:
  void AppendSymbols(std::string_view word, std::vector<TokenId>& out) const {
    bool after_unknown = false;
    for (size_t pos = 0; pos < word.size();) {
      const size_t size = byte_level_ ? 1 : CharacterAt(word, pos).size;
      const std::string_view symbol = word.substr(pos, size);
      const TokenId id = FindSymbol(symbol);
      if (id != kNoToken) out.push_back(id);
      after_unknown =
          id == kNoToken && unknown_.Append(symbol, after_unknown, out);
      pos += size;
    }
  }

  TokenId FindSymbol(std::string_view symbol) const {
    if (symbol.size() == 1)
      return bytes_[static_cast<unsigned char>(symbol[0])];
    const auto it = words_.find(symbol);
    return it == words_.end() ? kNoToken : it->second;
  }

  MergeTable merges_;
  WordTable words_;
  std::array<TokenId, 256> bytes_;
  UnknownCharacters unknown_;
  bool byte_level_;
  bool ignore_merges_;
};

}  // namespace

Result<std::unique_ptr<WordEncoder>> MakeRankEncoder(
    const TokenizerSpec& spec) {
  const auto is_token = [&](TokenId id) {
    return id >= 0 && static_cast<size_t>(id) < spec.tokens.size();
  };
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const Merge& merge = spec.merges[i];
    if (!is_token(merge.left) || !is_token(merge.right) ||
        !is_token(merge.result)) {
      return Corrupt(fmt::format("merge {} names no token", i));
    }
  }
  return std::unique_ptr<WordEncoder>(std::make_unique<RankEncoder>(spec));
}

}  // namespace muster::tokenizer
