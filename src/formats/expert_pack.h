// An expert pack that is open: where each routed expert stands, ready to be
// read with one read and used as it is. The rest of the model is in ModelFiles.
// The format: docs/formats/pack.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/status.h"
#include "formats/model_files.h"
#include "tensor/expert_layout.h"

namespace muster::formats {

// An expert's bytes: ExpertLayout::size_bytes of them, whole pages.
struct PackedExpert {
  uint32_t file = 0;    // index into ExpertPack::paths, or its copy_paths
  uint64_t offset = 0;  // a multiple of kExpertAlignment
  Checksum checksum;    // of all its bytes
};

struct PackedLayer {
  ExpertLayout layout;                // of each of its experts
  std::vector<PackedExpert> experts;  // by index; none: a dense layer
};

// Immutable; what it says has been checked against the files' sizes.
struct ExpertPack {
  std::vector<std::string> paths;   // of the shards with experts
  std::vector<PackedLayer> layers;  // by layer of the model

  // Low-bit copies of the experts: matrices of the same rows and columns in
  // types of fewer bytes. Layers and experts as in `layers`; empty: none.
  std::vector<std::string> copy_paths;  // of the shards with copies
  std::vector<PackedLayer> copies;

  // Of a tensor in dense.bin, by its offset; nullptr: none begins there.
  const Checksum* DenseChecksum(uint64_t offset) const;
  struct DenseTensor {
    uint64_t offset = 0;
    Checksum checksum;
  };
  std::vector<DenseTensor> dense;  // ascending offsets
};

// True when the folder holds a pack, be it damaged.
bool IsPack(const std::string& folder);

// Opens a pack. `format` is the source's, tensors that are experts are there
// under their own names with `packed` set, and `pack` is filled. Checks the
// manifest and the descriptions, and every file's size; reads no weights.
Result<ModelFiles> OpenPack(const std::string& folder);

}  // namespace muster::formats
