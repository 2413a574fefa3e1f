#include "tokenizer/jinja/strftime.h"

#include <fmt/format.h>

#include <array>

namespace muster::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {
    "Sunday",   "Monday", "Tuesday", "Wednesday",
    "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

struct Moment {
  int64_t seconds = 0;  // since 1970
  int year = 0;
  unsigned month = 1;
  unsigned day = 1;
  unsigned weekday = 0;  // 0: Sunday
  int day_of_year = 1;
  int64_t hour = 0;
  int64_t minute = 0;
  int64_t second = 0;
};

Moment Split(std::chrono::sys_seconds time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(time - days);
  const std::chrono::sys_days new_year{date.year() / std::chrono::January / 1};
  return {.seconds = time.time_since_epoch().count(),
          .year = static_cast<int>(date.year()),
          .month = static_cast<unsigned>(date.month()),
          .day = static_cast<unsigned>(date.day()),
          .weekday = std::chrono::weekday(days).c_encoding(),
          .day_of_year = static_cast<int>((days - new_year).count()) + 1,
          .hour = clock.hours().count(),
          .minute = clock.minutes().count(),
          .second = clock.seconds().count()};
}

// `pad` is false behind %-.
std::string Two(int64_t value, bool pad) {
  return pad ? fmt::format("{:02}", value) : fmt::to_string(value);
}

Result<std::string> FormatCode(char code, bool pad, const Moment& at) {
  const std::string_view day = kDays[at.weekday];
  const std::string_view month = kMonths[at.month - 1];
  const int64_t hour12 = at.hour % 12 == 0 ? 12 : at.hour % 12;
  switch (code) {
    case '%':
      return std::string("%");
    case 'n':
      return std::string("\n");
    case 't':
      return std::string("\t");
    case 'A':
      return std::string(day);
    case 'a':
      return std::string(day.substr(0, 3));
    case 'B':
      return std::string(month);
    case 'b':
    case 'h':
      return std::string(month.substr(0, 3));
    case 'C':
      return Two(at.year / 100, pad);
    case 'd':
      return Two(at.day, pad);
    case 'e':
      return pad ? fmt::format("{:2}", at.day) : fmt::to_string(at.day);
    case 'H':
      return Two(at.hour, pad);
    case 'I':
      return Two(hour12, pad);
    case 'j':
      return pad ? fmt::format("{:03}", at.day_of_year)
                 : fmt::to_string(at.day_of_year);
    case 'M':
      return Two(at.minute, pad);
    case 'm':
      return Two(at.month, pad);
    case 'p':
      return std::string(at.hour < 12 ? "AM" : "PM");
    case 'S':
      return Two(at.second, pad);
    case 's':
      return fmt::to_string(at.seconds);
    case 'u':
      return fmt::to_string(at.weekday == 0 ? 7 : at.weekday);
    case 'w':
      return fmt::to_string(at.weekday);
    case 'Y':
      return fmt::to_string(at.year);
    case 'y':
      return Two(at.year % 100, pad);
    case 'f':
      return std::string("000000");
    case 'Z':
    case 'z':
      return std::string();  // Python knows of no zone here
    default:
      return Status(Code::kUnsupported,
                    fmt::format("strftime: %{} is not supported", code));
  }
}

// The codes that stand for several others.
std::string_view Expansion(char code) {
  switch (code) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'R':
      return "%H:%M";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    case 'r':
      return "%I:%M:%S %p";
    default:
      return "";
  }
}

}  // namespace

Result<std::string> FormatTime(std::string_view format,
                               std::chrono::sys_seconds time) {
  constexpr size_t kMaxFormatBytes = 1000;
  if (format.size() > kMaxFormatBytes) {
    return InvalidArgument("strftime: the format is too long");
  }
  const Moment at = Split(time);
  std::string out;
  for (size_t pos = 0; pos < format.size(); ++pos) {
    if (format[pos] != '%' || pos + 1 == format.size()) {
      out += format[pos];
      continue;
    }
    const bool pad = format[++pos] != '-';
    if (!pad && pos + 1 < format.size()) ++pos;
    const std::string_view expansion = Expansion(format[pos]);
    if (!expansion.empty()) {
      ASSIGN_OR_RETURN(const std::string part, FormatTime(expansion, time));
      out += part;
      continue;
    }
    ASSIGN_OR_RETURN(const std::string part, FormatCode(format[pos], pad, at));
    out += part;
  }
  return out;
}

}  // namespace muster::jinja
