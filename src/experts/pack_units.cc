#include "experts/pack_units.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::experts {

using formats::PackManifest;

namespace {

void AddExperts(const std::vector<formats::PackedLayer>& layers, UnitKind kind,
                size_t first_file, std::vector<PackUnit>& units) {
  for (uint32_t l = 0; l < layers.size(); ++l) {
    const formats::PackedLayer& layer = layers[l];
    for (uint32_t e = 0; e < layer.experts.size(); ++e) {
      units.push_back({.kind = kind,
                       .expert = {l, e},
                       .file = first_file + layer.experts[e].file,
                       .offset = layer.experts[e].offset,
                       .size_bytes = layer.layout.size_bytes,
                       .padded_bytes = layer.layout.size_bytes});
    }
  }
}

}  // namespace

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
  AddExperts(manifest.layers, UnitKind::kExpert, 1, units);
  AddExperts(manifest.copies, UnitKind::kCopy, 1 + manifest.shard_bytes.size(),
             units);
  std::sort(units.begin() + static_cast<ptrdiff_t>(num_dense), units.end(),
            [](const PackUnit& a, const PackUnit& b) {
              return a.file != b.file ? a.file < b.file : a.offset < b.offset;
            });
  return units;
}

size_t NumFiles(const PackManifest& manifest) {
  return 1 + manifest.shard_bytes.size() + manifest.copy_shard_bytes.size();
}

std::string FileName(const PackManifest& manifest, size_t file) {
  if (file == 0) return std::string(formats::kDenseName);
  const size_t num_shards = manifest.shard_bytes.size();
  return file <= num_shards ? formats::ShardName(file - 1)
                            : formats::CopyShardName(file - 1 - num_shards);
}

uint64_t FileBytes(const PackManifest& manifest, size_t file) {
  if (file == 0) return manifest.dense_bytes;
  const size_t num_shards = manifest.shard_bytes.size();
  return file <= num_shards ? manifest.shard_bytes[file - 1]
                            : manifest.copy_shard_bytes[file - 1 - num_shards];
}

Checksum& ChecksumOfUnit(PackManifest& manifest, const PackUnit& unit) {
  const auto [layer, index] = unit.expert;
  switch (unit.kind) {
    case UnitKind::kTensor:
      break;
    case UnitKind::kExpert:
      return manifest.layers[layer].experts[index].checksum;
    case UnitKind::kCopy:
      return manifest.copies[layer].experts[index].checksum;
  }
  return manifest.tensors[unit.tensor].checksum;
}

const Checksum& ChecksumOfUnit(const PackManifest& manifest,
                               const PackUnit& unit) {
  return ChecksumOfUnit(const_cast<PackManifest&>(manifest), unit);
}

std::string Describe(const PackManifest& manifest, const PackUnit& unit) {
  const auto [layer, index] = unit.expert;
  switch (unit.kind) {
    case UnitKind::kTensor:
      break;
    case UnitKind::kExpert:
      return fmt::format("layer {}, expert {}", layer, index);
    case UnitKind::kCopy:
      return fmt::format("layer {}, low-bit copy of expert {}", layer, index);
  }
  return fmt::format("tensor '{}'", manifest.tensors[unit.tensor].info.name);
}

}  // namespace muster::experts
