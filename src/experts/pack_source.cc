#include "experts/pack_source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "experts/expert_copy.h"
#include "formats/gguf.h"
#include "kernels/quantize.h"
#include "model/config_reader.h"

namespace muster::experts {
namespace {

namespace fs = std::filesystem;
using formats::PackManifest;
using formats::TensorInfo;

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

std::span<std::byte> Room(AlignedBuffer& buffer, size_t size_bytes) {
  if (buffer.size_bytes() < size_bytes) buffer = AlignedBuffer(size_bytes);
  return buffer.bytes().first(size_bytes);
}

// Sizes and names of the experts' places, shard by shard.
class Placer {
 public:
  Placer(std::vector<uint64_t>& shards, uint64_t shard_bytes)
      : shards_(shards), most_(shard_bytes) {}

  formats::PackedLayer Place(const ExpertLayout& layout,
                             const std::vector<uint32_t>& order) {
    formats::PackedLayer layer{.layout = layout, .experts = {}};
    layer.experts.resize(order.size());
    for (const uint32_t expert : order) {
      layer.experts[expert] = PlaceOne(layout.size_bytes);
    }
    return layer;
  }

 private:
  formats::PackedExpert PlaceOne(uint64_t size_bytes) {
    if (shards_.empty() || shards_.back() + size_bytes > most_) {
      shards_.push_back(0);
    }
    const formats::PackedExpert placed = {
        .file = static_cast<uint32_t>(shards_.size() - 1),
        .offset = shards_.back(),
        .checksum = {}};
    shards_.back() += size_bytes;
    return placed;
  }

  std::vector<uint64_t>& shards_;
  const uint64_t most_;
};

// The keys of a GGUF file as they stand there, and no tensor.
Result<std::string> MetadataOnly(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, io::File::Open(path));
  ASSIGN_OR_RETURN(const auto header, formats::ReadGgufHeader(file));
  std::string text(header.metadata_end_offset, '\0');
  RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  constexpr size_t kNumTensorsAt = 8;  // behind magic number and version
  std::memset(text.data() + kNumTensorsAt, 0, sizeof(uint64_t));
  return text;
}

Status NotThatModel(const std::string& path, const std::string& what) {
  return InvalidArgument(fmt::format(
      "{}: not the model that the pack was made from: {}", path, what));
}

}  // namespace

Result<std::unique_ptr<PackSource>> PackSource::Open(const std::string& path) {
  std::unique_ptr<PackSource> source(new PackSource());
  ASSIGN_OR_RETURN(source->files_, formats::OpenModelFiles(path));
  if (source->files_.pack != nullptr) {
    return InvalidArgument(fmt::format(
        "{}: an expert pack already; name the model that it was made from",
        path));
  }
  ASSIGN_OR_RETURN(const auto read, model::ReadConfig(source->files_));
  ASSIGN_OR_RETURN(source->index_, model::BindWeights(source->files_, read));
  source->config_ = read.config;
  ASSIGN_OR_RETURN(source->layouts_,
                   LayoutsOf(source->index_, source->config_));
  for (const std::string& file : source->files_.paths) {
    ASSIGN_OR_RETURN(auto open, io::File::Open(file));
    source->open_.push_back(std::move(open));
  }
  source->CollectExpertRanges();
  return source;
}

void PackSource::CollectExpertRanges() {
  for (size_t l = 0; l < index_.layers.size(); ++l) {
    if (!config_.layers[l].is_moe) continue;
    for (const model::ExpertRefs& expert : index_.layers[l].experts) {
      for (const SourcePart& part : PartsOf(expert)) {
        if (part.size_bytes == 0) continue;
        expert_starts_.emplace_back(part.file, part.offset);
      }
    }
  }
  std::sort(expert_starts_.begin(), expert_starts_.end());
}

bool PackSource::IsRoutedExpert(const TensorInfo& tensor) const {
  const auto it = std::lower_bound(expert_starts_.begin(), expert_starts_.end(),
                                   std::pair(tensor.file, tensor.offset));
  return it != expert_starts_.end() && it->first == tensor.file &&
         it->second < tensor.offset + tensor.size_bytes;
}

Result<std::vector<PackManifest::SourceFile>> PackSource::Files() const {
  std::vector<PackManifest::SourceFile> files;
  for (const io::File& file : open_) {
    files.push_back({.name = fs::path(file.path()).filename(),
                     .size_bytes = file.size_bytes(),
                     .sha256 = {}});
  }
  return files;
}

