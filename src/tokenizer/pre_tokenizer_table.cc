#include "tokenizer/pre_tokenizer_table.h"

#include <algorithm>
#include <array>

namespace muster::tokenizer {
namespace {

// Parts that many patterns share. As macros, because only literals join.
#define CONTRACTION R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define WORD R"([^\r\n\p{L}\p{N}]?\p{L}+)"
#define SIGNS R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
// Words that end where lower case is followed by upper case.
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define BEFORE R"([^\r\n\p{L}\p{N}]?)"

using Patterns = std::string_view;

constexpr std::string_view kByteLevel =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
    R"(|\s+(?!\S)|\s+)";

constexpr Patterns kGpt2[] = {kByteLevel};
constexpr Patterns kDigitByDigit[] = {R"(\p{N})", kByteLevel};
// For files that do not name theirs.
constexpr Patterns kDefault[] = {R"([\p{P}$+<=>^~|]+)", kByteLevel, R"(\p{N}+)",
                                 "[0-9][0-9][0-9]"};
constexpr Patterns kFalcon[] = {R"([\p{P}$+<=>^~|`]+)", kByteLevel,
                                "[0-9][0-9][0-9]"};

constexpr Patterns kLlama3[] = {CONTRACTION "|" WORD R"(|\p{N}{1,3}|)" SIGNS
                                            "|" SPACES};
constexpr Patterns kQwen2[] = {CONTRACTION "|" WORD R"(|\p{N}|)" SIGNS
                                           "|" SPACES};
constexpr Patterns kQwen35[] = {CONTRACTION
                                R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
                                R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES};
constexpr Patterns kSeedCoder[] = {
    CONTRACTION "|" WORD R"(|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" SPACES};
constexpr Patterns kBailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr Patterns kLaguna[] = {R"([^\n]+|[\n]+)", kQwen2[0]};
constexpr Patterns kMiniCpm5[] = {
    R"(\p{N}{1,3})", CONTRACTION "|" WORD R"(|\p{N}+|)" SIGNS "|" SPACES};
// The original repeats greedily. Nothing follows that could take anything
// back, so the possessive form matches the same and needs no memory.
constexpr Patterns kExaoneMoe[] = {
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++)"
                R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};

constexpr Patterns kGpt4o[] = {
    BEFORE UPPER "*" LOWER "+" CONTRACTION "?|" BEFORE UPPER "+" LOWER
                 "*" CONTRACTION
                 R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES};
constexpr Patterns kTekken[] = {
    BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER
                 R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES};

// The original says [...&&[^\p{Han}]] for UPPER and LOWER without Chinese
// characters, and UPPER*LOWER+. Written so that nothing backtracks: either the
// longest run of UPPER goes on with \p{Ll}, or it is cut behind its last
// character that is both.
#define NOT_HAN_BOTH R"((?!\p{Han})[\p{Lm}\p{Lo}\p{M}])"
#define NOT_HAN_UPPER R"((?:[\p{Lu}\p{Lt}]|)" NOT_HAN_BOTH ")"
#define NOT_HAN_LOWER R"((?:\p{Ll}|)" NOT_HAN_BOTH ")"
constexpr Patterns kKimiK2[] = {
    R"(\p{Han}+|)" BEFORE "(?:" NOT_HAN_UPPER R"(*+\p{Ll})" NOT_HAN_LOWER
    R"(*+|(?:[\p{Lu}\p{Lt}]*+(?:)" NOT_HAN_BOTH ")++)++)" CONTRACTION
    "?|" BEFORE NOT_HAN_UPPER "++" NOT_HAN_LOWER "*+" CONTRACTION
    R"(?|\p{N}{1,3}|)" SIGNS "|" SPACES};

constexpr Patterns kDeepSeekV3[] = {
    R"(\p{N}{1,3})",
    R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
    R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" SPACES};
constexpr std::string_view kDeepSeekEastAsian =
    R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr Patterns kDeepSeekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)",
                                       R"(\s?\p{P}+)", kDeepSeekEastAsian,
                                       R"(\p{N})"};
constexpr Patterns kDeepSeekLlm[] = {
    R"([\r\n])",
    // The letters with two cases, as of some Unicode version.
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf})"
    R"(\x{1c4}-\x{293}\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377})"
    R"(\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1})"
    R"(\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
    R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba})"
    R"(\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a})"
    R"(\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d})"
    R"(\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d})"
    R"(\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4})"
    R"(\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec})"
    R"(\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113})"
    R"(\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d})"
    R"(\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e})"
    R"(\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee})"
    R"(\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f})"
    R"(\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06})"
    R"(\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f})"
    R"(\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2})"
    R"(\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)",
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f})"
    R"(\x{3000}-\x{3002}]+)",
    R"(\s+$)", kDeepSeekEastAsian, R"(\p{N}+)"};

// The class is the original's, brackets, bars and all.
constexpr Patterns kBloom[] = {
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)"};
constexpr Patterns kViking[] = {kBloom[0], R"(\p{N})"};

#undef CONTRACTION
#undef WORD
#undef SIGNS
#undef SPACES
#undef UPPER
#undef LOWER
#undef BEFORE
#undef NOT_HAN_BOTH
#undef NOT_HAN_UPPER
#undef NOT_HAN_LOWER

