#include "cli/engine_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <optional>

#include "base/units.h"
#include "cli/demo_model.h"
#include "cli/prewarm_flag.h"
#include "cli/progress_bar.h"
#include "kernels/instruction_set.h"

namespace muster::cli {

void AddModelFlags(CLI::App& command, EngineFlags& flags) {
  command.add_option(
      "model", flags.model,
      "A .gguf file, a .safetensors file, a folder or the URL of "
      "a file (https://, s3://, az://, hf://); none: the demo "
      "model");
  AddRemoteFlags(command, flags.remote);
  command.add_option(
      "--isa", flags.isa,
      "Force an instruction set: avx2, avx512, avx512vnni, avx512bf16");
  command.add_option(
      "--ram", flags.ram,
      "Memory that the process may take, such as 8G: experts that do not fit "
      "are read when a token calls them; default: what it may use");
  command
      .add_option("--eviction", flags.eviction,
                  "Which expert makes room for another: lru, lfru or "
                  "least-stale")
      ->check(CLI::IsMember({"lru", "lfru", "least-stale"}))
      ->capture_default_str();
  AddPoolFlags(command, flags.pool);
  command.add_option(
      "--cache-aware", flags.cache_aware,
      "MARGIN[,MAX_RANK]: not exact; an expert that would have to be read may "
      "give way to one in memory with at least 1 - MARGIN of its score, among "
      "a token's MAX_RANK best (default: twice as many as it takes)");
  command.add_option(
      "--tail", flags.tail,
      "WEIGHT: not exact; an expert that would have to be read for less than "
      "this share of a token's weights (0.3: 30 %) is computed from its "
      "low-bit "
      "copy, in a pack made with `muster pack --tail`");
  command
      .add_option("--prefetch", flags.prefetch,
                  "How many layers ahead a token's experts are guessed and "
                  "read: auto measures what pays; off, 1, 2, 3")
      ->check(CLI::IsMember({"auto", "off", "1", "2", "3"}))
      ->capture_default_str();
  command.add_flag("--no-tuning", flags.no_tuning,
                   "Leave aside what `muster bench --tune` found");
  command.add_flag("-q,--quiet", flags.quiet, "Print nothing but the result");
}

void AddEngineFlags(CLI::App& command, EngineFlags& flags) {
  AddModelFlags(command, flags);
  command
      .add_option("-t,--threads", flags.num_threads,
                  "Threads; 0: as tuned, else every core that this process may "
                  "use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      .add_option("-c,--ctx", flags.context_length,
                  "Tokens of context, at most what the model was made for")
      ->check(CLI::Range(1, 1 << 28))
      ->capture_default_str();
  command
      .add_option(
          "--chunk", flags.chunk_tokens,
          "Prompt tokens a step: larger is faster and takes more memory; 0: as "
          "tuned, else 512")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--kv", flags.kv_type,
                  "How keys and values are kept: f32, f16 or q8")
      ->check(CLI::IsMember(kKvNames))
      ->capture_default_str();
}

kernels::KvType KvTypeOf(const std::string& name) {
  if (name == "f32") return kernels::KvType::kF32;
  return name == "q8" ? kernels::KvType::kQ8 : kernels::KvType::kF16;
}

namespace {

Result<routing::CacheAware> ParseCacheAware(const std::string& text) {
  routing::CacheAware aware;
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, aware.margin);
  bool good = error == std::errc() && aware.margin >= 0 && aware.margin <= 1;
  if (good && at != end) {
    const auto rank = std::from_chars(at + 1, end, aware.max_rank);
    good = *at == ',' && rank.ec == std::errc() && rank.ptr == end &&
           aware.max_rank > 0;
  }
  if (!good) {
    return InvalidArgument(fmt::format(
        "--cache-aware '{}': expected a margin from 0 to 1 and, behind a "
        "comma, a rank from 1 on",
        text));
  }
  return aware;
}

Result<float> ParseTail(const std::string& text) {
  float weight = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, weight);
  if (error == std::errc() && at == end && weight >= 0 && weight <= 1) {
    return weight;
  }
  return InvalidArgument(
      fmt::format("--tail '{}': expected a weight from 0 to 1", text));
}

}  // namespace

Result<runtime::RoutingChoice> ParseRouting(const EngineFlags& flags) {
  runtime::RoutingChoice choice;
  if (!flags.cache_aware.empty()) {
    ASSIGN_OR_RETURN(choice.cache_aware, ParseCacheAware(flags.cache_aware));
  }
  if (!flags.tail.empty()) {
    ASSIGN_OR_RETURN(choice.tail_weight, ParseTail(flags.tail));
  }
  return choice;
}