Result<std::vector<int64_t>> PackSource::ModifiedTimes() const {
  std::vector<int64_t> times;
  for (const std::string& path : files_.paths) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) {
      return IoError(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    times.push_back(int64_t{info.st_mtim.tv_sec} * 1'000'000'000 +
                    info.st_mtim.tv_nsec);
  }
  return times;
}

Result<PackManifest> PackSource::Plan(const ExpertOrder& order,
                                      uint64_t shard_bytes,
                                      std::optional<DType> copies) const {
  PackManifest manifest;
  manifest.muster_version = MUSTER_VERSION;
  manifest.source_format = files_.format;
  ASSIGN_OR_RETURN(manifest.source_files, Files());
  for (const std::string_view name : formats::DescriptionNames(files_.format)) {
    ASSIGN_OR_RETURN(const auto text, Description(name));
    if (!text) continue;
    manifest.descriptions.push_back(
        {.name = std::string(name),
         .size_bytes = text->size(),
         .checksum = ChecksumOf(std::string_view(*text))});
  }
  for (TensorInfo tensor : files_.tensors) {
    if (tensor.size_bytes != 0 && IsRoutedExpert(tensor)) {
      manifest.packed_tensors.push_back(std::move(tensor));
      continue;
    }
    tensor.file = 0;
    tensor.offset = manifest.dense_bytes;
    manifest.dense_bytes += (tensor.size_bytes + kExpertAlignment - 1) /
                            kExpertAlignment * kExpertAlignment;
    manifest.tensors.push_back({.info = std::move(tensor), .checksum = {}});
  }
  Placer placer(manifest.shard_bytes, shard_bytes);
  for (size_t l = 0; l < layouts_.size(); ++l) {
    manifest.layers.push_back(placer.Place(layouts_[l], order[l]));
  }
  if (!copies) return manifest;
  Placer copy_placer(manifest.copy_shard_bytes, shard_bytes);
  for (size_t l = 0; l < layouts_.size(); ++l) {
    auto layout = Result<ExpertLayout>(ExpertLayout());
    if (!order[l].empty()) layout = CopyLayout(layouts_[l], *copies);
    if (!layout.ok()) {
      return Status(layout.status().code(),
                    fmt::format("{}: layer {}: {}", files_.path, l,
                                layout.status().message()));
    }
    manifest.copies.push_back(copy_placer.Place(*layout, order[l]));
  }
  if (manifest.copy_shard_bytes.empty()) {
    return InvalidArgument(fmt::format(
        "{}: has no routed experts to make low-bit copies of", files_.path));
  }
  return manifest;
}

Result<std::optional<std::string>> PackSource::Description(
    std::string_view name) const {
  std::string text;
  if (name == formats::kMetadataName) {
    ASSIGN_OR_RETURN(text, MetadataOnly(files_.paths.front()));
  } else if (name == "config.json") {
    text = files_.config_json;
  } else if (name == "generation_config.json") {
    text = files_.generation_config_json;
  } else if (name == "tokenizer.json") {
    text = files_.tokenizer_json;
  } else if (name == "tokenizer_config.json") {
    text = files_.tokenizer_config_json;
  } else if (name == "chat_template.jinja") {
    text = files_.chat_template_jinja;
  }
  if (text.empty()) return std::optional<std::string>();
  return std::optional(std::move(text));
}

Result<Checksum> PackSource::Produce(const PackManifest& manifest,
                                     const PackUnit& unit,
                                     const Checksum* expected,
                                     const io::OutputFile& out,
                                     UnitBuffers& buffers) const {
  return unit.kind == UnitKind::kTensor
             ? ProduceTensor(manifest, unit, expected, out, buffers)
             : ProduceExpert(manifest, unit, expected, out, buffers);
}

