#include "formats/model_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "formats/expert_pack.h"
#include "formats/gguf.h"
#include "formats/pack_manifest.h"
#include "formats/safetensors.h"
#include "io/file.h"
#include "io/remote_files.h"

namespace muster::formats {
namespace {

namespace fs = std::filesystem;

// The model in a folder: a pack, safetensors, or the only GGUF in it.
Result<ModelFiles> OpenFolder(const std::string& folder) {
  if (IsPack(folder)) return OpenPack(folder);
  if (fs::exists(fs::path(folder) / kDenseName)) {
    return Corrupt(fmt::format(
        "{}: an expert pack without its manifest.json: `muster pack` has not "
        "finished it; run the same command again",
        folder));
  }
  std::vector<std::string> ggufs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".gguf") ggufs.push_back(entry.path());
  }
  if (error) return IoError(fmt::format("{}: {}", folder, error.message()));
  if (ggufs.empty() || fs::exists(fs::path(folder) / "config.json")) {
    return OpenSafetensorsFolder(folder);
  }
  std::sort(ggufs.begin(), ggufs.end());
  // The first may be shard 1 of a split that the others belong to.
  ASSIGN_OR_RETURN(auto model, OpenModelFiles(ggufs.front()));
  if (model.paths.size() == ggufs.size()) return model;
  return InvalidArgument(
      fmt::format("{}: the folder holds several models; name one of {}", folder,
                  fmt::join(ggufs, ", ")));
}

// A remote pack is named by its manifest: nobody lists remote folders.
std::optional<std::string> RemotePackOf(const std::string& url) {
  const std::string end = fmt::format("/{}", kManifestName);
  if (!url.ends_with(end)) return std::nullopt;
  return url.substr(0, url.size() - end.size());
}

Status WhatItIsInstead(const std::string& path, std::string_view start) {
  const auto is = [&](std::string_view magic) {
    return start.starts_with(magic);
  };
  std::string what = "neither GGUF nor safetensors";
  if (start.empty()) what = "empty";
  if (is("version https://git-lfs")) {
    what =
        "a Git LFS pointer, not the model itself: fetch it with `git lfs "
        "pull`";
  }
  if (is("PK\x03\x04") || is("\x80\x02")) {
    what =
        "a PyTorch checkpoint, whose loading can run code: convert it to "
        "safetensors or GGUF";
  }
  if (is("<!DOCTYPE") || is("<html")) {
    what = "a web page: the download was answered with one";
  }
  if (is("lmgg") || is("fmgg") || is("tjgg")) {
    what = "a model from before GGUF: convert it again";
  }
  return Corrupt(fmt::format("{}: the file is {}", path, what));
}

}  // namespace

uint64_t TensorInfo::num_elements() const {
  uint64_t count = 1;
  for (const uint64_t dim : shape) {
    if (dim == 0) return 0;
  }
  for (const uint64_t dim : shape) count *= dim;
  return count;
}

const TensorInfo* ModelFiles::Find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : &tensors[it->second];
}

Status ModelFiles::BuildIndex() {
  by_name_.clear();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!by_name_.emplace(tensors[i].name, i).second) {
      return Corrupt(fmt::format("{}: tensor '{}' stands in two places", path,
                                 tensors[i].name));
    }
  }
  return {};
}

Result<ModelFiles> OpenModelFiles(const std::string& path) {
  if (io::IsRemotePath(path)) {
    if (const auto folder = RemotePackOf(path)) return OpenPack(*folder);
  } else if (fs::is_directory(path)) {
    return OpenFolder(path);
  }
  ASSIGN_OR_RETURN(const auto file, io::File::Open(path));
  std::array<char, 32> start{};
  const size_t count = std::min<uint64_t>(start.size(), file.size_bytes());
  RETURN_IF_ERROR(
      file.ReadAt(0, std::as_writable_bytes(std::span(start).first(count))));
  const std::string_view text(start.data(), count);
  if (text.starts_with("GGUF")) return OpenGguf(path);
  // Eight bytes of length, then JSON.
  if (count > 8 && text[8] == '{') return OpenSafetensorsFile(path);
  return WhatItIsInstead(path, text);
}

}  // namespace muster::formats
