#include "cli/simulate/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/units.h"
#include "experts/simulator.h"

namespace muster::cli {
namespace {

constexpr int kDefaultPercents[] = {10, 20, 30, 40, 50, 60, 70, 80, 90};

// "512" or "25%", in experts.
Result<uint64_t> ParseExperts(const std::string& word, uint64_t in_all) {
  const auto error = [&] {
    return InvalidArgument(fmt::format(
        "--experts '{}': expected a number of experts, such as 512, or a "
        "share, such as 25%",
        word));
  };
  const char* end = word.data() + word.size();
  if (!word.empty() && word.back() == '%') {
    double percent = 0;
    const auto parsed =
        std::from_chars(word.data(), --end, percent, std::chars_format::fixed);
    if (parsed.ec != std::errc() || parsed.ptr != end || !(percent >= 0) ||
        percent > 100) {
      return error();
    }
    return static_cast<uint64_t>(
        std::llround(percent / 100 * static_cast<double>(in_all)));
  }
  uint64_t count = 0;
  const auto parsed = std::from_chars(word.data(), end, count);
  if (word.empty() || parsed.ec != std::errc() || parsed.ptr != end) {
    return error();
  }
  return count;
}

Result<std::vector<uint64_t>> ParseRam(const std::vector<std::string>& words,
                                       std::span<const uint64_t> expert_bytes) {
  if (expert_bytes.empty()) {
    return InvalidArgument(
        "--ram needs the size of an expert, which the trace does not say: add "
        "--expert-bytes");
  }
  std::vector<uint64_t> capacities;
  for (const std::string& word : words) {
    const auto bytes = ParseBytes(word);
    if (!bytes.ok()) {
      return InvalidArgument("--ram " + bytes.status().message());
    }
    capacities.push_back(*bytes);
  }
  return capacities;
}

Result<std::vector<uint64_t>> ParseAllExperts(
    const std::vector<std::string>& words, uint64_t in_all) {
  std::vector<uint64_t> capacities;
  for (const std::string& word : words) {
    ASSIGN_OR_RETURN(const uint64_t count, ParseExperts(word, in_all));
    capacities.push_back(count);
  }
  return capacities;
}

std::vector<uint64_t> DefaultCapacities(uint64_t in_all, uint64_t least) {
  std::vector<uint64_t> capacities;
  for (const int percent : kDefaultPercents) {
    const uint64_t capacity = in_all * percent / 100;
    if (capacity >= least) capacities.push_back(capacity);
  }
  if (capacities.empty()) capacities.push_back(in_all);
  return capacities;
}

}  // namespace

Result<CacheSizes> ChooseSizes(const SizeFlags& flags,
                               const experts::Replay& replay,
                               std::span<const uint64_t> expert_bytes) {
  const bool in_bytes = !flags.ram.empty();
  CacheSizes out;
  out.room_per_expert.assign(replay.num_layers, 1);
  if (in_bytes) {
    out.room_per_expert.assign(expert_bytes.begin(), expert_bytes.end());
  }
  const uint64_t in_all = replay.num_experts_in_all();
  std::vector<uint64_t> capacities;
  if (in_bytes) {
    ASSIGN_OR_RETURN(capacities, ParseRam(flags.ram, expert_bytes));
  } else {
    ASSIGN_OR_RETURN(capacities, ParseAllExperts(flags.experts, in_all));
  }
  const uint64_t least = experts::LeastCapacity(replay, out.room_per_expert);
  if (capacities.empty()) capacities = DefaultCapacities(in_all, least);

  uint64_t room_in_all = 0;
  for (size_t layer = 0; layer < replay.num_layers; ++layer) {
    room_in_all += replay.num_experts[layer] * out.room_per_expert[layer];
  }
  const auto show = [&](uint64_t room) {
    return in_bytes ? FormatBytes(room) : fmt::format("{} experts", room);
  };
  for (uint64_t& capacity : capacities) {
    if (capacity < least) {
      return InvalidArgument(fmt::format(
          "a cache of {} is too small: a token's experts of one layer need {}",
          show(capacity), show(least)));
    }
    capacity = std::min(capacity, room_in_all);
  }
  std::sort(capacities.begin(), capacities.end());
  capacities.erase(std::unique(capacities.begin(), capacities.end()),
                   capacities.end());
  for (const uint64_t capacity : capacities) {
    const double share =
        static_cast<double>(capacity) / static_cast<double>(room_in_all);
    out.sizes.push_back({.capacity = capacity,
                         .num_experts = share * static_cast<double>(in_all),
                         .share = share});
  }
  return out;
}

}  // namespace muster::cli
