// The safetensors container and the folder that Hugging Face models come in.
// Source: the format description of huggingface/safetensors. What is accepted
// and refused: docs/formats/safetensors.md.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/model_files.h"
#include "io/file.h"

namespace muster::formats {

// One file's header. `file` of each tensor is 0; offsets are of the file.
Result<std::vector<TensorInfo>> ReadSafetensorsHeader(const io::File& file);

// Opens a folder with config.json and model.safetensors, or with shards behind
// model.safetensors.index.json.
Result<ModelFiles> OpenSafetensorsFolder(const std::string& folder);

// Opens one .safetensors file; config.json must stand beside it.
Result<ModelFiles> OpenSafetensorsFile(const std::string& path);

}  // namespace muster::formats
