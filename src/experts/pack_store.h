// Experts as a pack has them: each one read, into its slot, and verified there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experts/expert_store.h"
#include "formats/expert_pack.h"

namespace muster::experts {

class PackStore final : public ExpertStore {
 public:
  // `with_copies`: experts' low-bit copies too, numbered as the experts behind
  // the last of them. REQUIRES: the pack has some then.
  PackStore(std::shared_ptr<const formats::ExpertPack> pack, bool with_copies);

  std::string Name() const override { return "packed, one read an expert"; }
  const std::vector<std::string>& paths() const override { return paths_; }
  bool reads_into_slot() const override { return true; }
  void Reads(uint32_t expert, std::vector<ExpertRead>* reads) const override;
  size_t NumTasks(uint32_t) const override { return 1; }
  Status Finish(uint32_t expert, size_t task,
                std::span<const std::byte* const> landed,
                std::byte* slot) const override;

 private:
  struct Expert {
    const formats::PackedExpert* packed;
    uint32_t file;  // index into paths_
    size_t size_bytes;
  };

  void Add(const std::vector<formats::PackedLayer>& layers,
           const std::vector<std::string>& paths);

  std::shared_ptr<const formats::ExpertPack> pack_;
  std::vector<std::string> paths_;
  std::vector<Expert> experts_;  // by expert number
};

}  // namespace muster::experts
