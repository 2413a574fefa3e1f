#include "tokenizer/regex_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::tokenizer {
namespace {

// Class members that Oniguruma means. PCRE2's own \s has U+180E, which has not
// been white space since Unicode 6.3, and its \w lacks marks.
constexpr std::string_view kSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"
    "\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view kWord =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}"
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

bool IsAsciiLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  Result<std::string> Run() {
    while (pos_ < in_.size()) {
      RETURN_IF_ERROR(in_class_ ? ClassItem() : Item());
    }
    if (in_class_) return Refuse("a class without ']'");
    return std::move(out_);
  }

 private:
  Status Refuse(std::string_view what) const {
    return Unsupported(
        fmt::format("pattern '{}': {} is not supported", in_, what));
  }

  std::string_view Rest() const { return in_.substr(pos_); }

  void Copy(size_t count) {
    out_ += in_.substr(pos_, count);
    pos_ += count;
  }

  void Replace(size_t count, std::string_view by) {
    out_ += by;
    pos_ += count;
  }

  Status Item() {
    switch (in_[pos_]) {
      case '\\':
        return Escape();
      case '[':
        OpenClass();
        return {};
      case '(':
        return Group();
      case '{':
        return Interval();
      default:
        Copy(1);
        return {};
    }
  }

  void OpenClass() {
    in_class_ = true;
    Copy(1);
    if (Rest().starts_with('^')) Copy(1);
    // A ']' here is a member.
    if (Rest().starts_with(']')) Replace(1, "\\]");
  }

  Status ClassItem() {
    switch (in_[pos_]) {
      case '\\':
        return Escape();
      case '[':
        return Refuse("a class inside a class");
      case '&':
        if (Rest().starts_with("&&")) return Refuse("'&&' in a class");
        Copy(1);
        return {};
      case ']':
        in_class_ = false;
        Copy(1);
        return {};
      default:
        Copy(1);
        return {};
    }
  }

  Status Group() {
    static constexpr std::array<std::string_view, 8> kKnown = {
        "(?:", "(?i:", "(?i)", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    if (!Rest().starts_with("(?")) {
      Copy(1);
      return {};
    }
    for (const std::string_view known : kKnown) {
      if (Rest().starts_with(known)) {
        Copy(known.size());
        return {};
      }
    }
    return Refuse(fmt::format("'{}'", Rest().substr(0, 4)));
  }

  // {n}, {n,}, {n,m}. A '+' behind it repeats the repetition in Oniguruma and
  // makes it possessive in PCRE2.
  Status Interval() {
    const size_t end = in_.find('}', pos_);
    if (end == std::string_view::npos) return Refuse("'{' without '}'");
    const std::string_view inside = in_.substr(pos_ + 1, end - pos_ - 1);
    const bool is_count = !inside.empty() && IsAsciiDigit(inside[0]) &&
                          std::all_of(inside.begin(), inside.end(), [](char c) {
                            return IsAsciiDigit(c) || c == ',';
                          });
    if (!is_count) return Refuse("'{' that is no repetition");
    Copy(end + 1 - pos_);
    if (Rest().starts_with('+')) return Refuse("'+' behind '}'");
    return {};
  }

  Status Escape() {
    if (pos_ + 1 >= in_.size()) return Refuse("'\\' at the end");
    const char c = in_[pos_ + 1];
    switch (c) {
      case 's':
        return Class(kSpace, false);
      case 'S':
        return Class(kSpace, true);
      case 'w':
        return Class(kWord, false);
      case 'W':
        return Class(kWord, true);
      case 'd':
        Replace(2, "\\p{Nd}");
        return {};
      case 'D':
        Replace(2, "\\P{Nd}");
        return {};
      case 'p':
      case 'P':
        return Property();
      case 'v':
        Replace(2, "\\x{b}");
        return {};
      case 'b':
        return in_class_ ? Refuse("'\\b' in a class") : WordBoundary();
      case 'x':
      case 'u':
        return Hexadecimal();
      case 'n':
      case 'r':
      case 't':
      case 'f':
        Copy(2);
        return {};
      default:
        break;
    }
    if (IsAsciiLetter(c) || IsAsciiDigit(c)) {
      return Refuse(fmt::format("'\\{}'", c));
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      Replace(1, "");  // the character itself; its bytes follow
      return {};
    }
    Copy(2);
    return {};
  }

  Status Class(std::string_view members, bool negated) {
    if (!in_class_) {
      Replace(2, fmt::format("[{}{}]", negated ? "^" : "", members));
      return {};
    }
    if (negated) return Refuse("'\\S' or '\\W' in a class");
    Replace(2, members);
    return {};
  }

  Status WordBoundary() {
    Replace(2,
            fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord));
    return {};
  }

  Status Property() {
    const size_t end = in_.find('}', pos_);
    if (!in_.substr(pos_ + 2).starts_with('{') ||
        end == std::string_view::npos) {
      return Refuse("'\\p' without '{...}'");
    }
    std::string_view name = in_.substr(pos_ + 3, end - pos_ - 3);
    const bool negated = (in_[pos_ + 1] == 'P') != name.starts_with('^');
    if (name.starts_with('^')) name.remove_prefix(1);
    // Longer names than those of categories are scripts. PCRE2 would read them
    // as script extensions.
    const bool is_category = name.size() <= 2;
    Replace(end + 1 - pos_, fmt::format("\\{}{{{}{}}}", negated ? 'P' : 'p',
                                        is_category ? "" : "sc:", name));
    return {};
  }

  // \xHH, \x{H...}, \uHHHH
  Status Hexadecimal() {
    const bool is_long = in_.substr(pos_ + 2).starts_with('{');
    const size_t start = pos_ + (is_long ? 3 : 2);
    size_t end = start;
    while (end < in_.size() && IsHexDigit(in_[end]) && end - start < 6) ++end;
    const size_t digits = end - start;
    const size_t wanted = in_[pos_ + 1] == 'u' ? 4 : 2;
    if (is_long ? digits == 0 || !in_.substr(end).starts_with('}')
                : digits < wanted) {
      return Refuse("a broken '\\x' or '\\u'");
    }
    const size_t size = is_long ? digits : wanted;
    const std::string code(in_.substr(start, size));
    Replace((is_long ? end + 1 : start + wanted) - pos_,
            fmt::format("\\x{{{}}}", code));
    return {};
  }

  static bool IsHexDigit(char c) {
    return IsAsciiDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  }

  std::string_view in_;
  size_t pos_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

Result<std::string> ToPcre2(std::string_view oniguruma) {
  return Translator(oniguruma).Run();
}

}  // namespace muster::tokenizer
