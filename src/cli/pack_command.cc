// muster pack: a model as an expert pack, whose experts are read with one read
// each and used as they are.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/thread_pool.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print_json.h"
#include "cli/progress_bar.h"
#include "experts/pack_writer.h"

namespace muster::cli {
namespace {

struct PackFlags {
  std::string model;
  std::string out;
  std::string order_by;
  std::string tail;  // empty: no low-bit copies
  size_t num_threads = 0;
  double shard_gib = 4;
  bool force = false;
  bool quiet = false;
  bool json = false;
};

// REQUIRES: one of the values of --tail, or empty.
std::optional<DType> CopyType(const std::string& tail) {
  if (tail.empty()) return std::nullopt;
  return tail == "q2_k" ? DType::kQ2_K : DType::kQ3_K;
}

Status Pack(const PackFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const auto source, experts::PackSource::Open(flags.model));
  experts::ExpertOrder order = experts::OrderByIndex(source->config());
  if (!flags.order_by.empty()) {
    ASSIGN_OR_RETURN(order,
                     experts::OrderByTrace(flags.order_by, source->config()));
  }
  const InterruptGuard guard;
  std::atomic<bool> interrupted{false};
  experts::PackProgress progress;
  const experts::PackOptions options = {
      // While one reads, another converts.
      .num_threads =
          flags.num_threads != 0 ? flags.num_threads : 2 * DefaultNumThreads(),
      .shard_bytes = static_cast<uint64_t>(flags.shard_gib * (1 << 30)),
      .copies = CopyType(flags.tail),
      .force = flags.force,
      .stop = [&] {
        if (InterruptGuard::Take()) interrupted = true;
        return interrupted.load();
      }};
  Result<experts::PackResult> written = Status();
  {
    std::unique_ptr<ProgressBar> bar;
    if (!flags.quiet) {
      bar = std::make_unique<ProgressBar>("packing", progress.done_bytes,
                                          progress.total_bytes, true);
    }
    written = experts::WritePack(*source, order, flags.out, options, &progress);
  }
  RETURN_IF_ERROR(written.status());
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  if (flags.json) {
    PrintJson({{"path", flags.out},
               {"bytes", written->size_bytes},
               {"experts", written->num_experts},
               {"shards", written->num_shards},
               {"parts", written->num_units},
               {"resumed_parts", written->num_resumed_units},
               {"seconds", spent.count()}});
  } else if (!flags.quiet) {
    fmt::print(
        "{}: {} experts in {} files, {} in all, {}{}\n", flags.out,
        written->num_experts, written->num_shards,
        FormatBytes(written->size_bytes), FormatSeconds(spent.count()),
        written->num_resumed_units == 0
            ? ""
            : fmt::format("; {} of {} parts were there already",
                          written->num_resumed_units, written->num_units));
  }
  return {};
}

}  // namespace

void AddPackCommand(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<PackFlags>();
  CLI::App* command = app.add_subcommand(
      "pack",
      "Write a model as an expert pack, the form that is fastest to "
      "read an expert at a time");
  command
      ->add_option("model", flags->model,
                   "A .gguf file, a .safetensors file or a folder")
      ->required();
  command->add_option("out", flags->out, "The folder to make")->required();
  command->add_option(
      "--order-by", flags->order_by,
      "A trace of `muster run --record-routing`: experts that were taken "
      "together stand together");
  command
      ->add_option("--tail", flags->tail,
                   "Also a copy of each expert in few bits, q2_k or q3_k, for "
                   "the --tail of `muster run`")
      ->check(CLI::IsMember({"q2_k", "q3_k"}));
  command
      ->add_option("-t,--threads", flags->num_threads,
                   "Threads; 0: two for each core that this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      ->add_option("--shard-size", flags->shard_gib,
                   "GiB that a file of experts holds at most")
      ->check(CLI::Range(0.0, 1048576.0))
      ->capture_default_str();
  command->add_flag("--force", flags->force,
                    "Replace a pack that stands there");
  command->add_flag("--json", flags->json, "Print JSON");
  command->add_flag("-q,--quiet", flags->quiet, "Print nothing but errors");
  command->footer(
      "Interrupted, by Ctrl-C or worse, the same command goes on where it "
      "stopped.\n"
      "Examples:\n"
      "  muster pack model.gguf model.pack/\n"
      "  muster pack model.gguf model.pack/ --order-by trace.jsonl\n"
      "  muster pack model.gguf model.pack/ --tail q2_k\n"
      "  muster run model.pack/ -p 'Once'");
  command->callback([flags, &outcome] {
    if (const Status status = Pack(*flags); !status.ok()) {
      outcome.exit_code = Fail(status);
    }
  });
}

}  // namespace muster::cli
