#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "base/checked_math.h"
#include "formats/pack_manifest.h"
#include "tensor/panels.h"

namespace muster::formats {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kMaxDepth = 8;  // a manifest nests five deep
// Entries of a few bytes each that take far more in memory.
constexpr size_t kMaxLayers = 10'000;
constexpr size_t kMaxShards = 100'000;
constexpr uint64_t kMaxDimension = uint64_t{1} << 31;

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 0; i < kNumDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    if (Name(type) == name) return type;
  }
  return std::nullopt;
}

// Reads field by field; the first fault is kept, and what follows is skipped.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path)
      : text_(text), path_(path) {}

  Result<PackManifest> Parse() {
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(text_);
    element root;
    if (parser.allocate(text_.size() + 64, kMaxDepth) != simdjson::SUCCESS ||
        parser.parse(padded).get(root) != simdjson::SUCCESS ||
        root.get(root_) != simdjson::SUCCESS) {
      return Error("not valid JSON of its kind");
    }
    RETURN_IF_ERROR(CheckVersions());
    m_.muster_version = Text("muster");
    m_.created = Text("created");
    const std::string format = Text("source_format");
    if (format != "gguf" && format != "safetensors") Fail("source_format");
    m_.source_format = format == "gguf" ? Format::kGguf : Format::kSafetensors;
    ForEach(List("source_files"), [&](element e) { ReadSourceFile(e); });
    ForEach(List("descriptions"), [&](element e) { ReadDescription(e); });
    m_.dense_bytes = Number("dense_size");
    ForEach(List("tensors"), [&](element e) { ReadTensor(e); });
    ForEach(List("packed_tensors"), [&](element e) { ReadPackedTensor(e); });
    ReadExperts(root_, m_.shard_bytes, m_.layers);
    ReadCopies();
    RETURN_IF_ERROR(status_);
    RETURN_IF_ERROR(CheckDense());
    RETURN_IF_ERROR(CheckShards(m_.shard_bytes, m_.layers, ShardName));
    RETURN_IF_ERROR(CheckCopies());
    RETURN_IF_ERROR(CheckShards(m_.copy_shard_bytes, m_.copies, CopyShardName));
    return std::move(m_);
  }

 private:
  Status Error(const std::string& what) const {
    return Corrupt(fmt::format("{}: {}", path_, what));
  }
  void Fail(const std::string& what) {
    if (status_.ok()) {
      status_ =
          Error(fmt::format("'{}' is missing or not what it should be", what));
    }
  }

  Status CheckVersions() {
    if (Text("format") != "muster-pack") return Error("not an expert pack");
    const uint64_t version = Number("version");
    const uint64_t panels = Number("panel_layout");
    RETURN_IF_ERROR(status_);
    if (version == kPackVersion && panels == kPanelLayoutVersion) return {};
    return Unsupported(
        fmt::format("{}: pack version {} with panel layout {}, and this build "
                    "reads version "
                    "{} with layout {}: pack the model again",
                    path_, version, panels, kPackVersion, kPanelLayoutVersion));
  }

  element FieldOf(object fields, const char* name) {
    element value;
    if (fields[name].get(value) != simdjson::SUCCESS) Fail(name);
    return value;
  }
  // Fields of the root.
  element Field(const char* name) { return FieldOf(root_, name); }
  std::string Text(const char* name) {
    const element value = Field(name);
    return status_.ok() ? TextOf(value, name) : "";
  }
  uint64_t Number(const char* name) {
    const element value = Field(name);
    return status_.ok() ? NumberOf(value, name) : 0;
  }
  array List(const char* name) { return List(root_, name); }
  array List(object fields, const char* name) {
    const element value = FieldOf(fields, name);
    return status_.ok() ? ListOf(value, name) : array();
  }

  // REQUIRES: the element is one of the document.
  std::string TextOf(element value, const char* name) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) Fail(name);
    return std::string(text);
  }
  uint64_t NumberOf(element value, const char* name) {
    uint64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS) Fail(name);
    return number;
  }
  array ListOf(element value, const char* name) {
    array list;
    if (value.get(list) != simdjson::SUCCESS) Fail(name);
    return list;
  }
  Checksum ChecksumOfHex(element value, const char* name) {
    const auto checksum = ChecksumFromHex(TextOf(value, name));
    if (!checksum) Fail(name);
    return checksum.value_or(Checksum());
  }

  template <class Fn>
  void ForEach(array list, const Fn& fn) {
    if (!status_.ok()) return;
    for (const element e : list) {
      fn(e);
      if (!status_.ok()) return;
    }
  }

  // The entries of a short list; at least `min` of them, at most `max`.
  std::vector<element> Entries(element value, size_t min, size_t max,
                               const char* name) {
    std::vector<element> entries;
    const array list = ListOf(value, name);
    if (!status_.ok()) return {};
    for (const element e : list) {
      if (entries.size() == max) break;
      entries.push_back(e);
    }
    if (entries.size() < min || list.size() > max) {
      Fail(name);
      return {};
    }
    return entries;
  }

  void ReadSourceFile(element value) {
    const auto entries = Entries(value, 3, 3, "source_files");
    if (entries.empty()) return;
    m_.source_files.push_back({.name = TextOf(entries[0], "source_files"),
                               .size_bytes = NumberOf(entries[1], "size"),
                               .sha256 = TextOf(entries[2], "sha256")});
    const auto& file = m_.source_files.back();
    if (file.name.find('/') != std::string::npos ||
        file.name.find('\0') != std::string::npos || file.sha256.size() != 64) {
      Fail("source_files");
    }
  }

  void ReadDescription(element value) {
    const auto entries = Entries(value, 3, 3, "descriptions");
    if (entries.empty()) return;
    PackManifest::Description file{
        .name = TextOf(entries[0], "descriptions"),
        .size_bytes = NumberOf(entries[1], "descriptions"),
        .checksum = ChecksumOfHex(entries[2], "descriptions")};
    const auto names = DescriptionNames(m_.source_format);
    const bool twice =
        std::any_of(m_.descriptions.begin(), m_.descriptions.end(),
                    [&](const auto& other) { return other.name == file.name; });
    if (twice ||
        std::find(names.begin(), names.end(), file.name) == names.end()) {
      Fail("descriptions");
    }
    m_.descriptions.push_back(std::move(file));
  }

  TensorInfo ReadTensorHead(const std::vector<element>& entries) {
    TensorInfo tensor;
    tensor.name = TextOf(entries[0], "tensors");
    const auto type = DTypeFromName(TextOf(entries[1], "tensors"));
    for (const element dim : Entries(entries[2], 0, 16, "tensors")) {
      tensor.shape.push_back(NumberOf(dim, "tensors"));
    }
    if (!type) {
      Fail("tensors");
      return tensor;
    }
    tensor.type = *type;
    if (status_.ok() && !FillSize(tensor)) {
      status_ = Error(
          fmt::format("tensor '{}' has a shape that cannot be", tensor.name));
    }
    return tensor;
  }

  void ReadTensor(element value) {
    const auto entries = Entries(value, 5, 5, "tensors");
    if (entries.empty()) return;
    PackManifest::Tensor tensor{.info = ReadTensorHead(entries)};
    tensor.info.offset = NumberOf(entries[3], "tensors");
    tensor.checksum = ChecksumOfHex(entries[4], "tensors");
    m_.tensors.push_back(std::move(tensor));
  }

  void ReadPackedTensor(element value) {
    const auto entries = Entries(value, 3, 3, "packed_tensors");
    if (entries.empty()) return;
    TensorInfo tensor = ReadTensorHead(entries);
    tensor.packed = true;
    tensor.offset = kPackedOffset;
    m_.packed_tensors.push_back(std::move(tensor));
  }

  void ReadExperts(object fields, std::vector<uint64_t>& shard_bytes,
                   std::vector<PackedLayer>& layers) {
    if (!status_.ok()) return;
    ForEach(List(fields, "shard_sizes"), [&](element e) {
      if (shard_bytes.size() == kMaxShards) return Fail("shard_sizes");
      shard_bytes.push_back(NumberOf(e, "shard_sizes"));
    });
    ForEach(List(fields, "layers"), [&](element e) {
      if (layers.size() == kMaxLayers) return Fail("layers");
      ReadLayer(e, shard_bytes.size(), layers.emplace_back());
    });
  }

  // What a pack need not have.
  void ReadCopies() {
    element value;
    if (!status_.ok() || root_["copies"].get(value) != simdjson::SUCCESS) {
      return;
    }
    object fields;
    if (value.get(fields) != simdjson::SUCCESS) return Fail("copies");
    ReadExperts(fields, m_.copy_shard_bytes, m_.copies);
    if (m_.copies.empty()) Fail("copies");
  }

  MatrixShape ReadMatrix(object layer, const char* name) {
    const element value = FieldOf(layer, name);
    if (!status_.ok()) return {};
    const auto entries = Entries(value, 3, 5, name);
    if (entries.empty()) return {};
    const auto type = DTypeFromName(TextOf(entries[0], name));
    const uint64_t rows = NumberOf(entries[1], name);
    const uint64_t cols = NumberOf(entries[2], name);
    const bool scaled = entries.size() == 5;
    const uint64_t tile_rows = scaled ? NumberOf(entries[3], name) : 0;
    const uint64_t tile_cols = scaled ? NumberOf(entries[4], name) : 0;
    // With these bounds no size of a layout can overflow.
    if (!type || entries.size() == 4 || rows == 0 || rows > kMaxDimension ||
        cols == 0 || cols > kMaxDimension ||
        rows * cols > (uint64_t{1} << 48) ||
        cols % Traits(*type).block_elements != 0 ||
        scaled != (*type == DType::kF8E4M3) ||
        (scaled && (tile_rows == 0 || tile_rows > kMaxDimension ||
                    tile_cols == 0 || tile_cols > kMaxDimension))) {
      Fail(name);
      return {};
    }
    return {.type = *type,
            .rows = rows,
            .cols = cols,
            .scale_tile_rows = tile_rows,
            .scale_tile_cols = tile_cols};
  }

  void ReadLayer(element value, size_t num_shards, PackedLayer& layer) {
    if (value.is_null()) return;
    object fields;
    element size, experts;
    if (value.get(fields) != simdjson::SUCCESS ||
        fields["expert_size"].get(size) != simdjson::SUCCESS ||
        fields["experts"].get(experts) != simdjson::SUCCESS) {
      return Fail("layers");
    }
    const MatrixShape gate = ReadMatrix(fields, "gate");
    const MatrixShape up = ReadMatrix(fields, "up");
    const MatrixShape down = ReadMatrix(fields, "down");
    if (!status_.ok()) return;
    layer.layout = LayOutExpert(gate, up, down);
    if (NumberOf(size, "expert_size") != layer.layout.size_bytes) {
      return Fail("expert_size");
    }
    ForEach(ListOf(experts, "experts"), [&](element e) {
      const auto entries = Entries(e, 3, 3, "experts");
      if (entries.empty()) return;
      const uint64_t file = NumberOf(entries[0], "experts");
      if (file >= num_shards) return Fail("experts");
      layer.experts.push_back(
          {.file = static_cast<uint32_t>(file),
           .offset = NumberOf(entries[1], "experts"),
           .checksum = ChecksumOfHex(entries[2], "experts")});
    });
    if (status_.ok() && layer.experts.empty()) Fail("experts");
  }

  // Tensors stand in order, each on a page, without holes.
  Status CheckDense() const {
    std::optional<uint64_t> end = 0;
    for (const PackManifest::Tensor& tensor : m_.tensors) {
      if (tensor.info.offset != *end) {
        return Error(fmt::format("tensor '{}' is at offset {}, expected {}",
                                 tensor.info.name, tensor.info.offset, *end));
      }
      end = CheckedAdd(*end, tensor.info.size_bytes);
      if (end) end = CheckedAlignUp(*end, kExpertAlignment);
      if (!end || *end > m_.dense_bytes) break;
    }
    if (end == m_.dense_bytes) return {};
    return Error("'dense_size' is not what the tensors need");
  }

  // Each expert has one that can take its place.
  Status CheckCopies() const {
    if (m_.copies.empty()) return {};
    const auto alike = [](const PackedLayer& layer, const PackedLayer& copy) {
      return copy.experts.size() == layer.experts.size() &&
             (layer.experts.empty() ||
              (IsCopyOf(copy.layout.gate.shape, layer.layout.gate.shape) &&
               IsCopyOf(copy.layout.up.shape, layer.layout.up.shape) &&
               IsCopyOf(copy.layout.down.shape, layer.layout.down.shape)));
    };
    if (std::equal(m_.layers.begin(), m_.layers.end(), m_.copies.begin(),
                   m_.copies.end(), alike)) {
      return {};
    }
    return Error(
        "'copies' are not of each expert, with its rows and columns, in a "
        "quantised type");
  }

  static bool IsCopyOf(const MatrixShape& copy, const MatrixShape& matrix) {
    return copy.rows == matrix.rows && copy.cols == matrix.cols &&
           IsQuantized(copy.type);
  }

  // Experts fill each shard without holes or overlap.
  Status CheckShards(const std::vector<uint64_t>& shard_bytes,
                     const std::vector<PackedLayer>& layers,
                     std::string (*name_of)(size_t)) const {
    struct Range {
      uint64_t offset, size_bytes;
    };
    std::vector<std::vector<Range>> shards(shard_bytes.size());
    for (const PackedLayer& layer : layers) {
      for (const PackedExpert& expert : layer.experts) {
        shards[expert.file].push_back({expert.offset, layer.layout.size_bytes});
      }
    }
    for (size_t s = 0; s < shards.size(); ++s) {
      std::sort(shards[s].begin(), shards[s].end(),
                [](Range a, Range b) { return a.offset < b.offset; });
      uint64_t end = 0;
      for (const Range& range : shards[s]) {
        // No overflow: end is at most the shard's size when we go on.
        if (range.offset != end || range.size_bytes > shard_bytes[s] - end) {
          return Error(fmt::format(
              "experts of {} overlap, leave a hole or end beyond it at byte {}",
              name_of(s), range.offset));
        }
        end += range.size_bytes;
      }
      if (end != shard_bytes[s]) {
        return Error(fmt::format("experts of {} fill {} of its {} bytes",
                                 name_of(s), end, shard_bytes[s]));
      }
    }
    return {};
  }

  const std::string_view text_;
  const std::string& path_;
  object root_;
  Status status_;
  PackManifest m_;
};

}  // namespace

Result<PackManifest> ParseManifest(std::string_view text,
                                   const std::string& path) {
  return Parser(text, path).Parse();
}

}  // namespace muster::formats
