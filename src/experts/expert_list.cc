#include "experts/expert_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace muster::experts {
namespace {

constexpr std::string_view kSeparators = ", \t\r\n";
constexpr size_t kMaxShown = 40;  // of an item, in a message

// A whole number and nothing else.
std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || next != end) return std::nullopt;
  return number;
}

Status NoSuchItem(std::string_view item, const std::string& expected) {
  return InvalidArgument(fmt::format("list of experts, '{}': expected {}",
                                     item.substr(0, kMaxShown), expected));
}

Status AppendItem(std::string_view item, const ExpertTable& table,
                  std::vector<uint32_t>* out) {
  const size_t colon = item.find(':');
  const auto layer = ParseNumber(item.substr(0, colon));
  if (colon == std::string_view::npos || !layer) {
    return NoSuchItem(item, "LAYER:EXPERT or LAYER:*");
  }
  const uint32_t num_experts =
      *layer < table.num_layers() ? table.layer(*layer).num_experts : 0;
  if (num_experts == 0) {
    return NoSuchItem(item, fmt::format("one of {} layers, one with experts",
                                        table.num_layers()));
  }
  const std::string_view which = item.substr(colon + 1);
  if (which == "*") {
    for (uint32_t index = 0; index < num_experts; ++index) {
      out->push_back(table.Number({*layer, index}));
    }
    return {};
  }
  const auto index = ParseNumber(which);
  if (!index) return NoSuchItem(item, "LAYER:EXPERT or LAYER:*");
  if (*index >= num_experts) {
    return NoSuchItem(item, fmt::format("an expert from 0 to {} of that layer",
                                        num_experts - 1));
  }
  out->push_back(table.Number({*layer, *index}));
  return {};
}

void KeepOneOfEach(std::vector<uint32_t>* experts) {
  std::sort(experts->begin(), experts->end());
  experts->erase(std::unique(experts->begin(), experts->end()), experts->end());
}

}  // namespace

Result<std::vector<uint32_t>> ParseExpertList(std::string_view text,
                                              const ExpertTable& table) {
  std::vector<uint32_t> experts;
  while (true) {
    const size_t begin = text.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const bool is_comment = text.front() == '#';
    const size_t size = std::min(
        text.size(), text.find_first_of(is_comment ? "\n" : ", \t\r\n#"));
    if (!is_comment) {
      RETURN_IF_ERROR(AppendItem(text.substr(0, size), table, &experts));
      // However often a layer is named.
      if (experts.size() > 2 * size_t{table.num_experts()}) {
        KeepOneOfEach(&experts);
      }
    }
    text.remove_prefix(size);
  }
  KeepOneOfEach(&experts);
  return experts;
}

}  // namespace muster::experts
