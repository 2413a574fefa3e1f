#include "formats/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace muster::formats {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxTokenizerBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxIndexBytes = uint64_t{256} << 20;

// The text of a file that may be absent.
Status ReadOptional(const fs::path& path, uint64_t max_bytes,
                    std::string& text) {
  if (!fs::exists(path)) return {};
  ASSIGN_OR_RETURN(text, io::ReadTextFile(path, max_bytes));
  return {};
}

Status ReadDescriptions(const fs::path& folder, ModelFiles& model) {
  if (!fs::exists(folder / "config.json")) {
    return NotFound(fmt::format(
        "{}: config.json is missing; it says what the tensors mean and stands "
        "in the same folder as the .safetensors files",
        folder.string()));
  }
  RETURN_IF_ERROR(
      ReadOptional(folder / "config.json", kMaxConfigBytes, model.config_json));
  RETURN_IF_ERROR(ReadOptional(folder / "generation_config.json",
                               kMaxConfigBytes, model.generation_config_json));
  RETURN_IF_ERROR(ReadOptional(folder / "tokenizer_config.json",
                               kMaxConfigBytes, model.tokenizer_config_json));
  RETURN_IF_ERROR(ReadOptional(folder / "chat_template.jinja", kMaxConfigBytes,
                               model.chat_template_jinja));
  return ReadOptional(folder / "tokenizer.json", kMaxTokenizerBytes,
                      model.tokenizer_json);
}

Status AddFile(const fs::path& path, ModelFiles& model) {
  ASSIGN_OR_RETURN(const auto file, io::File::Open(path));
  ASSIGN_OR_RETURN(auto tensors, ReadSafetensorsHeader(file));
  const auto index = static_cast<uint32_t>(model.paths.size());
  for (TensorInfo& tensor : tensors) {
    tensor.file = index;
    model.tensors.push_back(std::move(tensor));
  }
  model.paths.push_back(path);
  model.size_bytes += file.size_bytes();
  return {};
}

// Tensor name to file name, from model.safetensors.index.json.
Result<std::map<std::string, std::string>> ReadIndex(const fs::path& path) {
  using nlohmann::json;
  ASSIGN_OR_RETURN(const std::string text,
                   io::ReadTextFile(path, kMaxIndexBytes));
  bool too_deep = false;
  const json root = json::parse(
      text,
      [&](int depth, json::parse_event_t, json&) {
        too_deep |= depth > 16;
        return !too_deep;
      },
      false);
  const auto bad = [&](const char* what) {
    return Corrupt(fmt::format("{}: {}", path.string(), what));
  };
  if (too_deep || root.is_discarded() || !root.is_object()) {
    return bad("not valid JSON of its kind");
  }
  const auto map = root.find("weight_map");
  if (map == root.end() || !map->is_object()) return bad("no weight_map");
  std::map<std::string, std::string> files;
  for (const auto& [name, value] : map->items()) {
    if (!value.is_string()) return bad("weight_map holds something not a name");
    const auto file = value.get<std::string>();
    // Only files of this folder: a name is not a path.
    if (file.empty() || file.find('/') != std::string::npos ||
        file.find('\0') != std::string::npos || file == "." || file == "..") {
      return bad("weight_map names a file outside the folder");
    }
    files.emplace(name, file);
  }
  return files;
}

Status AddShards(const fs::path& folder, ModelFiles& model) {
  const fs::path index_path = folder / "model.safetensors.index.json";
  ASSIGN_OR_RETURN(const auto index, ReadIndex(index_path));
  std::set<std::string> names;
  for (const auto& [tensor, file] : index) names.insert(file);
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (!fs::exists(folder / name)) missing.push_back(name);
  }
  if (!missing.empty()) {
    return NotFound(fmt::format("{}: {} of {} shards missing: {}",
                                folder.string(), missing.size(), names.size(),
                                fmt::join(missing, ", ")));
  }
  for (const std::string& name : names) {
    RETURN_IF_ERROR(AddFile(folder / name, model));
  }
  RETURN_IF_ERROR(model.BuildIndex());
  for (const auto& [tensor, file] : index) {
    const TensorInfo* found = model.Find(tensor);
    if (found == nullptr ||
        fs::path(model.paths[found->file]).filename() != file) {
      return Corrupt(
          fmt::format("{}: tensor '{}' is said to be in '{}', and is not",
                      index_path.string(), tensor, file));
    }
  }
  if (index.size() != model.tensors.size()) {
    return Corrupt(
        fmt::format("{}: weight_map names {} tensors, and the shards hold {}",
                    index_path.string(), index.size(), model.tensors.size()));
  }
  return {};
}

}  // namespace

Result<ModelFiles> OpenSafetensorsFolder(const std::string& folder) {
  ModelFiles model;
  model.format = Format::kSafetensors;
  model.path = folder;
  RETURN_IF_ERROR(ReadDescriptions(folder, model));
  const fs::path path(folder);
  if (fs::exists(path / "model.safetensors.index.json")) {
    RETURN_IF_ERROR(AddShards(path, model));
    return model;
  }
  if (!fs::exists(path / "model.safetensors")) {
    return NotFound(fmt::format(
        "{}: neither model.safetensors nor model.safetensors.index.json is "
        "there",
        folder));
  }
  RETURN_IF_ERROR(AddFile(path / "model.safetensors", model));
  RETURN_IF_ERROR(model.BuildIndex());
  return model;
}

Result<ModelFiles> OpenSafetensorsFile(const std::string& path) {
  ModelFiles model;
  model.format = Format::kSafetensors;
  model.path = path;
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  RETURN_IF_ERROR(ReadDescriptions(folder, model));
  RETURN_IF_ERROR(AddFile(path, model));
  RETURN_IF_ERROR(model.BuildIndex());
  return model;
}

}  // namespace muster::formats
