#include <fmt/format.h>

#include "tokenizer/gguf_spec.h"
#include "tokenizer/hf_spec.h"
#include "tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

Result<TokenizerSpec> SpecOf(const formats::ModelFiles& files) {
  switch (files.format) {
    case formats::Format::kGguf:
      return SpecFromGguf(files.metadata);
    case formats::Format::kSafetensors:
      return SpecFromHf({.tokenizer_json = files.tokenizer_json,
                         .tokenizer_config_json = files.tokenizer_config_json,
                         .generation_config_json = files.generation_config_json,
                         .config_json = files.config_json});
  }
  return Unsupported("an unknown format");
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const formats::ModelFiles& files) {
  const auto with_path = [&](const Status& status) {
    return Status(status.code(),
                  fmt::format("{}: {}", files.path, status.message()));
  };
  auto spec = SpecOf(files);
  if (!spec.ok()) return with_path(spec.status());
  auto tokenizer = MakeTokenizer(std::move(spec).value());
  if (!tokenizer.ok()) return with_path(tokenizer.status());
  return tokenizer;
}

}  // namespace muster::tokenizer
