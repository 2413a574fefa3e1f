// How often a run used each expert of a model, kept as text for the next run:
//
//   muster expert uses 1
//   model 0f1e...            (identity, 32 hexadecimal digits)
//   12 0 3 7                 (a line for each layer: tokens that used each
//                             of its experts; empty: a dense layer)
//   checksum 4d5c...         (XXH3-128 of all lines before)
#pragma once

#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "base/status.h"
#include "experts/expert_table.h"
#include "formats/model_files.h"

namespace muster::experts {

// What a reader takes.
inline constexpr uint64_t kMaxUsesBytes = uint64_t{64} << 20;

// The same for the same tensors by name, type and shape, wherever they lie: a
// pack and its source share it, and so do models that differ in weights alone.
Checksum ModelIdentity(const formats::ModelFiles& files);

//   uses: [num_experts]
std::string WriteUses(const Checksum& model, const ExpertTable& table,
                      std::span<const uint64_t> uses);

// [num_experts]. Fails with kCorrupt, saying what is wrong, on anything that
// WriteUses would not have written for this model.
Result<std::vector<uint64_t>> ParseUses(std::string_view text,
                                        const Checksum& model,
                                        const ExpertTable& table);

// The same of a recorded routing (routing_trace.h). Blocks. Fails as
// TraceReader does, and with kInvalidArgument when the trace is of a model of
// another shape or has no token.
Result<std::vector<uint64_t>> CountUses(std::istream& trace,
                                        const std::string& name,
                                        const ExpertTable& table);

}  // namespace muster::experts
