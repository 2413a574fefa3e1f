// The manifest of an expert pack, as a value. The format: docs/formats/pack.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "base/status.h"
#include "formats/expert_pack.h"
#include "formats/model_files.h"

namespace muster::formats {

// Grows when an older reader would misread a newer pack.
inline constexpr uint32_t kPackVersion = 1;
inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kDenseName = "dense.bin";
// The metadata of a GGUF source: a GGUF file without tensors.
inline constexpr std::string_view kMetadataName = "metadata.gguf";

struct PackManifest {
  struct Tensor {
    TensorInfo info;  // `file` is 0; offsets are of dense.bin
    Checksum checksum;
  };
  struct Description {
    std::string name;  // one of DescriptionNames()
    uint64_t size_bytes = 0;
    Checksum checksum;
  };
  struct SourceFile {
    std::string name;  // without its folder; for people
    uint64_t size_bytes = 0;
    std::string sha256;  // 64 hexadecimal digits
  };

  std::string muster_version;  // that wrote it
  std::string created;         // UTC, ISO 8601
  Format source_format = Format::kGguf;
  std::vector<SourceFile> source_files;
  std::vector<Description> descriptions;
  std::vector<Tensor> tensors;  // in dense.bin, in its order
  uint64_t dense_bytes = 0;     // of dense.bin
  std::vector<TensorInfo> packed_tensors;
  std::vector<uint64_t> shard_bytes;  // of experts-00000.bin and so on
  std::vector<PackedLayer> layers;
  // Low-bit copies, as in ExpertPack; both empty: none.
  std::vector<uint64_t> copy_shard_bytes;  // of copies-00000.bin and so on
  std::vector<PackedLayer> copies;
};

// "experts-00007.bin".
std::string ShardName(size_t number);
// "copies-00007.bin".
std::string CopyShardName(size_t number);
// Names that a description may have: nothing else is opened.
std::vector<std::string_view> DescriptionNames(Format source);
// True when tensors of `type` and `shape` can be: whole blocks, no overflow.
// Fills `size_bytes` of `tensor`.
bool FillSize(TensorInfo& tensor);

// With its own checksum at the end.
std::string WriteManifest(const PackManifest& manifest);

// Checks the text's checksum, then parses. `path` is for messages.
Result<PackManifest> ReadManifest(std::string_view text,
                                  const std::string& path);

// Everything but the checksum of the text itself. All offsets and sizes agree
// with one another: tensors follow each other without holes or overlap, and so
// do the experts of each shard; copies are of all experts, in their shapes.
Result<PackManifest> ParseManifest(std::string_view text,
                                   const std::string& path);

}  // namespace muster::formats
