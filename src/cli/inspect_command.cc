// muster inspect: what is in a model, counted from its tensors.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/demo_model.h"
#include "cli/print_json.h"
#include "cli/remote_flags.h"
#include "formats/model_files.h"
#include "model/config_reader.h"
#include "model/parameters.h"
#include "model/weight_index.h"
#include "runtime/kv_pages.h"
#include "runtime/loaded_model.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct InspectOptions {
  std::string model;
  bool json = false;
};

struct Inspection {
  formats::ModelFiles files;
  model::ReadConfigResult read;
  model::ParameterCounts counts;
  uint64_t weight_bytes = 0;  // memory for the weights
  uint64_t kv_bytes = 0;      // F16 cache, one position
  std::map<std::string, uint64_t> bytes_by_type;
};

Result<Inspection> Inspect(const std::string& path) {
  Inspection i;
  ASSIGN_OR_RETURN(const auto remote, OpenRemoteFor(path, {}));
  ASSIGN_OR_RETURN(i.files, formats::OpenModelFiles(path));
  ASSIGN_OR_RETURN(i.read, model::ReadConfig(i.files));
  ASSIGN_OR_RETURN(const auto index, model::BindWeights(i.files, i.read));
  i.counts = model::CountParameters(i.read.config, index);
  i.weight_bytes = runtime::WeightMemoryBytes(index, i.files.pack.get());
  i.kv_bytes =
      runtime::KvPages::BytesPerPosition(i.read.config, kernels::KvType::kF16);
  for (const formats::TensorInfo& tensor : i.files.tensors) {
    i.bytes_by_type[std::string(Name(tensor.type))] += tensor.size_bytes;
  }
  return i;
}

ordered_json LayerJson(const model::LayerParameters& layer, size_t number) {
  return {{"layer", number},
          {"always_on", layer.always_on},
          {"shared", layer.shared},
          {"routed", layer.routed},
          {"num_experts", layer.num_experts},
          {"top_k", layer.top_k},
          {"per_expert", layer.per_expert}};
}

ordered_json ToJson(const Inspection& i) {
  const model::ModelConfig& c = i.read.config;
  ordered_json layers = ordered_json::array();
  for (size_t l = 0; l < i.counts.layers.size(); ++l) {
    layers.push_back(LayerJson(i.counts.layers[l], l));
  }
  return {{"path", i.files.path},
          {"format",
           i.files.format == formats::Format::kGguf ? "gguf" : "safetensors"},
          {"packed", i.files.pack != nullptr},
          {"family", c.family},
          {"name", c.name},
          {"vocab_size", c.vocab_size},
          {"model_dim", c.model_dim},
          {"num_layers", c.layers.size()},
          {"num_heads", c.num_heads},
          {"num_kv_heads", c.num_kv_heads},
          {"head_dim", c.head_dim},
          {"context_length", c.context_length},
          {"tied_embeddings", c.tied_embeddings},
          {"parameters",
           {{"total", i.counts.total},
            {"always_on", i.counts.always_on},
            {"shared", i.counts.shared},
            {"routed", i.counts.routed},
            {"active", i.counts.active},
            {"active_share", i.counts.active_share()}}},
          {"bytes",
           {{"files", i.files.size_bytes},
            {"by_type", i.bytes_by_type},
            {"weights_in_memory", i.weight_bytes},
            {"kv_cache_per_position", i.kv_bytes}}},
          {"assumptions", i.read.assumptions},
          {"layers", layers}};
}

