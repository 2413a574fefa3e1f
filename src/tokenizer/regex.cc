#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>

#include "base/check.h"
#include "tokenizer/regex_syntax.h"
#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

// Far more than any known pattern has, far less than hurts to compile.
constexpr size_t kMaxPatternBytes = 32 << 10;
// Memory for backtracking, in KiB.
constexpr uint32_t kHeapLimitKib = 256 << 10;

PCRE2_SPTR Bytes(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

// Steps allowed for one match: linear in the text, with room.
uint32_t MatchLimit(size_t size) {
  return static_cast<uint32_t>(
      std::min<size_t>(100'000 + 64 * size, UINT32_MAX));
}

std::string ErrorText(int error) {
  PCRE2_UCHAR buffer[160] = {};
  pcre2_get_error_message(error, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

RegexScratch::RegexScratch()
    : data_(pcre2_match_data_create(1, nullptr)),
      context_(pcre2_match_context_create(nullptr)) {
  CHECK(data_ != nullptr && context_ != nullptr);
  pcre2_set_heap_limit(context_, kHeapLimitKib);
}

RegexScratch::~RegexScratch() {
  pcre2_match_data_free(data_);
  pcre2_match_context_free(context_);
}

void Regex::Free::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Result<Regex> Regex::Compile(std::string_view oniguruma) {
  if (oniguruma.size() > kMaxPatternBytes) {
    return Unsupported(
        fmt::format("a pattern of {} bytes, at most {} are "
                    "supported",
                    oniguruma.size(), kMaxPatternBytes));
  }
  if (ValidPrefix(oniguruma) != oniguruma.size()) {
    return Corrupt("a pattern is not UTF-8");
  }
  ASSIGN_OR_RETURN(const std::string pattern, ToPcre2(oniguruma));
  return CompilePcre2(pattern, oniguruma);
}

Result<Regex> Regex::Literal(std::string_view text) {
  if (text.empty()) return Corrupt("a pattern is empty");
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      pattern.push_back(c);
    } else {
      pattern += fmt::format("\\x{{{:x}}}", byte);
    }
  }
  if (ValidPrefix(text) != text.size()) {
    return Corrupt("a pattern is not UTF-8");
  }
  return CompilePcre2(pattern, text);
}

Result<Regex> Regex::CompilePcre2(std::string_view pattern,
                                  std::string_view shown) {
  // MULTILINE: in Oniguruma ^ and $ are those of lines. Nobody asks for groups.
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C;
  const std::unique_ptr<pcre2_compile_context,
                        decltype(&pcre2_compile_context_free)>
      context(pcre2_compile_context_create(nullptr),
              &pcre2_compile_context_free);
  CHECK(context != nullptr);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(Bytes(pattern), pattern.size(), kOptions, &error,
                          &offset, context.get()));
  if (code == nullptr) {
    return Unsupported(
        fmt::format("pattern '{}': {}", shown, ErrorText(error)));
  }
  // Without it matching works the same, slower: the outcome does not matter.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::move(code));
}

void Regex::FindAll(std::string_view text, RegexScratch& scratch,
                    std::vector<Span>& out) const {
  pcre2_set_match_limit(scratch.context_, MatchLimit(text.size()));
  const auto match = [&](size_t start, uint32_t options) {
    return pcre2_match(code_.get(), Bytes(text), text.size(), start,
                       options | PCRE2_NO_UTF_CHECK, scratch.data_,
                       scratch.context_);
  };
  size_t start = 0;
  size_t last_end = text.size() + 1;  // of the match before
  while (start <= text.size()) {
    int count = match(start, 0);
    // The interpreter keeps its state on the heap, the JIT on a small stack.
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = match(start, PCRE2_NO_JIT);
    if (count < 0) return;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data_);
    const Span found{.begin = ends[0], .end = ends[1]};
    if (found.begin < found.end || found.begin != last_end) {
      out.push_back(found);
    }
    last_end = found.end;
    start = found.end;
    if (found.begin == found.end) {
      start += start < text.size() ? CharacterAt(text, start).size : 1;
    }
  }
}

}  // namespace muster::tokenizer
