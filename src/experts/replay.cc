#include "experts/replay.h"

#include <algorithm>

#include "base/check.h"

namespace muster::experts {
namespace {

void AddEvent(uint32_t layer, Replay& replay) {
  const size_t begin = replay.events.empty() ? 0 : replay.events.back().end;
  if (replay.experts.size() == begin) return;  // a dense layer
  replay.events.push_back({.layer = layer, .end = replay.experts.size()});
}

// The union of what the first tokens take, in the order of their ids.
void AddPrefill(const RoutingTrace& trace, std::span<const uint32_t> first,
                Replay& replay) {
  for (uint32_t layer = 0; layer < replay.num_layers; ++layer) {
    std::vector<uint32_t> tokens(replay.num_experts[layer]);
    for (size_t t = 0; t < replay.num_prefill_tokens; ++t) {
      for (const uint32_t id : trace.Experts(t, layer)) ++tokens[id];
    }
    for (uint32_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id] == 0) continue;
      replay.experts.push_back(first[layer] + id);
      replay.tokens.push_back(tokens[id]);
    }
    AddEvent(layer, replay);
  }
  replay.num_prefill_events = replay.events.size();
}

}  // namespace

Replay MakeReplay(const RoutingTrace& trace, size_t prefill_tokens) {
  CHECK_LE(prefill_tokens, trace.num_tokens);
  Replay replay = {.num_layers = static_cast<uint32_t>(trace.num_layers),
                   .num_tokens = trace.num_tokens,
                   .num_prefill_tokens = prefill_tokens,
                   .num_experts = trace.num_experts};
  std::vector<uint32_t> first;  // of each layer
  for (uint32_t layer = 0; layer < replay.num_layers; ++layer) {
    first.push_back(replay.num_experts_in_all());
    replay.layer_of.insert(replay.layer_of.end(), trace.num_experts[layer],
                           layer);
  }
  AddPrefill(trace, first, replay);
  for (size_t t = prefill_tokens; t < trace.num_tokens; ++t) {
    replay.token_events.push_back(replay.events.size());
    for (uint32_t layer = 0; layer < replay.num_layers; ++layer) {
      for (const uint32_t id : trace.Experts(t, layer)) {
        replay.experts.push_back(first[layer] + id);
        replay.tokens.push_back(1);
      }
      AddEvent(layer, replay);
    }
  }
  replay.token_events.push_back(replay.events.size());
  return replay;
}

}  // namespace muster::experts
