#include "cli/routing_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace muster::cli {
namespace {

experts::TraceHeader HeaderOf(const runtime::LoadedModel& model) {
  experts::TraceHeader header = {.model = model.config.name};
  for (size_t layer = 0; layer < model.config.layers.size(); ++layer) {
    const model::LayerConfig& config = model.config.layers[layer];
    header.num_experts.push_back(config.is_moe ? config.router.num_experts : 0);
    uint64_t size_bytes = 0;
    if (config.is_moe && model.tiers != nullptr) {
      const ExpertLayout& layout =
          model.tiers->table().layer(static_cast<uint32_t>(layer)).layout;
      size_bytes = layout.size_bytes;
    } else if (config.is_moe) {
      const auto& expert = model.weights.layers[layer].experts.front();
      size_bytes = expert.gate.size_bytes() + expert.up.size_bytes() +
                   expert.down.size_bytes();
    }
    header.expert_bytes.push_back(size_bytes);
  }
  return header;
}

}  // namespace

Result<std::unique_ptr<RoutingRecorder>> RoutingRecorder::Create(
    const std::string& path) {
  std::ofstream file(path);
  if (!file) {
    return IoError(fmt::format("cannot write the routing to {}: {}", path,
                               std::strerror(errno)));
  }
  return std::unique_ptr<RoutingRecorder>(
      new RoutingRecorder(path, std::move(file)));
}

void RoutingRecorder::Attach(runtime::Engine& engine) {
  CHECK(engine_ == nullptr);
  engine_ = &engine;
  engine.KeepRoutings(&routings_);
  experts::AppendTraceHeader(HeaderOf(engine.model()), &line_);
  file_ << line_;
}

Result<std::span<float>> RoutingRecorder::Append(
    std::span<const int32_t> tokens) {
  CHECK(engine_ != nullptr);
  // The engine keeps the last step's routing, so it gets a step at a time; more
  // than it has room for it gets whole, and says so.
  const size_t room = engine_->context_length() - engine_->position();
  const size_t step =
      tokens.size() <= room ? engine_->chunk_tokens() : tokens.size();
  while (tokens.size() > step) {
    const auto logits = engine_->Append(tokens.first(step));
    if (!logits.ok()) return logits;
    WriteStep(step);
    tokens = tokens.subspan(step);
  }
  const auto logits = engine_->Append(tokens);
  if (logits.ok()) WriteStep(tokens.size());
  return logits;
}

void RoutingRecorder::WriteStep(size_t num_tokens) {
  line_.clear();
  for (size_t t = 0; t < num_tokens; ++t) {
    token_.ids.clear();
    token_.ends.clear();
    for (const routing::Routing& layer : routings_) {
      if (layer.num_tokens != 0) {
        CHECK_EQ(layer.num_tokens, num_tokens);
        const uint32_t* first = layer.ids.data() + t * layer.top_k;
        token_.ids.insert(token_.ids.end(), first, first + layer.top_k);
      }
      token_.ends.push_back(static_cast<uint32_t>(token_.ids.size()));
    }
    experts::AppendTraceToken(token_, &line_);
    ++token_.token;
  }
  file_ << line_;
}

Status RoutingRecorder::Finish() {
  file_.close();
  if (!file_) return IoError(fmt::format("could not write all of {}", path_));
  return {};
}

}  // namespace muster::cli
