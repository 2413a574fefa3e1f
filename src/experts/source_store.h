// Experts as the model's own files have them: GGUF or safetensors, gate, up and
// down in three tensors. A miss costs three reads and a conversion.
#pragma once

#include <string>
#include <vector>

#include "experts/expert_store.h"
#include "experts/source_expert.h"
#include "model/weight_index.h"

namespace muster::experts {

class SourceStore final : public ExpertStore {
 public:
  // A layer's experts are alike in type and shape; a dense layer has none.
  struct SourceLayer {
    std::vector<model::ExpertRefs> experts;
  };
  // layers: all, in order; their files are among `paths`.
  SourceStore(std::vector<std::string> paths, std::vector<SourceLayer> layers);

  std::string Name() const override {
    return "the model's own files, converted as they come";
  }
  const std::vector<std::string>& paths() const override { return paths_; }
  bool reads_into_slot() const override { return false; }
  void Reads(uint32_t expert, std::vector<ExpertRead>* reads) const override;
  size_t NumTasks(uint32_t expert) const override;
  Status Finish(uint32_t expert, size_t task,
                std::span<const std::byte* const> landed,
                std::byte* slot) const override;

 private:
  struct Expert {
    SourceParts parts;
    size_t converter = 0;
  };

  std::vector<std::string> paths_;
  std::vector<ExpertConverter> converters_;  // one a layer with experts
  std::vector<Expert> experts_;              // by expert number
};

}  // namespace muster::experts
