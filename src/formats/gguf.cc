#include "formats/gguf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "io/remote_files.h"

namespace muster::formats {
namespace {

// "model-00002-of-00005.gguf"
struct ShardName {
  std::string prefix;   // "model", with its folder
  uint64_t number = 0;  // from 1
  uint64_t count = 0;
};

std::string NameOfShard(const std::string& prefix, uint64_t number,
                        uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

std::optional<ShardName> ParseShardName(const std::string& path) {
  constexpr size_t kTail = std::string_view("-00001-of-00005.gguf").size();
  if (path.size() <= kTail) return std::nullopt;
  const std::string tail = path.substr(path.size() - kTail);
  const auto number = [&](size_t at) -> std::optional<uint64_t> {
    uint64_t n = 0;
    for (size_t i = at; i < at + 5; ++i) {
      if (tail[i] < '0' || tail[i] > '9') return std::nullopt;
      n = n * 10 + static_cast<uint64_t>(tail[i] - '0');
    }
    return n;
  };
  const auto first = number(1), count = number(10);
  if (!first || !count || tail[0] != '-' || tail.substr(6, 4) != "-of-" ||
      tail.substr(15) != ".gguf") {
    return std::nullopt;
  }
  return ShardName{path.substr(0, path.size() - kTail), *first, *count};
}

// Shards that were joined with `cat` look like the first one with bytes behind.
Status CheckNotConcatenated(const io::File& file, const GgufHeader& header) {
  // The next shard starts where this one's padding ends, at most 64 KiB on.
  std::array<std::byte, 65536 + 4> tail;
  const uint64_t left = file.size_bytes() - header.end_offset;
  const size_t count = std::min<uint64_t>(left, tail.size());
  RETURN_IF_ERROR(file.ReadAt(header.end_offset, std::span(tail).first(count)));
  const std::string_view text(reinterpret_cast<const char*>(tail.data()),
                              count);
  const size_t at = text.find_first_not_of('\0');
  if (at == std::string_view::npos || text.substr(at, 4) != "GGUF") return {};
  return Corrupt(fmt::format(
      "{}: another GGUF file starts at byte {}: these are shards joined end to "
      "end, which no reader can use. Cut them apart there, or download the "
      "shards again; merge with a tool that knows GGUF (gguf-split --merge)",
      file.path(), header.end_offset + at));
}

class SplitOpener {
 public:
  SplitOpener(const std::string& path, ShardName name)
      : path_(path), name_(std::move(name)) {}

  Result<ModelFiles> Open(uint64_t count, uint64_t number) {
    if (name_.count != count || name_.number != number + 1) {
      return Corrupt(fmt::format(
          "{}: split.no is {} and split.count {}, which the name contradicts: "
          "expected '{}'",
          path_, number, count, NameOfShard(name_.prefix, number + 1, count)));
    }
    RETURN_IF_ERROR(CheckAllThere());
    ModelFiles model;
    model.path = path_;
    uint64_t tensors_in_all = 0;
    for (uint64_t i = 1; i <= count; ++i) {
      RETURN_IF_ERROR(AddShard(i, model, tensors_in_all));
    }
    if (tensors_in_all != 0 && tensors_in_all != model.tensors.size()) {
      return Corrupt(fmt::format(
          "{}: split.tensors.count is {}, and the shards hold {} tensors",
          path_, tensors_in_all, model.tensors.size()));
    }
    RETURN_IF_ERROR(model.BuildIndex());
    return model;
  }

 private:
  Status CheckAllThere() const {
    if (io::IsRemotePath(path_)) return {};  // opening them says so
    std::vector<std::string> missing;
    for (uint64_t i = 1; i <= name_.count; ++i) {
      const std::string path = NameOfShard(name_.prefix, i, name_.count);
      if (!std::filesystem::exists(path)) missing.push_back(path);
    }
    if (missing.empty()) return {};
    return NotFound(fmt::format(
        "{}: a shard of a model of {} files; {} of them missing: {}", path_,
        name_.count, missing.size() == 1 ? "one is" : "some are",
        fmt::join(missing, ", ")));
  }

  Status AddShard(uint64_t number, ModelFiles& model,
                  uint64_t& tensors_in_all) {
    const std::string path = NameOfShard(name_.prefix, number, name_.count);
    ASSIGN_OR_RETURN(const auto file, io::File::Open(path));
    ASSIGN_OR_RETURN(auto header, ReadGgufHeader(file));
    ASSIGN_OR_RETURN(const auto no, header.metadata.GetUint("split.no"));
    ASSIGN_OR_RETURN(const auto count, header.metadata.GetUint("split.count"));
    if (no != number - 1 || count != name_.count) {
      return Corrupt(fmt::format(
          "{}: split.no is {} and split.count {}, expected {} and {}", path,
          no.value_or(0), count.value_or(0), number - 1, name_.count));
    }
    for (TensorInfo& tensor : header.tensors) {
      tensor.file = static_cast<uint32_t>(number - 1);
      model.tensors.push_back(std::move(tensor));
    }
    model.paths.push_back(path);
    model.size_bytes += file.size_bytes();
    if (number == 1) {
      ASSIGN_OR_RETURN(const auto total,
                       header.metadata.GetUint("split.tensors.count"));
      tensors_in_all = total.value_or(0);
      model.metadata = std::move(header.metadata);
    }
    return {};
  }

  const std::string path_;
  const ShardName name_;
};

}  // namespace

Result<ModelFiles> OpenGguf(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, io::File::Open(path));
  ASSIGN_OR_RETURN(auto header, ReadGgufHeader(file));
  RETURN_IF_ERROR(CheckNotConcatenated(file, header));
  ASSIGN_OR_RETURN(const auto count, header.metadata.GetUint("split.count"));
  ASSIGN_OR_RETURN(const auto number, header.metadata.GetUint("split.no"));
  if (count.value_or(1) > 1) {
    const auto name = ParseShardName(path);
    if (!name) {
      return Corrupt(fmt::format(
          "{}: shard {} of a model of {} files, under a name that does not say "
          "so. Call the files '{}' and so on, and open the first",
          path, number.value_or(0) + 1, *count,
          NameOfShard("NAME", 1, *count)));
    }
    return SplitOpener(path, *name).Open(*count, number.value_or(0));
  }
  ModelFiles model;
  model.path = path;
  model.paths = {path};
  model.size_bytes = file.size_bytes();
  model.metadata = std::move(header.metadata);
  model.tensors = std::move(header.tensors);
  RETURN_IF_ERROR(model.BuildIndex());
  return model;
}

}  // namespace muster::formats
