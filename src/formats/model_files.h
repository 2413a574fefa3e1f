// What a model on disk consists of, whatever its format: an index of tensors
// (where each one's bytes are) and the description that came with them. Opening
// reads headers only; no weight is touched.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "formats/metadata.h"
#include "tensor/dtype.h"

namespace muster::formats {

enum class Format { kGguf, kSafetensors };

struct ExpertPack;

// Where tensors of a pack's experts claim to be: beyond any file, so that
// reading one as if it stood in a file fails.
inline constexpr uint64_t kPackedOffset = uint64_t{1} << 62;

struct TensorInfo {
  std::string name;
  DType type = DType::kF32;
  // Row-major, slowest dimension first, as safetensors and NumPy write it:
  // [experts, rows, cols] or [rows, cols] or [n]. (GGUF stores the reverse.)
  std::vector<uint64_t> shape;
  uint32_t file = 0;        // index into ModelFiles::paths
  uint64_t offset = 0;      // bytes from the start of that file
  uint64_t size_bytes = 0;  // checked: offset + size_bytes <= file size
  // Of a pack's experts: name, type, shape and size are the source's, but the
  // bytes stand in no file in this form (see expert_pack.h).
  bool packed = false;

  uint64_t num_elements() const;  // cannot overflow: checked on reading
};

struct ModelFiles {
  Format format = Format::kGguf;
  std::string path;                 // what the user named
  std::vector<std::string> paths;   // every file with tensors, in split order
  std::vector<TensorInfo> tensors;  // names are unique over all files
  uint64_t size_bytes = 0;          // of all files together

  Metadata metadata;  // GGUF: of the first file, split.* included
  // safetensors: the folder's JSON files as text; empty where there is none.
  std::string config_json;             // config.json (required)
  std::string generation_config_json;  // generation_config.json
  std::string tokenizer_json;          // tokenizer.json
  std::string tokenizer_config_json;   // tokenizer_config.json
  std::string chat_template_jinja;     // chat_template.jinja

  // Where the experts are, when this is a pack; else nullptr. Shared, because
  // whoever reads experts outlives the opening.
  std::shared_ptr<const ExpertPack> pack;

  // nullptr: no tensor of that name. O(1).
  const TensorInfo* Find(std::string_view name) const;
  // Builds the index that Find uses; fails on a duplicate name. Called by the
  // readers once all tensors are in.
  Status BuildIndex();

 private:
  std::unordered_map<std::string, size_t> by_name_;  // survives a move
};

// Opens `path`: a .gguf file (single, or any shard of a split whose siblings
// stand beside it), a .safetensors file, a folder of them with config.json, or
// an expert pack.
// Or a URL, where those are read (io/remote_files.h): of a .gguf or
// .safetensors file, or of a pack's manifest.json. The format is told from the
// content, not from the name. Errors name the file, the offset, what was found,
// what was expected and what to do.
Result<ModelFiles> OpenModelFiles(const std::string& path);

}  // namespace muster::formats
