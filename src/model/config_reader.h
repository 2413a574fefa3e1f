// The two spellings of a model's configuration, read into ModelConfig.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/model_files.h"
#include "model/config.h"
#include "model/family.h"

namespace muster::model {

struct ReadConfigResult {
  const Family* family = nullptr;  // lives for ever
  ModelConfig config;
  // What the file left open and was assumed, one sentence each: print them.
  std::vector<std::string> assumptions;
  // FP8 safetensors: weights that share a scale; 0: none.
  size_t scale_tile_rows = 0;
  size_t scale_tile_cols = 0;
};

// Reads and validates. Fails with the key, what was found and what was
// expected; with the list of families when the architecture is unknown.
Result<ReadConfigResult> ReadConfig(const formats::ModelFiles& files);

// The two readers behind it.
Result<ReadConfigResult> ReadGgufConfig(const formats::ModelFiles& files);
Result<ReadConfigResult> ReadHfConfig(const std::string& config_json);

}  // namespace muster::model
