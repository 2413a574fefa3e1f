// Recorded routing: which experts each token took, a JSON line a token. What
// `muster run --record-routing` writes and `muster simulate` reads;
// docs/simulate.md shows the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::experts {

// What a reader takes; beyond it is kCorrupt.
inline constexpr size_t kMaxTraceLineBytes = size_t{1} << 20;
inline constexpr size_t kMaxTraceLayers = 4096;
inline constexpr uint32_t kMaxTraceExperts = 1 << 16;       // of a layer
inline constexpr uint64_t kMaxTraceExpertsInAll = 1 << 22;  // of all layers

// The first line of a trace, which may be absent. Empty: not said.
struct TraceHeader {
  std::string model;
  std::vector<uint32_t> num_experts;   // [num_layers]; 0: a dense layer
  std::vector<uint64_t> expert_bytes;  // [num_layers]; of one expert
};

// The experts that one token took in each layer.
struct TokenRouting {
  uint64_t token = 0;          // its number
  std::vector<uint32_t> ids;   // layer after layer
  std::vector<uint32_t> ends;  // [num_layers] of each layer's ids

  size_t num_layers() const { return ends.size(); }
  std::span<const uint32_t> Experts(size_t layer) const {
    const uint32_t begin = layer == 0 ? 0 : ends[layer - 1];
    return std::span(ids).subspan(begin, ends[layer] - begin);
  }
};

// Reads token by token in bounded memory. `in` must outlive it. One thread at a
// time.
class TraceReader {
 public:
  // `name`: what messages call the trace.
  TraceReader(std::istream& in, std::string name);
  ~TraceReader();

  // The next token; false: there is none. Blocks. Fails with kCorrupt, naming
  // the line, what is there and what was expected, and with kIoError. All
  // tokens have the same number of layers, ids fit the header, and none stands
  // twice in a layer.
  Result<bool> Next(TokenRouting* out);

  // Complete once Next was called.
  const TraceHeader& header() const;

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

// A whole trace in memory.
struct RoutingTrace {
  TraceHeader header;
  size_t num_layers = 0;
  size_t num_tokens = 0;
  std::vector<uint32_t> ids;  // token after token, layer after layer
  std::vector<size_t> ends;   // [num_tokens, num_layers]
  // The header's; without one, the largest id of any layer and 1, in each layer
  // that has experts.
  std::vector<uint32_t> num_experts;  // [num_layers]

  std::span<const uint32_t> Experts(size_t token, size_t layer) const {
    const size_t at = token * num_layers + layer;
    const size_t begin = at == 0 ? 0 : ends[at - 1];
    return std::span(ids).subspan(begin, ends[at] - begin);
  }
};

// Fails as TraceReader::Next does, and on a trace without a token.
Result<RoutingTrace> ReadTrace(std::istream& in, const std::string& name);

// Both append a line to `out`.
void AppendTraceHeader(const TraceHeader& header, std::string* out);
void AppendTraceToken(const TokenRouting& token, std::string* out);

}  // namespace muster::experts
