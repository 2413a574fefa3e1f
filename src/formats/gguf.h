// The GGUF container, versions 2 and 3, little-endian.
// Source: the GGUF specification (docs/gguf.md of ggml). What is accepted and
// refused: docs/formats/gguf.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/metadata.h"
#include "formats/model_files.h"
#include "io/file.h"

namespace muster::formats {

// One file's header. `file` of each tensor is 0; offsets are of the file.
struct GgufHeader {
  uint32_t version = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
  uint64_t metadata_end_offset = 0;  // where the last key's value ends
  uint64_t end_offset = 0;           // where the last tensor's bytes end
};

// Reads and checks the header; every tensor is inside the file.
Result<GgufHeader> ReadGgufHeader(const io::File& file);

// Opens a model of one file or, when the file is a shard of a split, of all its
// shards, which stand beside it.
Result<ModelFiles> OpenGguf(const std::string& path);

}  // namespace muster::formats
