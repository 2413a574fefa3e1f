// The models that tests/goldens/ holds, each in several forms: "qwen3_moe:hf"
// names one.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster {

inline const std::filesystem::path& GoldenRoot() {
  static const std::filesystem::path root =
      std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/goldens";
  return root;
}

// "qwen3_moe:model.gguf" to the file or folder.
inline std::filesystem::path GoldenPath(const std::string& form) {
  const size_t colon = form.find(':');
  return GoldenRoot() / form.substr(0, colon) / form.substr(colon + 1);
}

// What is recorded of the form's model.
inline nlohmann::json ReadGolden(const std::string& form) {
  std::ifstream in(GoldenRoot() / form.substr(0, form.find(':')) /
                   "golden.json");
  return nlohmann::json::parse(in);
}

// Ascending.
inline std::vector<std::string> AllGoldenForms() {
  std::vector<std::string> forms;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenRoot())) {
    if (!std::filesystem::exists(entry.path() / "golden.json")) continue;
    const std::string model = entry.path().filename().string();
    const nlohmann::json golden = ReadGolden(model);
    for (const auto& file : golden.at("files")) {
      forms.push_back(model + ":" + file.get<std::string>());
    }
  }
  std::sort(forms.begin(), forms.end());
  return forms;
}

// What GoogleTest takes as part of a test's name.
inline std::string AsTestName(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

}  // namespace muster
