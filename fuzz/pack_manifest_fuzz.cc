// The manifest of an expert pack, from a stranger who knows how to compute its
// checksum: what is accepted can be written and read again, to the same text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pack_manifest.h"

namespace {

// Whoever reads experts trusts these.
void CheckExperts(const std::vector<muster::formats::PackedLayer>& layers,
                  const std::vector<uint64_t>& shards) {
  for (const auto& layer : layers) {
    for (const auto& expert : layer.experts) {
      const uint64_t shard_bytes = shards.at(expert.file);
      if (expert.offset % muster::kExpertAlignment != 0 ||
          layer.layout.size_bytes > shard_bytes ||
          expert.offset > shard_bytes - layer.layout.size_bytes) {
        __builtin_trap();
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::formats::PackManifest;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = muster::formats::ParseManifest(text, "fuzz");
  if (!parsed.ok()) return 0;
  const std::string written = muster::formats::WriteManifest(*parsed);
  const auto again = muster::formats::ReadManifest(written, "fuzz");
  if (!again.ok() || muster::formats::WriteManifest(*again) != written) {
    __builtin_trap();
  }
  CheckExperts(again->layers, again->shard_bytes);
  CheckExperts(again->copies, again->copy_shard_bytes);
  for (const auto& tensor : again->tensors) {
    if (tensor.info.size_bytes > again->dense_bytes ||
        tensor.info.offset > again->dense_bytes - tensor.info.size_bytes) {
      __builtin_trap();
    }
  }
  return 0;
}