// The expert of the unit, in its slot.
Result<std::span<std::byte>> PackSource::ReadExpert(
    const PackManifest& manifest, const PackUnit& unit,
    UnitBuffers& buffers) const {
  const auto [layer, index] = unit.expert;
  if (layer >= layouts_.size() ||
      index >= index_.layers[layer].experts.size() ||
      !(layouts_[layer] == manifest.layers[layer].layout)) {
    return NotThatModel(
        files_.path, "it has no " + Describe(manifest, unit) + " of that form");
  }
  const model::ExpertRefs& refs = index_.layers[layer].experts[index];
  const SourceParts parts = PartsOf(refs);
  size_t total = 0;
  for (const SourcePart& part : parts) total += part.size_bytes;
  const std::span<std::byte> source = Room(buffers.source, total);
  std::array<const std::byte*, kNumParts> bytes{};
  size_t at = 0;
  for (size_t i = 0; i < kNumParts; ++i) {
    const auto dst = source.subspan(at, parts[i].size_bytes);
    RETURN_IF_ERROR(open_[parts[i].file].ReadAt(parts[i].offset, dst));
    bytes[i] = dst.data();
    at += dst.size();
  }
  const std::span<std::byte> slot =
      Room(buffers.slot, layouts_[layer].size_bytes);
  ExpertConverter(refs).ConvertAll(bytes.data(), slot.data());
  return slot;
}

Result<Checksum> PackSource::ProduceExpert(const PackManifest& manifest,
                                           const PackUnit& unit,
                                           const Checksum* expected,
                                           const io::OutputFile& out,
                                           UnitBuffers& buffers) const {
  ASSIGN_OR_RETURN(std::span<std::byte> made,
                   ReadExpert(manifest, unit, buffers));
  if (unit.kind == UnitKind::kCopy) {
    const uint32_t layer = unit.expert.layer;
    const ExpertLayout& wanted = manifest.copies[layer].layout;
    const auto layout = CopyLayout(layouts_[layer], wanted.gate.shape.type);
    if (!layout.ok() || !(*layout == wanted) ||
        !kernels::CanQuantizeTo(wanted.gate.shape.type)) {
      return NotThatModel(files_.path, "it has no " + Describe(manifest, unit) +
                                           " of that form");
    }
    const std::span<std::byte> copy = Room(buffers.copy, unit.size_bytes);
    MakeCopy(layouts_[layer], made.data(), wanted, copy.data());
    made = copy;
  }
  const Checksum checksum = ChecksumOf(made);
  if (expected != nullptr && checksum != *expected) {
    return NotThatModel(files_.path,
                        Describe(manifest, unit) + " has other weights");
  }
  RETURN_IF_ERROR(out.WriteAt(unit.offset, made));
  return checksum;
}

Result<Checksum> PackSource::ProduceTensor(const PackManifest& manifest,
                                           const PackUnit& unit,
                                           const Checksum* expected,
                                           const io::OutputFile& out,
                                           UnitBuffers& buffers) const {
  const TensorInfo& wanted = manifest.tensors[unit.tensor].info;
  const TensorInfo* tensor = files_.Find(wanted.name);
  if (tensor == nullptr || tensor->type != wanted.type ||
      tensor->shape != wanted.shape) {
    return NotThatModel(files_.path, "it has no " + Describe(manifest, unit) +
                                         " of that type and shape");
  }
  if (expected != nullptr) {
    ASSIGN_OR_RETURN(const Checksum checksum,
                     CopyTensor(*tensor, unit, nullptr, buffers));
    if (checksum != *expected) {
      return NotThatModel(files_.path,
                          Describe(manifest, unit) + " has other weights");
    }
  }
  return CopyTensor(*tensor, unit, &out, buffers);
}

// Piece by piece, zeros behind it; only reads when `out` is null.
Result<Checksum> PackSource::CopyTensor(const TensorInfo& tensor,
                                        const PackUnit& unit,
                                        const io::OutputFile* out,
                                        UnitBuffers& buffers) const {
  ChecksumStream checksum;
  const std::span<std::byte> room = Room(buffers.source, kPieceBytes);
  for (uint64_t done = 0; done < unit.size_bytes; done += kPieceBytes) {
    const auto piece =
        room.first(std::min(kPieceBytes, unit.size_bytes - done));
    RETURN_IF_ERROR(open_[tensor.file].ReadAt(tensor.offset + done, piece));
    checksum.Update(piece);
    if (out == nullptr) continue;
    RETURN_IF_ERROR(out->WriteAt(unit.offset + done, piece));
  }
  if (out != nullptr) {
    const auto zeros = room.first(unit.padded_bytes - unit.size_bytes);
    std::fill(zeros.begin(), zeros.end(), std::byte{0});
    RETURN_IF_ERROR(out->WriteAt(unit.offset + unit.size_bytes, zeros));
  }
  return checksum.Get();
}

}  // namespace muster::experts
