// The model that a pack is made from, and repaired from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "experts/expert_order.h"
#include "experts/pack_units.h"
#include "experts/source_expert.h"
#include "formats/pack_manifest.h"
#include "io/file.h"
#include "io/output_file.h"
#include "model/config.h"
#include "model/weight_index.h"
#include "tensor/aligned_buffer.h"

namespace muster::experts {

// Memory of one thread that produces units, kept between them.
struct UnitBuffers {
  AlignedBuffer source;  // as the files have it
  AlignedBuffer slot;    // as the pack has it
  AlignedBuffer copy;    // likewise, in fewer bits
};

// Immutable: any number of threads may produce units.
class PackSource {
 public:
  // Opens and binds a model. Fails with kInvalidArgument on a pack.
  static Result<std::unique_ptr<PackSource>> Open(const std::string& path);

  const model::ModelConfig& config() const { return config_; }

  // The files with the tensors, as the manifest lists them, but for SHA-256;
  // and when they were changed last (nanoseconds).
  Result<std::vector<formats::PackManifest::SourceFile>> Files() const;
  Result<std::vector<int64_t>> ModifiedTimes() const;
  std::string PathOfFile(size_t i) const { return files_.paths[i]; }

  // The manifest of its pack, complete but for checksums, SHA-256 and time.
  // Experts stand layer by layer in `order`; a shard holds at most
  // `shard_bytes`, unless an expert alone is larger. With `copies`, low-bit
  // copies of that type stand in the same order in shards of their own: fails
  // with kInvalidArgument where the experts cannot have them.
  Result<formats::PackManifest> Plan(const ExpertOrder& order,
                                     uint64_t shard_bytes,
                                     std::optional<DType> copies) const;

  // A description's text, by its name; nullopt: the model has none.
  Result<std::optional<std::string>> Description(std::string_view name) const;

  // Reads and converts a unit, writes it to `out` and returns its checksum.
  // With `expected`, writes nothing unless the checksum is that; then fails
  // with kCorrupt. Fails with kInvalidArgument when the model has no such unit.
  // Blocks. Memory: an expert twice, or some MiB of a tensor.
  Result<Checksum> Produce(const formats::PackManifest& manifest,
                           const PackUnit& unit, const Checksum* expected,
                           const io::OutputFile& out,
                           UnitBuffers& buffers) const;

 private:
  PackSource() = default;
  bool IsRoutedExpert(const formats::TensorInfo& tensor) const;
  void CollectExpertRanges();
  Result<Checksum> ProduceExpert(const formats::PackManifest& manifest,
                                 const PackUnit& unit, const Checksum* expected,
                                 const io::OutputFile& out,
                                 UnitBuffers& buffers) const;
  Result<std::span<std::byte>> ReadExpert(const formats::PackManifest& manifest,
                                          const PackUnit& unit,
                                          UnitBuffers& buffers) const;
  Result<Checksum> ProduceTensor(const formats::PackManifest& manifest,
                                 const PackUnit& unit, const Checksum* expected,
                                 const io::OutputFile& out,
                                 UnitBuffers& buffers) const;
  Result<Checksum> CopyTensor(const formats::TensorInfo& tensor,
                              const PackUnit& unit, const io::OutputFile* out,
                              UnitBuffers& buffers) const;

  formats::ModelFiles files_;
  std::vector<io::File> open_;
  model::ModelConfig config_;
  model::WeightIndex index_;
  std::vector<ExpertLayout> layouts_;  // [num_layers]
  // Where routed experts begin: (file, offset), sorted.
  std::vector<std::pair<uint32_t, uint64_t>> expert_starts_;
};

}  // namespace muster::experts