Tuning TunedDefaults(const EngineFlags& flags) {
  const runtime::EngineOptions shipped;
  const Tuning untuned = {shipped.num_threads, shipped.chunk_tokens};
  if (flags.no_tuning) return untuned;
  const auto tuning = LoadTuning();
  if (!tuning.ok() && !flags.quiet) {
    fmt::print(stderr, "note: not tuned: {}\n", tuning.status().message());
  }
  return tuning.ok() ? tuning->value_or(untuned) : untuned;
}

namespace {

// What --prefetch says. REQUIRES: one of its values.
std::optional<uint32_t> LayersAhead(const std::string& prefetch) {
  if (prefetch == "auto") return std::nullopt;
  return prefetch == "off" ? 0 : static_cast<uint32_t>(prefetch[0] - '0');
}

// What takes a fraction of a second is loaded first. Routing that asks what is
// in memory is to see all of it.
std::optional<uint64_t> LoadBehindBytes(const EngineFlags& flags) {
  constexpr uint64_t kLittle = uint64_t{256} << 20;
  if (!flags.load_behind || !IsExact(flags)) return std::nullopt;
  return kLittle;
}

}  // namespace

Result<OpenedModel> OpenFiles(const EngineFlags& flags) {
  ASSIGN_OR_RETURN(const std::string path, ModelOrDemo(flags.model));
  OpenedModel opened;
  ASSIGN_OR_RETURN(opened.remote, OpenRemoteFor(path, flags.remote));
  ASSIGN_OR_RETURN(opened.files, formats::OpenModelFiles(path));
  return opened;
}

Status LoadEngine(const EngineFlags& flags, OpenedModel& opened) {
  if (!flags.isa.empty()) {
    RETURN_IF_ERROR(kernels::ForceInstructionSet(flags.isa));
  }
  ASSIGN_OR_RETURN(const auto routing, ParseRouting(flags));
  uint64_t ram_bytes = 0;
  if (!flags.ram.empty()) {
    ASSIGN_OR_RETURN(ram_bytes, ParseBytes(flags.ram));
    if (ram_bytes == 0) return InvalidArgument("--ram 0: expected some memory");
  }
  const auto start = std::chrono::steady_clock::now();
  runtime::LoadProgress progress;
  {
    std::unique_ptr<ProgressBar> bar;
    if (!flags.quiet) {
      bar = std::make_unique<ProgressBar>("loading", progress.done_bytes,
                                          progress.total_bytes, true);
    }
    const Tuning tuned = TunedDefaults(flags);
    const auto or_tuned = [](size_t flag, size_t otherwise) {
      return flag != 0 ? flag : otherwise;
    };
    runtime::EngineOptions options = {
        .num_threads = or_tuned(flags.num_threads, tuned.num_threads),
        .context_length = flags.context_length,
        .chunk_tokens = or_tuned(flags.chunk_tokens, tuned.chunk_tokens),
        .kv_type = KvTypeOf(flags.kv_type),
        .logit_rows = flags.logit_rows,
        .tiers = {.ram_bytes = ram_bytes,
                  .policy = flags.eviction,
                  .load_behind_bytes = LoadBehindBytes(flags),
                  .layers_ahead = LayersAhead(flags.prefetch)},
        .routing = routing};
    RETURN_IF_ERROR(ApplyPoolFlags(flags.pool, options.tiers));
    ASSIGN_OR_RETURN(opened.engine,
                     runtime::Engine::Load(opened.files, options, &progress));
  }
  opened.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (!flags.quiet) {
    for (const std::string& assumption : opened.engine->model().assumptions) {
      fmt::print(stderr, "note: {}\n", assumption);
    }
    const runtime::LoadedModel& model = opened.engine->model();
    if (model.tiers != nullptr) {
      fmt::print(stderr, "note: {}\n", runtime::Describe(model.plan));
    } else if (!IsExact(flags)) {
      fmt::print(stderr,
                 "note: all experts are in memory: {} changes nothing\n",
                 flags.cache_aware.empty() ? "--tail" : "--cache-aware");
    }
    if (opened.engine->context_length() < flags.context_length) {
      fmt::print(stderr,
                 "note: the context is {} tokens, all that the model "
                 "was made for\n",
                 opened.engine->context_length());
    }
  }
  return PrewarmAsAsked(flags.prewarm, flags.quiet, opened.files,
                        *opened.engine);
}

Result<OpenedModel> OpenModel(const EngineFlags& flags) {
  ASSIGN_OR_RETURN(auto opened, OpenFiles(flags));
  RETURN_IF_ERROR(LoadEngine(flags, opened));
  return opened;
}

}  // namespace muster::cli
