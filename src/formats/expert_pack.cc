#include "formats/expert_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "formats/gguf.h"
#include "formats/pack_manifest.h"
#include "io/file.h"

namespace muster::formats {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxDescriptionBytes = uint64_t{1} << 30;

class PackOpener {
 public:
  explicit PackOpener(const std::string& folder) : folder_(folder) {}

  Result<ModelFiles> Open() {
    const std::string path = PathOf(kManifestName);
    ASSIGN_OR_RETURN(const std::string text,
                     io::ReadTextFile(path, kMaxManifestBytes));
    ASSIGN_OR_RETURN(manifest_, ReadManifest(text, path));
    model_.format = manifest_.source_format;
    model_.path = folder_;
    model_.size_bytes = text.size();
    for (const PackManifest::Description& file : manifest_.descriptions) {
      RETURN_IF_ERROR(ReadDescription(file));
    }
    RETURN_IF_ERROR(AddTensors());
    RETURN_IF_ERROR(AddExperts());
    return std::move(model_);
  }

 private:
  std::string PathOf(std::string_view name) const {
    return fs::path(folder_) / name;
  }

  Status Damaged(const std::string& path, const std::string& what) const {
    return Corrupt(
        fmt::format("{}: {}. `muster verify {}` says what is damaged", path,
                    what, folder_));
  }

  Status CheckSize(const std::string& path, uint64_t expected) {
    ASSIGN_OR_RETURN(const auto file, io::File::Open(path));
    if (file.size_bytes() != expected) {
      return Damaged(path, fmt::format("{} bytes, expected {}",
                                       file.size_bytes(), expected));
    }
    model_.size_bytes += expected;
    return {};
  }

  Status ReadDescription(const PackManifest::Description& description) {
    const std::string path = PathOf(description.name);
    RETURN_IF_ERROR(CheckSize(path, description.size_bytes));
    ASSIGN_OR_RETURN(std::string text,
                     io::ReadTextFile(path, kMaxDescriptionBytes));
    if (ChecksumOf(std::string_view(text)) != description.checksum) {
      return Damaged(path, "its checksum does not fit");
    }
    if (description.name == kMetadataName) return ReadMetadata(path);
    *FieldOf(description.name) = std::move(text);
    return {};
  }

  Status ReadMetadata(const std::string& path) {
    ASSIGN_OR_RETURN(const auto file, io::File::Open(path));
    ASSIGN_OR_RETURN(auto header, ReadGgufHeader(file));
    if (!header.tensors.empty()) {
      return Corrupt(fmt::format("{}: {} tensors, expected none", path,
                                 header.tensors.size()));
    }
    model_.metadata = std::move(header.metadata);
    return {};
  }

  // REQUIRES: one of DescriptionNames, as the manifest's have been checked for.
  std::string* FieldOf(std::string_view name) {
    if (name == "config.json") return &model_.config_json;
    if (name == "generation_config.json") {
      return &model_.generation_config_json;
    }
    if (name == "tokenizer.json") return &model_.tokenizer_json;
    if (name == "tokenizer_config.json") return &model_.tokenizer_config_json;
    return &model_.chat_template_jinja;
  }

  Status AddTensors() {
    model_.paths = {PathOf(kDenseName)};
    RETURN_IF_ERROR(CheckSize(model_.paths.front(), manifest_.dense_bytes));
    for (PackManifest::Tensor& tensor : manifest_.tensors) {
      // An empty one shares its offset with the next.
      if (tensor.info.size_bytes != 0) {
        pack_->dense.push_back({tensor.info.offset, tensor.checksum});
      }
      model_.tensors.push_back(std::move(tensor.info));
    }
    for (TensorInfo& tensor : manifest_.packed_tensors) {
      model_.tensors.push_back(std::move(tensor));
    }
    return model_.BuildIndex();
  }

  Status AddExperts() {
    for (size_t i = 0; i < manifest_.shard_bytes.size(); ++i) {
      pack_->paths.push_back(PathOf(ShardName(i)));
      RETURN_IF_ERROR(CheckSize(pack_->paths.back(), manifest_.shard_bytes[i]));
    }
    for (size_t i = 0; i < manifest_.copy_shard_bytes.size(); ++i) {
      pack_->copy_paths.push_back(PathOf(CopyShardName(i)));
      RETURN_IF_ERROR(
          CheckSize(pack_->copy_paths.back(), manifest_.copy_shard_bytes[i]));
    }
    pack_->layers = std::move(manifest_.layers);
    pack_->copies = std::move(manifest_.copies);
    model_.pack = std::move(pack_);
    return {};
  }

  const std::string folder_;
  PackManifest manifest_;
  std::shared_ptr<ExpertPack> pack_ = std::make_shared<ExpertPack>();
  ModelFiles model_;
};

}  // namespace

const Checksum* ExpertPack::DenseChecksum(uint64_t offset) const {
  const auto it = std::lower_bound(
      dense.begin(), dense.end(), offset,
      [](const DenseTensor& t, uint64_t at) { return t.offset < at; });
  return it != dense.end() && it->offset == offset ? &it->checksum : nullptr;
}

bool IsPack(const std::string& folder) {
  const fs::path manifest = fs::path(folder) / kManifestName;
  std::error_code error;
  if (!fs::is_regular_file(manifest, error)) return false;
  if (fs::exists(fs::path(folder) / kDenseName, error)) return true;
  const auto file = io::File::Open(manifest);
  std::array<char, 24> start{};
  constexpr std::string_view kStart = "{\"format\":\"muster-pack\"";
  return file.ok() &&
         file->ReadAt(0, std::as_writable_bytes(
                             std::span(start).first(kStart.size())))
             .ok() &&
         std::string_view(start.data(), kStart.size()) == kStart;
}

Result<ModelFiles> OpenPack(const std::string& folder) {
  return PackOpener(folder).Open();
}

}  // namespace muster::formats
