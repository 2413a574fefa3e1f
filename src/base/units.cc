#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace muster {
namespace {

// Divides by `base` until what is left is below it; `units` names the powers.
template <size_t N>
std::string Scale(uint64_t n, double base,
                  const std::array<const char*, N>& units) {
  double value = static_cast<double>(n);
  size_t power = 0;
  while (value >= base && power + 1 < N) {
    value /= base;
    ++power;
  }
  if (power == 0) return fmt::format("{}{}", n, units[0]);
  return fmt::format("{:.{}f}{}", value, value < 100 ? 2 : 1, units[power]);
}

}  // namespace

std::string FormatBytes(uint64_t size_bytes) {
  return Scale<6>(size_bytes, 1024,
                  {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

Result<uint64_t> ParseBytes(std::string_view text) {
  const Status error =
      InvalidArgument(fmt::format("'{}' is no size: expected a number with K, "
                                  "M, G or T behind it, such as 8G or 1.5GiB",
                                  text));
  double number = 0;
  const auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || !(number >= 0)) return error;
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  for (char& c : unit)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  static constexpr std::string_view kPrefixes = "BKMGTP";
  const size_t power = unit.empty() ? 0 : kPrefixes.find(unit[0]);
  if (power == std::string_view::npos) return error;
  const std::string_view rest =
      unit.empty() ? "" : std::string_view(unit).substr(1);
  if (!(rest.empty() || (power > 0 && (rest == "B" || rest == "IB"))))
    return error;
  const double size_bytes = std::ldexp(number, static_cast<int>(10 * power));
  if (size_bytes >= 0x1p63) return error;
  return static_cast<uint64_t>(size_bytes);
}

std::string FormatCount(uint64_t count) {
  return Scale<5>(count, 1000, {"", " K", " M", " B", " T"});
}

std::string FormatSeconds(double seconds) {
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<uint64_t>(seconds);
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

}  // namespace muster