constexpr PreTokenizerRow Llama3Row(std::string_view name) {
  return {.name = name,
          .patterns = kLlama3,
          .ignore_merges = true,
          .add_bos = true};
}

constexpr auto kTable = std::to_array<PreTokenizerRow>({
    {.name = "default", .patterns = kDefault},

    Llama3Row("llama3"),
    Llama3Row("llama-v3"),
    Llama3Row("llama-bpe"),
    Llama3Row("falcon3"),
    Llama3Row("falcon-h1"),
    Llama3Row("pixtral"),
    Llama3Row("midm-2.0"),
    Llama3Row("lfm2"),
    {.name = "dbrx", .patterns = kLlama3},
    {.name = "smaug-bpe", .patterns = kLlama3},
    {.name = "glm4", .patterns = kLlama3},
    {.name = "chatglm-bpe", .patterns = kLlama3},
    {.name = "minicpm5", .patterns = kMiniCpm5, .ignore_merges = true},

    {.name = "qwen2", .patterns = kQwen2, .nfc = true},
    {.name = "qwen35", .patterns = kQwen35, .nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = kQwen2},
    {.name = "kormo", .patterns = kQwen2},
    {.name = "f2llmv2", .patterns = kQwen2},
    {.name = "megrez", .patterns = kQwen2},
    {.name = "stablelm2", .patterns = kQwen2},
    {.name = "hunyuan", .patterns = kQwen2},
    {.name = "solar-open", .patterns = kQwen2},
    {.name = "grok-2", .patterns = kQwen2},
    {.name = "laguna", .patterns = kLaguna},
    {.name = "seed-coder", .patterns = kSeedCoder},
    {.name = "bailingmoe", .patterns = kBailing},
    {.name = "bailingmoe2", .patterns = kBailing},
    {.name = "llada-moe", .patterns = kBailing},
    {.name = "exaone-moe", .patterns = kExaoneMoe},

    {.name = "deepseek-llm", .patterns = kDeepSeekLlm},
    {.name = "deepseek-coder", .patterns = kDeepSeekCoder},
    {.name = "deepseek-v3", .patterns = kDeepSeekV3},
    {.name = "hunyuan-dense", .patterns = kDeepSeekV3},
    {.name = "joyai-llm", .patterns = kDeepSeekV3},
    {.name = "hy_v4", .patterns = kDeepSeekV3},

    {.name = "gpt-4o", .patterns = kGpt4o},
    {.name = "llama4", .patterns = kGpt4o},
    {.name = "kanana2", .patterns = kGpt4o},
    {.name = "talkie", .patterns = kGpt4o},
    {.name = "minimax-m2", .patterns = kGpt4o},
    {.name = "tekken",
     .patterns = kTekken,
     .ignore_merges = true,
     .add_bos = true},
    {.name = "kimi-k2", .patterns = kKimiK2},

    {.name = "gpt-2", .patterns = kGpt2},
    {.name = "phi-2", .patterns = kGpt2},
    {.name = "mpt", .patterns = kGpt2},
    {.name = "olmo", .patterns = kGpt2},
    {.name = "jais", .patterns = kGpt2},
    {.name = "trillion", .patterns = kGpt2},
    {.name = "granite-docling", .patterns = kGpt2},
    {.name = "exaone4", .patterns = kGpt2},
    {.name = "gigachat", .patterns = kGpt2},
    {.name = "a.x-4.0", .patterns = kGpt2},
    {.name = "mellum", .patterns = kGpt2},

    {.name = "starcoder", .patterns = kDigitByDigit},
    {.name = "refact", .patterns = kDigitByDigit},
    {.name = "command-r", .patterns = kDigitByDigit},
    {.name = "smollm", .patterns = kDigitByDigit},
    {.name = "codeshell", .patterns = kDigitByDigit},
    {.name = "exaone", .patterns = kDigitByDigit},
    {.name = "minerva-7b", .patterns = kDigitByDigit},
    {.name = "mellum2", .patterns = kDigitByDigit},

    {.name = "falcon", .patterns = kFalcon},
    {.name = "bloom", .patterns = kBloom},
    {.name = "gpt3-finnish", .patterns = kBloom},
    {.name = "poro-chat", .patterns = kBloom},
    {.name = "viking", .patterns = kViking},
});

}  // namespace

const PreTokenizerRow* FindPreTokenizer(std::string_view name) {
  const auto it = std::ranges::find(kTable, name, &PreTokenizerRow::name);
  return it == kTable.end() ? nullptr : &*it;
}

std::span<const PreTokenizerRow> AllPreTokenizers() { return kTable; }

std::string_view ByteLevelPattern() { return kByteLevel; }

std::vector<PreTokenizerStep> StepsOf(const PreTokenizerRow& row) {
  std::vector<PreTokenizerStep> steps;
  for (const std::string_view pattern : row.patterns) {
    steps.push_back(
        {.kind = PreTokenizerKind::kSplit, .pattern = std::string(pattern)});
  }
  return steps;
}

}  // namespace muster::tokenizer
