// The reader of routing traces on any bytes, and the simulator on what it
// takes.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "experts/routing_trace.h"
#include "experts/simulator.h"

namespace {

using namespace muster::experts;  // NOLINT: one small file

constexpr size_t kMaxUses = 10'000;        // so that an input takes no second
constexpr uint64_t kMaxExperts = 100'000;  // likewise

void ReplayWith(const Replay& replay, std::string_view policy) {
  const std::vector<uint64_t> one(replay.num_layers, 1);
  const uint64_t least = LeastCapacity(replay, one);
  auto made = MakeSimulatedPolicy(policy, replay);
  const Simulation simulation =
      Simulate(replay, **made, {.capacity = least, .per_expert = one});
  CHECK_EQ(simulation.decode.uses() + simulation.prefill.uses(),
           replay.experts.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(data, data + size));
  const auto trace = ReadTrace(in, "fuzz");
  if (!trace.ok() || trace->ids.size() > kMaxUses) return 0;
  uint64_t in_all = 0;
  for (const uint32_t n : trace->num_experts) in_all += n;
  if (in_all > kMaxExperts) return 0;
  const Replay replay = MakeReplay(*trace, trace->num_tokens / 2);
  for (const std::string_view policy : SimulatedPolicyNames()) {
    ReplayWith(replay, policy);
  }
  return 0;
}
