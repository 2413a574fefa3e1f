#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include "tokenizer/normalize_unicode.h"
#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

std::string ReplaceLiteral(std::string_view text, std::string_view pattern,
                           std::string_view by) {
  std::string out;
  size_t pos = 0;
  while (true) {
    const size_t found = text.find(pattern, pos);
    out += text.substr(pos, found - pos);
    if (found == std::string_view::npos) return out;
    out += by;
    pos = found + pattern.size();
  }
}

std::string ReplaceRegex(std::string_view text, const Regex& regex,
                         std::string_view by) {
  RegexScratch scratch;
  std::string out;
  std::vector<Span> matches;
  while (!text.empty()) {
    const size_t valid = ValidPrefix(text);
    matches.clear();
    regex.FindAll(text.substr(0, valid), scratch, matches);
    size_t pos = 0;
    for (const Span& match : matches) {
      out += text.substr(pos, match.begin - pos);
      out += by;
      pos = match.end;
    }
    out += text.substr(pos, valid - pos);
    text.remove_prefix(valid);
    if (text.empty()) break;
    out.push_back(text[0]);
    text.remove_prefix(1);
  }
  return out;
}

std::string Lowercase(std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text, pos);
    if (!c.valid) {
      out += text[pos];
    } else if (c.code == 0x130) {
      out += "i\xCC\x87";  // the only character whose lower case is two
    } else {
      AppendUtf8(static_cast<char32_t>(
                     utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code))),
                 out);
    }
    pos += c.size;
  }
  return out;
}

std::string_view StripLeft(std::string_view text) {
  while (!text.empty()) {
    const Character c = CharacterAt(text, 0);
    if (!c.valid || !IsWhiteSpace(c.code)) break;
    text.remove_prefix(c.size);
  }
  return text;
}

// Where the last character of `text` begins. REQUIRES: !text.empty().
size_t LastCharacter(std::string_view text) {
  size_t pos = text.size() - 1;
  while (pos > 0 && text.size() - pos < 4 &&
         (static_cast<unsigned char>(text[pos]) & 0xC0) == 0x80) {
    --pos;
  }
  return CharacterAt(text, pos).size == text.size() - pos ? pos
                                                          : text.size() - 1;
}

std::string_view StripRight(std::string_view text) {
  while (!text.empty()) {
    const size_t last = LastCharacter(text);
    const Character c = CharacterAt(text, last);
    if (!c.valid || !IsWhiteSpace(c.code)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string CollapseSpaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out.push_back(c);
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

Result<Normalizer> Normalizer::Make(std::span<const NormalizerStep> steps) {
  Normalizer out;
  for (const NormalizerStep& spec : steps) {
    Step step{.spec = spec, .regex = {}};
    if (spec.kind == NormalizerKind::kReplace) {
      if (spec.pattern.empty()) {
        return Corrupt("a Replace normalizer has an empty pattern");
      }
      if (spec.is_regex) {
        ASSIGN_OR_RETURN(Regex regex, Regex::Compile(spec.pattern));
        step.regex.push_back(std::move(regex));
      }
    }
    out.steps_.push_back(std::move(step));
  }
  return out;
}

std::string Normalizer::Apply(std::string_view text) const {
  std::string out(text);
  for (const auto& [spec, regex] : steps_) {
    switch (spec.kind) {
      case NormalizerKind::kNfc:
        out = NormalizeUnicode(out, NormalForm::kNfc);
        break;
      case NormalizerKind::kNfd:
        out = NormalizeUnicode(out, NormalForm::kNfd);
        break;
      case NormalizerKind::kNfkc:
        out = NormalizeUnicode(out, NormalForm::kNfkc);
        break;
      case NormalizerKind::kNfkd:
        out = NormalizeUnicode(out, NormalForm::kNfkd);
        break;
      case NormalizerKind::kLowercase:
        out = Lowercase(out);
        break;
      case NormalizerKind::kReplace:
        out = regex.empty() ? ReplaceLiteral(out, spec.pattern, spec.content)
                            : ReplaceRegex(out, regex.front(), spec.content);
        break;
      case NormalizerKind::kPrepend:
        if (!out.empty()) out = spec.content + out;
        break;
      case NormalizerKind::kStripLeft:
        out = std::string(StripLeft(out));
        break;
      case NormalizerKind::kStripRight:
        out = std::string(StripRight(out));
        break;
      case NormalizerKind::kCollapseSpaces:
        out = CollapseSpaces(out);
        break;
    }
  }
  return out;
}

}  // namespace muster::tokenizer
