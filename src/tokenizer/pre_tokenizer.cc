#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <memory>
#include <string>

#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

struct Part {
  Span span;
  bool is_match = false;
};

// `matches` and what lies between them.
std::vector<Part> PartsOf(size_t size, std::span<const Span> matches,
                          bool invert) {
  std::vector<Part> parts;
  size_t pos = 0;
  for (const Span& match : matches) {
    if (pos < match.begin) parts.push_back({{pos, match.begin}, invert});
    parts.push_back({match, !invert});
    pos = match.end;
  }
  if (pos < size) parts.push_back({{pos, size}, invert});
  return parts;
}

// Joins a part to the one before where `joins(before, part)`.
template <typename Joins>
std::vector<Part> JoinParts(std::span<const Part> parts, Joins joins) {
  std::vector<Part> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && joins(parts[i - 1], parts[i])) {
      out.back().span.end = parts[i].span.end;
    } else {
      out.push_back(parts[i]);
    }
  }
  return out;
}

std::vector<Part> Behave(std::vector<Part> parts, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.is_match; });
      return parts;
    case SplitBehavior::kIsolated:
      return parts;
    case SplitBehavior::kContiguous:
      return JoinParts(parts, [](const Part& before, const Part& part) {
        return before.is_match == part.is_match;
      });
    case SplitBehavior::kMergedWithPrevious:
      return JoinParts(parts, [](const Part& before, const Part& part) {
        return part.is_match && !before.is_match;
      });
    case SplitBehavior::kMergedWithNext:
      return JoinParts(parts, [](const Part& before, const Part& part) {
        return before.is_match && !part.is_match;
      });
  }
  return parts;
}

// Stretches that are UTF-8 and stretches that are not.
template <typename Found>
void ForEachStretch(std::string_view text, Found found) {
  while (!text.empty()) {
    const size_t valid = ValidPrefix(text);
    if (valid > 0) found(text.substr(0, valid), true);
    text.remove_prefix(valid);
    size_t broken = 0;
    while (broken < text.size() && !CharacterAt(text, broken).valid) ++broken;
    if (broken > 0) found(text.substr(0, broken), false);
    text.remove_prefix(broken);
  }
}

std::string ToMetaspace(std::string_view text, bool prepend) {
  std::string out;
  if (prepend && !text.starts_with(' ') && !text.starts_with(kSpaceMark)) {
    out += kSpaceMark;
  }
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceMark;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

Result<Regex> CompileStep(const PreTokenizerStep& step) {
  if (step.kind == PreTokenizerKind::kMetaspace) {
    return Regex::Literal(kSpaceMark);
  }
  return step.is_regex ? Regex::Compile(step.pattern)
                       : Regex::Literal(step.pattern);
}

}  // namespace

Result<PreTokenizer> PreTokenizer::Make(
    std::span<const PreTokenizerStep> steps) {
  PreTokenizer out;
  for (const PreTokenizerStep& spec : steps) {
    Step step{.spec = spec, .regex = {}};
    if (spec.kind == PreTokenizerKind::kMetaspace) {
      step.spec.behavior = SplitBehavior::kMergedWithNext;
    }
    if (spec.kind != PreTokenizerKind::kPrefixSpace) {
      ASSIGN_OR_RETURN(Regex regex, CompileStep(spec));
      step.regex.push_back(std::move(regex));
    }
    out.steps_.push_back(std::move(step));
  }
  return out;
}

std::string_view PreTokenizer::Change(std::string changed, Words& words) {
  words.changed_.push_back(std::make_unique<std::string>(std::move(changed)));
  return *words.changed_.back();
}

void PreTokenizer::Cut(const Step& step, std::string_view text,
                       RegexScratch& scratch,
                       std::vector<std::string_view>& out) {
  ForEachStretch(text, [&](std::string_view stretch, bool is_valid) {
    if (!is_valid) {
      out.push_back(stretch);
      return;
    }
    std::vector<Span> matches;
    step.regex.front().FindAll(stretch, scratch, matches);
    for (const Part& part :
         Behave(PartsOf(stretch.size(), matches, step.spec.invert),
                step.spec.behavior)) {
      const auto [begin, end] = part.span;
      if (begin < end) out.push_back(stretch.substr(begin, end - begin));
    }
  });
}

void PreTokenizer::ApplyMetaspace(const Step& step, std::string_view word,
                                  bool is_first, RegexScratch& scratch,
                                  Words& words,
                                  std::vector<std::string_view>& out) {
  const bool prepend = step.spec.prepend == Prepend::kAlways ||
                       (step.spec.prepend == Prepend::kFirst && is_first);
  const std::string_view changed = Change(ToMetaspace(word, prepend), words);
  if (step.spec.split) {
    Cut(step, changed, scratch, out);
  } else {
    out.push_back(changed);
  }
}

Words PreTokenizer::Split(std::string_view text, bool is_first) const {
  Words words;
  if (text.empty()) return words;
  words.views_.push_back(text);
  RegexScratch scratch;
  std::vector<std::string_view> next;
  for (const Step& step : steps_) {
    next.clear();
    for (const std::string_view word : words.views_) {
      switch (step.spec.kind) {
        case PreTokenizerKind::kSplit:
          Cut(step, word, scratch, next);
          break;
        case PreTokenizerKind::kPrefixSpace:
          next.push_back(word.starts_with(' ')
                             ? word
                             : Change(std::string(" ").append(word), words));
          break;
        case PreTokenizerKind::kMetaspace:
          ApplyMetaspace(step, word, is_first && word.data() == text.data(),
                         scratch, words, next);
          break;
      }
    }
    words.views_.swap(next);
  }
  return words;
}

}  // namespace muster::tokenizer