// "layers 0-7: ..." for runs of layers that are alike.
void PrintLayers(const Inspection& i) {
  const auto& layers = i.counts.layers;
  const auto same = [](const model::LayerParameters& a,
                       const model::LayerParameters& b) {
    return a.always_on == b.always_on && a.routed == b.routed &&
           a.num_experts == b.num_experts && a.top_k == b.top_k;
  };
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin + 1;
    while (end < layers.size() && same(layers[begin], layers[end])) ++end;
    const model::LayerParameters& l = layers[begin];
    const std::string range = end - begin == 1
                                  ? fmt::format("layer {}", begin)
                                  : fmt::format("layers {}-{}", begin, end - 1);
    if (l.num_experts == 0) {
      fmt::print("  {:<14} dense, {} parameters each\n", range,
                 FormatCount(l.always_on));
    } else {
      fmt::print(
          "  {:<14} {} of {} experts a token, {} parameters an expert, "
          "{} always on{}\n",
          range, l.top_k, l.num_experts, FormatCount(l.per_expert),
          FormatCount(l.always_on),
          l.shared == 0
              ? ""
              : fmt::format(" (shared expert {})", FormatCount(l.shared)));
    }
    begin = end;
  }
}

void PrintText(const Inspection& i) {
  const model::ModelConfig& c = i.read.config;
  const model::ParameterCounts& n = i.counts;
  fmt::print("{}\n", i.files.path);
  fmt::print(
      "  {} ({}), {} layers, model dimension {}, {} heads over {} KV "
      "heads of {}, vocabulary {}, context {}\n",
      c.name.empty() ? "unnamed" : c.name, c.family, c.layers.size(),
      c.model_dim, c.num_heads, c.num_kv_heads, c.head_dim, c.vocab_size,
      c.context_length);
  fmt::print("\nParameters\n");
  fmt::print("  {:<14} {:>16}  {}\n", "total", n.total, FormatCount(n.total));
  fmt::print("  {:<14} {:>16}  {}\n", "always on", n.always_on,
             FormatCount(n.always_on));
  if (n.shared != 0) {
    fmt::print("  {:<14} {:>16}  {}, part of always on\n", "  shared", n.shared,
               FormatCount(n.shared));
  }
  fmt::print("  {:<14} {:>16}  {}\n", "routed", n.routed,
             FormatCount(n.routed));
  fmt::print("  {:<14} {:>16}  {} a token, {:.1f} % of all\n", "active",
             n.active, FormatCount(n.active), 100 * n.active_share());
  fmt::print("\nLayers\n");
  PrintLayers(i);
  fmt::print("\nBytes\n");
  for (const auto& [type, size_bytes] : i.bytes_by_type) {
    fmt::print("  {:<14} {:>12}\n", type, FormatBytes(size_bytes));
  }
  const MemoryInfo memory = ReadMemoryInfo();
  const uint64_t needed = i.weight_bytes + i.kv_bytes * 4096;
  fmt::print("\nMemory\n");
  fmt::print(
      "  {} for the weights, {} for 4,096 positions of F16 cache; this "
      "process may use {}: {}\n",
      FormatBytes(i.weight_bytes), FormatBytes(i.kv_bytes * 4096),
      FormatBytes(memory.usable_bytes()),
      needed <= memory.usable_bytes() ? "it fits" : "it does not fit");
  for (const std::string& assumption : i.read.assumptions) {
    fmt::print("\nAssumed: {}\n", assumption);
  }
}

}  // namespace

void AddInspectCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Count a model's parameters and say what it needs");
  command->add_option("model", options->model,
                      "A .gguf file, a .safetensors file or a folder; none: "
                      "the demo model");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Active parameters a token = always on + sum over layers of\n"
      "experts a token x routed parameters / experts.\n"
      "Examples:\n"
      "  muster inspect model.gguf\n"
      "  muster inspect --json model/ | jq .parameters");
  command->callback([options, &outcome] {
    const auto path = ModelOrDemo(options->model);
    if (!path.ok()) {
      outcome.exit_code = Fail(path.status());
      return;
    }
    const auto inspection = Inspect(*path);
    if (!inspection.ok()) {
      outcome.exit_code = Fail(inspection.status());
    } else if (options->json) {
      PrintJson(ToJson(*inspection));
    } else {
      PrintText(*inspection);
    }
  });
}

}  // namespace muster::cli
