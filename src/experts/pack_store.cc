#include "experts/pack_store.h"

#include <fmt/format.h>

#include "base/check.h"

namespace muster::experts {

PackStore::PackStore(std::shared_ptr<const formats::ExpertPack> pack,
                     bool with_copies)
    : pack_(std::move(pack)) {
  Add(pack_->layers, pack_->paths);
  if (!with_copies) return;
  CHECK(!pack_->copies.empty());
  Add(pack_->copies, pack_->copy_paths);
}

void PackStore::Add(const std::vector<formats::PackedLayer>& layers,
                    const std::vector<std::string>& paths) {
  const auto first_file = static_cast<uint32_t>(paths_.size());
  paths_.insert(paths_.end(), paths.begin(), paths.end());
  for (const formats::PackedLayer& layer : layers) {
    for (const formats::PackedExpert& packed : layer.experts) {
      experts_.push_back(
          {&packed, first_file + packed.file, layer.layout.size_bytes});
    }
  }
}

void PackStore::Reads(uint32_t expert, std::vector<ExpertRead>* reads) const {
  const Expert& e = experts_[expert];
  reads->push_back({e.file, e.packed->offset, e.size_bytes});
}

Status PackStore::Finish(uint32_t expert, size_t /*task*/,
                         std::span<const std::byte* const> /*landed*/,
                         std::byte* slot) const {
  const Expert& e = experts_[expert];
  const Checksum found = ChecksumOf(std::span(slot, e.size_bytes));
  if (found == e.packed->checksum) return {};
  return Corrupt(
      fmt::format("{}: {} bytes at offset {} have the checksum {}, expected {}",
                  paths_[e.file], e.size_bytes, e.packed->offset, ToHex(found),
                  ToHex(e.packed->checksum)));
}

}  // namespace muster::experts
