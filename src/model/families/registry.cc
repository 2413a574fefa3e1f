// The list of families: one line each.
#include <string>

#include "model/families/common.h"

namespace muster::model {
namespace {

const std::vector<Family>& Registry() {
  static const std::vector<Family> families = {
      LlamaFamily(), MixtralFamily(),  Qwen2Family(), Qwen2MoeFamily(),
      Qwen3Family(), Qwen3MoeFamily(), OlmoeFamily(),
  };
  return families;
}

}  // namespace

std::span<const Family> Families() { return Registry(); }

const Family* FindByGguf(std::string_view architecture, bool has_experts) {
  for (const Family& family : Registry()) {
    if (family.gguf_architecture == architecture &&
        family.has_experts == has_experts) {
      return &family;
    }
  }
  return nullptr;
}

const Family* FindByHf(std::string_view architecture) {
  for (const Family& family : Registry()) {
    if (family.hf_architecture == architecture) return &family;
  }
  return nullptr;
}

std::string FamilyNames() {
  std::string names;
  for (const Family& family : Registry()) {
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  return names;
}

}  // namespace muster::model
