#include "experts/pack_store.h"

#include <fmt/format.h>

namespace muster::experts {

PackStore::PackStore(std::shared_ptr<const formats::ExpertPack> pack)
    : pack_(std::move(pack)) {
  for (const formats::PackedLayer& layer : pack_->layers) {
    for (const formats::PackedExpert& packed : layer.experts) {
      experts_.push_back({&packed, layer.layout.size_bytes});
    }
  }
}

void PackStore::Reads(uint32_t expert, std::vector<ExpertRead>* reads) const {
  const Expert& e = experts_[expert];
  reads->push_back({e.packed->file, e.packed->offset, e.size_bytes});
}

Status PackStore::Finish(uint32_t expert, size_t /*task*/,
                         std::span<const std::byte* const> /*landed*/,
                         std::byte* slot) const {
  const Expert& e = experts_[expert];
  const Checksum found = ChecksumOf(std::span(slot, e.size_bytes));
  if (found == e.packed->checksum) return {};
  return Corrupt(
      fmt::format("{}: {} bytes at offset {} have the checksum {}, expected {}",
                  pack_->paths[e.packed->file], e.size_bytes, e.packed->offset,
                  ToHex(found), ToHex(e.packed->checksum)));
}

}  // namespace muster::experts
