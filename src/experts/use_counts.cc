#include "experts/use_counts.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

#include "experts/routing_trace.h"

namespace muster::experts {
namespace {

constexpr std::string_view kFirstLine = "muster expert uses 1";
constexpr std::string_view kModel = "model ";
constexpr std::string_view kChecksum = "checksum ";

// Takes a line off the front, without its end. False: none is complete.
bool TakeLine(std::string_view* text, std::string_view* line) {
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return false;
  *line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return true;
}

// The text before the last line, which must have its checksum.
Result<std::string_view> CheckedPart(std::string_view text) {
  const size_t at = text.rfind(kChecksum);
  if (at == std::string_view::npos || at == 0 || text[at - 1] != '\n') {
    return Corrupt("no checksum: the end is missing");
  }
  const std::string_view checked = text.substr(0, at);
  const std::string expected =
      fmt::format("{}{}\n", kChecksum, ToHex(ChecksumOf(checked)));
  if (text.substr(at) != expected) return Corrupt("its checksum does not fit");
  return checked;
}

// Exactly `counts.size()` numbers with a space between.
bool ParseCounts(std::string_view line, std::span<uint64_t> counts) {
  const char* at = line.data();
  const char* end = at + line.size();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (i > 0 && (at == end || *at++ != ' ')) return false;
    const auto [next, error] = std::from_chars(at, end, counts[i]);
    if (error != std::errc()) return false;
    at = next;
  }
  return at == end;
}

Status CheckShape(const TraceHeader& header, const TokenRouting& token,
                  const std::string& name, const ExpertTable& table) {
  bool fits = token.num_layers() == table.num_layers();
  for (uint32_t l = 0; fits && l < table.num_layers(); ++l) {
    const uint32_t num_experts = table.layer(l).num_experts;
    if (!header.num_experts.empty()) {
      fits =
          l < header.num_experts.size() && header.num_experts[l] == num_experts;
    }
    for (const uint32_t id : token.Experts(l)) fits = fits && id < num_experts;
  }
  if (fits) return {};
  return InvalidArgument(
      fmt::format("{}: its routing is of a model of another shape than this "
                  "one, which has {} layers and {} experts in all",
                  name, table.num_layers(), table.num_experts()));
}

}  // namespace

Checksum ModelIdentity(const formats::ModelFiles& files) {
  std::string all;
  for (const formats::TensorInfo& tensor : files.tensors) {
    all += fmt::format("{} {}", tensor.name, static_cast<int>(tensor.type));
    for (const uint64_t size : tensor.shape) all += fmt::format(" {}", size);
    all += '\n';
  }
  return ChecksumOf(all);
}

std::string WriteUses(const Checksum& model, const ExpertTable& table,
                      std::span<const uint64_t> uses) {
  std::string text =
      fmt::format("{}\n{}{}\n", kFirstLine, kModel, ToHex(model));
  for (uint32_t l = 0; l < table.num_layers(); ++l) {
    for (uint32_t index = 0; index < table.layer(l).num_experts; ++index) {
      fmt::format_to(std::back_inserter(text), "{}{}", index == 0 ? "" : " ",
                     uses[table.Number({l, index})]);
    }
    text += '\n';
  }
  const Checksum checksum = ChecksumOf(text);
  return text + fmt::format("{}{}\n", kChecksum, ToHex(checksum));
}

Result<std::vector<uint64_t>> ParseUses(std::string_view text,
                                        const Checksum& model,
                                        const ExpertTable& table) {
  // First, because another version may check itself in another way.
  std::string_view line;
  std::string_view rest = text;
  if (!TakeLine(&rest, &line) || line != kFirstLine) {
    return Corrupt(fmt::format("expected '{}' first", kFirstLine));
  }
  ASSIGN_OR_RETURN(rest, CheckedPart(text));
  TakeLine(&rest, &line);
  if (!TakeLine(&rest, &line) || !line.starts_with(kModel) ||
      ChecksumFromHex(line.substr(kModel.size())) != model) {
    return Corrupt("it is of another model");
  }
  std::vector<uint64_t> uses(table.num_experts());
  for (uint32_t l = 0; l < table.num_layers(); ++l) {
    const uint32_t num_experts = table.layer(l).num_experts;
    const std::span<uint64_t> counts =
        std::span(uses).subspan(table.Number({l, 0}), num_experts);
    if (!TakeLine(&rest, &line) || !ParseCounts(line, counts)) {
      return Corrupt(
          fmt::format("expected {} counts for layer {}", num_experts, l));
    }
  }
  if (!rest.empty()) return Corrupt("it has more layers than the model");
  return uses;
}

Result<std::vector<uint64_t>> CountUses(std::istream& trace,
                                        const std::string& name,
                                        const ExpertTable& table) {
  std::vector<uint64_t> uses(table.num_experts());
  TraceReader reader(trace, name);
  TokenRouting token;
  uint64_t num_tokens = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool is_there, reader.Next(&token));
    if (!is_there) break;
    ++num_tokens;
    RETURN_IF_ERROR(CheckShape(reader.header(), token, name, table));
    for (uint32_t l = 0; l < table.num_layers(); ++l) {
      for (const uint32_t id : token.Experts(l)) {
        ++uses[table.Number({l, id})];
      }
    }
  }
  if (num_tokens == 0) {
    return InvalidArgument(fmt::format("{}: there is no token in it", name));
  }
  return uses;
}

}  // namespace muster::experts
