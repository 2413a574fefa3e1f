#include "experts/pack_units.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::experts {

using formats::PackManifest;

std::vector<PackUnit> UnitsOf(const PackManifest& manifest) {
  std::vector<PackUnit> units;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const formats::TensorInfo& tensor = manifest.tensors[i].info;
    if (tensor.size_bytes == 0) continue;
    units.push_back(
        {.tensor = i,
         .offset = tensor.offset,
         .size_bytes = tensor.size_bytes,
         .padded_bytes = (tensor.size_bytes + kExpertAlignment - 1) /
                         kExpertAlignment * kExpertAlignment});
  }
  const size_t num_dense = units.size();
  for (uint32_t l = 0; l < manifest.layers.size(); ++l) {
    const formats::PackedLayer& layer = manifest.layers[l];
    for (uint32_t e = 0; e < layer.experts.size(); ++e) {
      units.push_back({.is_expert = true,
                       .expert = {l, e},
                       .file = size_t{layer.experts[e].file} + 1,
                       .offset = layer.experts[e].offset,
                       .size_bytes = layer.layout.size_bytes,
                       .padded_bytes = layer.layout.size_bytes});
    }
  }
  std::sort(units.begin() + static_cast<ptrdiff_t>(num_dense), units.end(),
            [](const PackUnit& a, const PackUnit& b) {
              return a.file != b.file ? a.file < b.file : a.offset < b.offset;
            });
  return units;
}

size_t NumFiles(const PackManifest& manifest) {
  return 1 + manifest.shard_bytes.size();
}

std::string FileName(size_t file) {
  return file == 0 ? std::string(formats::kDenseName)
                   : formats::ShardName(file - 1);
}

uint64_t FileBytes(const PackManifest& manifest, size_t file) {
  return file == 0 ? manifest.dense_bytes : manifest.shard_bytes[file - 1];
}

Checksum& ChecksumOfUnit(PackManifest& manifest, const PackUnit& unit) {
  if (!unit.is_expert) return manifest.tensors[unit.tensor].checksum;
  return manifest.layers[unit.expert.layer].experts[unit.expert.index].checksum;
}

const Checksum& ChecksumOfUnit(const PackManifest& manifest,
                               const PackUnit& unit) {
  return ChecksumOfUnit(const_cast<PackManifest&>(manifest), unit);
}

std::string Describe(const PackManifest& manifest, const PackUnit& unit) {
  return unit.is_expert ? fmt::format("layer {}, expert {}", unit.expert.layer,
                                      unit.expert.index)
                        : fmt::format("tensor '{}'",
                                      manifest.tensors[unit.tensor].info.name);
}

}  // namespace muster::experts
