// What a tokenizer is made from: one plain description that both kinds of
// model file (GGUF metadata, tokenizer.json) are read into. Nothing in it has
// been compiled or indexed yet; MakeTokenizer (tokenizer.h) does that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_id.h"

namespace muster::tokenizer {

// The numbers are those of tokenizer.ggml.token_type.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // steers the model; plain text never becomes one
  kUserDefined = 4,  // taken whole from any text, before words are split
  kUnused = 5,
  kByte = 6,  // "<0x0A>": one byte that no other token covers
};

enum class Algorithm {
  kMergeRanks,   // BPE with a list of merges, earliest first
  kMergeScores,  // BPE of SentencePiece: the best scored neighbour pair first
  kUnigram,      // the segmentation with the greatest sum of scores
};

// `result` replaces `left` followed by `right`. The place in the list is the
// rank: lower goes first.
struct Merge {
  TokenId left = kNoToken;
  TokenId right = kNoToken;
  TokenId result = kNoToken;
};

// A token that is looked for in the text itself.
struct AddedToken {
  TokenId id = kNoToken;
  bool lstrip = false;       // swallows the white space before it
  bool rstrip = false;       // and behind it
  bool single_word = false;  // only where no word character touches it
  bool normalized = false;   // looked for after normalization
};

enum class NormalizerKind {
  kNfc,
  kNfd,
  kNfkc,
  kNfkd,
  kLowercase,
  kReplace,    // `pattern` (literal or regex) by `content`
  kPrepend,    // `content` before a text that is not empty
  kStripLeft,  // white space at the ends
  kStripRight,
  kCollapseSpaces,  // runs of U+0020 to one, none at the ends
};

struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::kNfc;
  std::string pattern = {};
  bool is_regex = false;
  std::string content = {};
};

// What becomes of the text that a split pattern matches.
enum class SplitBehavior {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous,
};

enum class PreTokenizerKind {
  kSplit,        // by `pattern`
  kPrefixSpace,  // U+0020 before a piece that does not begin with one
  kMetaspace,    // spaces to U+2581, see `prepend` and `split`
};

enum class Prepend { kNever, kFirst, kAlways };

struct PreTokenizerStep {
  PreTokenizerKind kind = PreTokenizerKind::kSplit;
  std::string pattern = {};
  bool is_regex = true;
  bool invert = false;  // the pattern matches what is kept, not the cuts
  SplitBehavior behavior = SplitBehavior::kIsolated;
  Prepend prepend = Prepend::kNever;
  bool split = false;  // kMetaspace: cut before each U+2581
};

struct TokenizerSpec {
  std::string name;  // "qwen2": as the file names it, for people to read
  Algorithm algorithm = Algorithm::kMergeRanks;

  // One per id, real bytes: where `byte_level`, the file's printable alphabet
  // has been undone. Not unique: entries that are never produced may repeat.
  std::vector<std::string> tokens;
  std::vector<TokenKind> kinds;  // as many as tokens
  std::vector<float> scores;     // as many as tokens, or none (kMergeRanks)
  std::vector<Merge> merges;     // kMergeRanks
  std::vector<AddedToken> added;

  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;

  bool byte_level = false;     // words are cut into bytes, else into characters
  bool byte_fallback = false;  // kByte tokens stand in for what is unknown
  bool fuse_unknown = false;   // neighbouring unknown characters give one token
  bool ignore_merges = false;  // a word that is a token is taken as it is
  bool metaspace = false;      // U+2581 in a token is a space in the text
  // GGUF of SentencePiece models: a space goes before the text and before what
  // follows a control token.
  bool prefix_after_special = false;
  // The first space of a text is an artefact of encoding and not decoded.
  bool strip_first_space = false;

  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId unknown = kNoToken;
  TokenId pad = kNoToken;
  std::vector<TokenId> prefix;  // put before a text when asked to: BOS, mostly
  std::vector<TokenId> suffix;  // and behind it
  std::vector<TokenId> end_of_generation;

  // What a person should be told about guesses that had to be made.
  std::vector<std::string> warnings;
};

}  // namespace muster::tokenizer
