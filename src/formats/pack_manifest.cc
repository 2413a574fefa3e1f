#include "formats/pack_manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/checked_math.h"
#include "tensor/panels.h"

namespace muster::formats {
namespace {

using nlohmann::ordered_json;

// `,"checksum":"...32 digits..."}` and a line's end: covers all before it.
constexpr std::string_view kTailStart = ",\n\"checksum\":\"";
constexpr std::string_view kTailEnd = "\"}\n";
constexpr size_t kTailBytes = kTailStart.size() + 32 + kTailEnd.size();

std::string Quoted(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', false,
                                 ordered_json::error_handler_t::replace);
}

std::string TensorHead(const TensorInfo& tensor) {
  return fmt::format("[{},\"{}\",[{}]", Quoted(tensor.name), Name(tensor.type),
                     fmt::join(tensor.shape, ","));
}

std::string MatrixText(const MatrixShape& shape) {
  const std::string head =
      fmt::format("[\"{}\",{},{}", Name(shape.type), shape.rows, shape.cols);
  if (shape.scale_tile_rows == 0) return head + "]";
  return fmt::format("{},{},{}]", head, shape.scale_tile_rows,
                     shape.scale_tile_cols);
}

std::string LayerText(const PackedLayer& layer) {
  if (layer.experts.empty()) return "null";
  std::vector<std::string> experts;
  for (const PackedExpert& e : layer.experts) {
    experts.push_back(
        fmt::format("[{},{},\"{}\"]", e.file, e.offset, ToHex(e.checksum)));
  }
  return fmt::format(
      "{{\"gate\":{},\"up\":{},\"down\":{},\"expert_size\":{},\"experts\":["
      "\n{}]}}",
      MatrixText(layer.layout.gate.shape), MatrixText(layer.layout.up.shape),
      MatrixText(layer.layout.down.shape), layer.layout.size_bytes,
      fmt::join(experts, ",\n"));
}

// A list, one entry a line.
template <class List, class Fn>
std::string Lines(const List& list, const Fn& text_of) {
  std::vector<std::string> lines;
  lines.reserve(list.size());
  for (const auto& entry : list) lines.push_back(text_of(entry));
  return fmt::format("[\n{}]", fmt::join(lines, ",\n"));
}

}  // namespace

std::string ShardName(size_t number) {
  return fmt::format("experts-{:05}.bin", number);
}

std::string CopyShardName(size_t number) {
  return fmt::format("copies-{:05}.bin", number);
}

std::vector<std::string_view> DescriptionNames(Format source) {
  if (source == Format::kGguf) return {kMetadataName};
  return {"config.json", "generation_config.json", "tokenizer.json",
          "tokenizer_config.json", "chat_template.jinja"};
}

bool FillSize(TensorInfo& tensor) {
  const DTypeTraits& traits = Traits(tensor.type);
  std::optional<uint64_t> elements = 1;
  bool empty = false;
  for (const uint64_t dim : tensor.shape) {
    empty |= dim == 0;
    // An empty tensor's other dimensions must not overflow either.
    if (elements) elements = CheckedMul(*elements, std::max<uint64_t>(dim, 1));
  }
  constexpr uint64_t kMaxElements = uint64_t{1} << 56;
  if (!elements || *elements > kMaxElements) return false;
  if (empty) elements = 0;
  const uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % traits.block_elements != 0) return false;
  tensor.size_bytes = *elements / traits.block_elements * traits.block_bytes;
  return true;
}

std::string WriteManifest(const PackManifest& m) {
  std::string text = fmt::format(
      "{{\"format\":\"muster-pack\",\"version\":{},\"panel_layout\":{},\n"
      "\"muster\":{},\"created\":{},\n"
      "\"source_format\":\"{}\",\n\"source_files\":{},\n",
      kPackVersion, kPanelLayoutVersion, Quoted(m.muster_version),
      Quoted(m.created),
      m.source_format == Format::kGguf ? "gguf" : "safetensors",
      Lines(m.source_files, [](const PackManifest::SourceFile& file) {
        return fmt::format("[{},{},\"{}\"]", Quoted(file.name), file.size_bytes,
                           file.sha256);
      }));
  text += fmt::format(
      "\"descriptions\":{},\n\"dense_size\":{},\n\"tensors\":{},\n",
      Lines(m.descriptions,
            [](const PackManifest::Description& file) {
              return fmt::format("[\"{}\",{},\"{}\"]", file.name,
                                 file.size_bytes, ToHex(file.checksum));
            }),
      m.dense_bytes, Lines(m.tensors, [](const PackManifest::Tensor& tensor) {
        return fmt::format("{},{},\"{}\"]", TensorHead(tensor.info),
                           tensor.info.offset, ToHex(tensor.checksum));
      }));
  text += fmt::format(
      "\"packed_tensors\":{},\n\"shard_sizes\":[{}],\n\"layers\":{}",
      Lines(m.packed_tensors,
            [](const TensorInfo& tensor) { return TensorHead(tensor) + "]"; }),
      fmt::join(m.shard_bytes, ","), Lines(m.layers, LayerText));
  if (!m.copies.empty()) {
    text += fmt::format(
        ",\n\"copies\":{{\"shard_sizes\":[{}],\n\"layers\":{}}}",
        fmt::join(m.copy_shard_bytes, ","), Lines(m.copies, LayerText));
  }
  const std::string checksum = ToHex(ChecksumOf(std::string_view(text)));
  return fmt::format("{}{}{}{}", text, kTailStart, checksum, kTailEnd);
}

Result<PackManifest> ReadManifest(std::string_view text,
                                  const std::string& path) {
  const auto damaged = [&](const char* what) {
    return Corrupt(fmt::format(
        "{}: {}: the manifest is damaged, and the pack cannot be used without "
        "it; pack the model again",
        path, what));
  };
  if (text.size() <= kTailBytes) return damaged("it is too short");
  const std::string_view tail = text.substr(text.size() - kTailBytes);
  if (!tail.starts_with(kTailStart) || !tail.ends_with(kTailEnd)) {
    return damaged("its checksum is missing at the end");
  }
  const auto checksum = ChecksumFromHex(tail.substr(kTailStart.size(), 32));
  if (!checksum ||
      *checksum != ChecksumOf(text.substr(0, text.size() - kTailBytes))) {
    return damaged("its checksum does not fit");
  }
  return ParseManifest(text, path);
}

}  // namespace muster::formats
