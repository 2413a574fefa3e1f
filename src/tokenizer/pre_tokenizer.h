// Text to the words that a model's vocabulary is applied to, one by one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/regex.h"
#include "tokenizer/spec.h"

namespace muster::tokenizer {

// Words of one text, in order. They lie in the text or, where a step changed
// it, in here.
class Words {
 public:
  std::span<const std::string_view> views() const { return views_; }

 private:
  friend class PreTokenizer;
  // Each on the heap by itself: views must not move with the vector.
  std::vector<std::unique_ptr<std::string>> changed_;
  std::vector<std::string_view> views_;
};

// Immutable, thread-safe.
class PreTokenizer {
 public:
  static Result<PreTokenizer> Make(std::span<const PreTokenizerStep> steps);

  // Together the words are the text, but for what the steps remove or add.
  // Where the text is not UTF-8, a word ends and another begins. `is_first`:
  // nothing stands before the text, not even a control token.
  Words Split(std::string_view text, bool is_first) const;

 private:
  struct Step {
    PreTokenizerStep spec;
    std::vector<Regex> regex;  // one, or none
  };

  // Keeps a word that is no part of the text.
  static std::string_view Change(std::string changed, Words& words);
  static void Cut(const Step& step, std::string_view text,
                  RegexScratch& scratch, std::vector<std::string_view>& out);
  static void ApplyMetaspace(const Step& step, std::string_view word,
                             bool is_first, RegexScratch& scratch, Words& words,
                             std::vector<std::string_view>& out);

  std::vector<Step> steps_;
};

}  // namespace muster::tokenizer
