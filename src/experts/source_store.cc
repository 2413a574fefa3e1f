#include "experts/source_store.h"

namespace muster::experts {

SourceStore::SourceStore(std::vector<std::string> paths,
                         std::vector<SourceLayer> layers)
    : paths_(std::move(paths)) {
  for (SourceLayer& layer : layers) {
    if (layer.experts.empty()) continue;
    converters_.emplace_back(layer.experts[0]);
    for (const model::ExpertRefs& refs : layer.experts) {
      experts_.push_back(
          {.parts = PartsOf(refs), .converter = converters_.size() - 1});
    }
  }
}

void SourceStore::Reads(uint32_t expert, std::vector<ExpertRead>* reads) const {
  for (const SourcePart& part : experts_[expert].parts) {
    if (part.size_bytes == 0) continue;
    reads->push_back({part.file, part.offset, part.size_bytes});
  }
}

size_t SourceStore::NumTasks(uint32_t expert) const {
  return converters_[experts_[expert].converter].num_tasks();
}

Status SourceStore::Finish(uint32_t expert, size_t task,
                           std::span<const std::byte* const> landed,
                           std::byte* slot) const {
  std::array<const std::byte*, kNumParts> parts{};
  size_t read = 0;
  for (size_t i = 0; i < kNumParts; ++i) {
    if (experts_[expert].parts[i].size_bytes != 0) parts[i] = landed[read++];
  }
  converters_[experts_[expert].converter].Convert(task, parts.data(), slot);
  return {};
}

}  // namespace muster::experts
