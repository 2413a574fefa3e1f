// One compiled pattern. Oniguruma's language and meaning (see regex_syntax.h),
// run by PCRE2.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace muster::tokenizer {

// A stretch of a text, in bytes.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

// Working memory of matching: one per thread and call, for any pattern.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch&) = delete;
  RegexScratch& operator=(const RegexScratch&) = delete;

 private:
  friend class Regex;
  pcre2_real_match_data_8* data_;
  pcre2_real_match_context_8* context_;
};

// Immutable, thread-safe.
class Regex {
 public:
  static Result<Regex> Compile(std::string_view oniguruma);
  // Matches `text` itself.
  static Result<Regex> Literal(std::string_view text);

  // Appends the matches, left to right; they do not overlap, and may be empty.
  // Work is bounded: a pattern that backtracks without end on some text (none
  // of the known ones does) stops matching there, and the rest has no match.
  // REQUIRES: `text` is valid UTF-8.
  void FindAll(std::string_view text, RegexScratch& scratch,
               std::vector<Span>& out) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  using Code = std::unique_ptr<pcre2_real_code_8, Free>;

  explicit Regex(Code code) : code_(std::move(code)) {}
  static Result<Regex> CompilePcre2(std::string_view pattern,
                                    std::string_view shown);

  Code code_;
};

}  // namespace muster::tokenizer
