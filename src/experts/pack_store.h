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
  explicit PackStore(std::shared_ptr<const formats::ExpertPack> pack);

  std::string Name() const override { return "packed, one read an expert"; }
  const std::vector<std::string>& paths() const override {
    return pack_->paths;
  }
  bool reads_into_slot() const override { return true; }
  void Reads(uint32_t expert, std::vector<ExpertRead>* reads) const override;
  size_t NumTasks(uint32_t) const override { return 1; }
  Status Finish(uint32_t expert, size_t task,
                std::span<const std::byte* const> landed,
                std::byte* slot) const override;

 private:
  struct Expert {
    const formats::PackedExpert* packed;
    size_t size_bytes;
  };

  std::shared_ptr<const formats::ExpertPack> pack_;
  std::vector<Expert> experts_;  // by expert number
};

}  // namespace muster::experts
