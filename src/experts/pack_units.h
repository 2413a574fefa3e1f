// The units of a pack: dense tensors, experts and their low-bit copies, each
// with its bytes and its checksum. What is written, checked and repaired one at
// a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pack_manifest.h"
#include "routing/expert_id.h"

namespace muster::experts {

enum class UnitKind : uint8_t { kTensor, kExpert, kCopy };

struct PackUnit {
  UnitKind kind = UnitKind::kTensor;
  size_t tensor = 0;         // index into PackManifest::tensors
  routing::ExpertId expert;  // or which expert
  size_t file = 0;  // 0: dense.bin; then shards of experts, then of copies
  uint64_t offset = 0;
  uint64_t size_bytes = 0;    // what the checksum covers
  uint64_t padded_bytes = 0;  // zeros fill the rest of the last page
};

// In the order of the files' bytes; together they are every byte of every file.
std::vector<PackUnit> UnitsOf(const formats::PackManifest& manifest);

// Files by their number, as PackUnit::file has it.
size_t NumFiles(const formats::PackManifest& manifest);
std::string FileName(const formats::PackManifest& manifest, size_t file);
uint64_t FileBytes(const formats::PackManifest& manifest, size_t file);

Checksum& ChecksumOfUnit(formats::PackManifest& manifest, const PackUnit& unit);
const Checksum& ChecksumOfUnit(const formats::PackManifest& manifest,
                               const PackUnit& unit);

// For people: "layer 3, expert 17", "layer 3, low-bit copy of expert 17" or
// "tensor 'output.weight'".
std::string Describe(const formats::PackManifest& manifest,
                     const PackUnit& unit);

}  // namespace muster::experts
