#include "experts/routing_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace muster::experts {

Result<RoutingTrace> ReadTrace(std::istream& in, const std::string& name) {
  TraceReader reader(in, name);
  RoutingTrace trace;
  TokenRouting token;
  uint32_t largest = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool there_is_one, reader.Next(&token));
    if (!there_is_one) break;
    const size_t begin = trace.ids.size();
    trace.ids.insert(trace.ids.end(), token.ids.begin(), token.ids.end());
    for (const uint32_t end : token.ends) trace.ends.push_back(begin + end);
    for (const uint32_t id : token.ids) largest = std::max(largest, id);
    trace.num_layers = token.num_layers();
    ++trace.num_tokens;
  }
  if (trace.num_tokens == 0) {
    return Corrupt(fmt::format("{}: no token, expected at least one", name));
  }
  trace.header = reader.header();
  trace.num_experts = trace.header.num_experts;
  if (!trace.num_experts.empty()) return trace;

  trace.num_experts.resize(trace.num_layers);
  for (size_t layer = 0; layer < trace.num_layers; ++layer) {
    for (size_t t = 0; t < trace.num_tokens; ++t) {
      if (trace.Experts(t, layer).empty()) continue;
      trace.num_experts[layer] = largest + 1;
      break;
    }
  }
  if (uint64_t{largest + 1} * trace.num_layers > kMaxTraceExpertsInAll) {
    return Corrupt(fmt::format(
        "{}: {} layers with ids up to {}, expected at most {} experts in all",
        name, trace.num_layers, largest, kMaxTraceExpertsInAll));
  }
  return trace;
}

void AppendTraceHeader(const TraceHeader& header, std::string* out) {
  nlohmann::ordered_json json;
  json["model"] = header.model;
  json["num_experts"] = header.num_experts;
  json["expert_bytes"] = header.expert_bytes;
  *out += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n";
}

void AppendTraceToken(const TokenRouting& token, std::string* out) {
  const auto to = std::back_inserter(*out);
  fmt::format_to(to, R"({{"token":{},"experts":[)", token.token);
  for (size_t layer = 0; layer < token.num_layers(); ++layer) {
    fmt::format_to(to, "{}[{}]", layer == 0 ? "" : ",",
                   fmt::join(token.Experts(layer), ","));
  }
  *out += "]}\n";
}

}  // namespace muster::experts
