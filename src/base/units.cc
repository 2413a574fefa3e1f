#include "base/units.h"

#include <fmt/format.h>

#include <array>

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
