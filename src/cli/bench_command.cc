// muster bench: how fast a model is here.
#include <fmt/format.h>

#include <algorithm>

#include <memory>

#include "cli/bench/measure.h"
#include "cli/bench/plan.h"
#include "cli/bench/report.h"
#include "cli/bench/report_cost.h"
#include "cli/bench/roofline.h"
#include "cli/bench/tune.h"
#include "cli/command.h"
#include "cli/demo_model.h"
#include "cli/prewarm_flag.h"
#include "cli/print_json.h"
#include "cli/progress_bar.h"
#include "model/config_reader.h"

namespace muster::cli {
namespace {

// Before the weights are read: a plan that makes no sense should not cost the
// wait.
Result<BenchPlan> PlanFor(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(const std::string path, ModelOrDemo(flags.engine.model));
  ASSIGN_OR_RETURN(const auto remote, OpenRemoteFor(path, flags.engine.remote));
  ASSIGN_OR_RETURN(const auto files, formats::OpenModelFiles(path));
  ASSIGN_OR_RETURN(const auto read, model::ReadConfig(files));
  return MakePlan(flags, read.config);
}

// The weights, without an engine: each measurement makes its own.
// What they may take of the memory depends on the longest context.
Result<OpenedModel> OpenWeights(const BenchFlags& flags,
                                size_t context_length) {
  EngineFlags engine = flags.engine;
  engine.num_threads = flags.num_threads.front();
  engine.context_length = context_length;
  engine.chunk_tokens =
      *std::max_element(flags.chunks.begin(), flags.chunks.end());
  engine.kv_type = flags.kv_types.front();
  return OpenModel(engine);
}

Result<std::vector<Measurement>> MeasureWithBar(
    const BenchFlags& flags, const BenchPlan& plan,
    const std::shared_ptr<const runtime::LoadedModel>& model) {
  std::atomic<uint64_t> done{0}, total{plan.num_tokens()};
  std::unique_ptr<ProgressBar> bar;
  if (!flags.engine.quiet) {
    bar = std::make_unique<ProgressBar>("measuring", done, total, false);
  }
  return Measure(model, plan, done, [&](const Measurement& m) {
    if (!flags.engine.quiet) {
      fmt::print(stderr, "\r{}\n", MeasurementLine(m));
    }
  });
}

BenchSubject SubjectOf(const OpenedModel& opened,
                       const runtime::LoadedModel& model) {
  return {.path = opened.files.path,
          .file_bytes = opened.files.size_bytes,
          .load_seconds = opened.load_seconds,
          .model = &model};
}

void Print(const BenchFlags& flags, const BenchSubject& subject,
           const std::vector<Measurement>& measurements) {
  const std::vector<MachinePeak> peaks = flags.roofline
                                             ? MeasurePeaksFor(measurements)
                                             : std::vector<MachinePeak>{};
  const double report_seconds =
      flags.report_cost ? ReportSecondsPerToken(subject.model->config) : 0;
  if (flags.json) {
    auto json = BenchJson(subject, measurements);
    if (flags.roofline) {
      json["roofline"] = RooflineJson(peaks, measurements, *subject.model);
    }
    if (flags.report_cost) {
      json["report_cost"] = ReportCostJson(report_seconds, measurements);
    }
    PrintJson(json);
    return;
  }
  fmt::print("{}", BenchTable(subject, measurements));
  if (flags.roofline) {
    fmt::print("{}", RooflineText(peaks, measurements, *subject.model));
  }
  if (flags.report_cost) {
    fmt::print("{}", ReportCostText(report_seconds, measurements));
  }
}

// The other mode: nothing that was asked for is measured.
Status RunTune(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(const OpenedModel opened, OpenWeights(flags, 1));
  const auto model = opened.engine->shared_model();
  ASSIGN_OR_RETURN(const TuneResult result, Tune(model, flags.repetitions));
  RETURN_IF_ERROR(SaveTuning(result.best));
  const BenchSubject subject = SubjectOf(opened, *model);
  if (flags.json) {
    auto json = BenchJson(subject, result.measurements);
    json["tuning"] = TuneJson(result);
    PrintJson(json);
  } else {
    fmt::print("{}{}", BenchTable(subject, result.measurements),
               TuneText(result));
  }
  return {};
}

Status Run(const BenchFlags& flags) {
  if (flags.tune) return RunTune(flags);
  ASSIGN_OR_RETURN(const BenchPlan plan, PlanFor(flags));
  ASSIGN_OR_RETURN(const OpenedModel opened,
                   OpenWeights(flags, plan.context_length()));
  const auto model = opened.engine->shared_model();
  ASSIGN_OR_RETURN(const auto measurements, MeasureWithBar(flags, plan, model));
  Print(flags, SubjectOf(opened, *model), measurements);
  return {};
}

// Options that take lists: "-p 128,512" or "-p 128 -p 512".
void AddListFlags(CLI::App& command, BenchFlags& flags) {
  const auto add = [&command](const char* name, auto& list, const char* help) {
    return command.add_option(name, list, help)
        ->delimiter(',')
        ->allow_extra_args(false)  // what follows the list is the model
        ->capture_default_str();
  };
  add("-p,--prompt", flags.prompt_tokens, "Prompt tokens to time; 0: none")
      ->check(CLI::Range(0, 1 << 28));
  add("-n,--generate", flags.generated_tokens,
      "Tokens to time one by one; 0: none")
      ->check(CLI::Range(0, 1 << 28));
  add("-d,--depth", flags.depths,
      "Tokens that are in the context before the timing starts")
      ->check(CLI::Range(0, 1 << 28));
  add("-t,--threads", flags.num_threads,
      "Threads; 0: as tuned, else every core that this process may use")
      ->check(CLI::Range(0, 1024));
  add("--chunk", flags.chunks, "Prompt tokens a step; 0: as tuned, else 512")
      ->check(CLI::Range(0, 1 << 20));
  add("--kv", flags.kv_types, "How keys and values are kept: f32, f16 or q8")
      ->check(CLI::IsMember(kKvNames));
}

}  // namespace

void AddBenchCommand(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand(
      "bench", "Time prompts and generation: tokens a second");
  AddModelFlags(*command, flags->engine);
  AddPrewarmFlag(*command, flags->engine.prewarm);
  AddListFlags(*command, *flags);
  command
      ->add_option("-r,--repetitions", flags->repetitions,
                   "How often each is timed; all count, the median is shown")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_flag("--roofline", flags->roofline,
                    "Measure the machine too, and say what share of its limit "
                    "was reached and where the time goes");
  command->add_flag("--tune", flags->tune,
                    "Find the fastest threads and chunk, and keep them for "
                    "this machine");
  command->add_flag("--report-cost", flags->report_cost,
                    "Measure what counting experts for the report costs");
  command->add_flag("--json", flags->json, "Print JSON, with every sample");
  command->footer(
      "pp512 is a prompt of 512 tokens, tg64 are 64 tokens one by one; tokens "
      "are pseudo-\nrandom and the same in every run. Lists are combined: each "
      "member with each.\n"
      "Examples:\n"
      "  muster bench model.gguf\n"
      "  muster bench model.gguf -p 128,512 -n 32 -d 0,4096,16384\n"
      "  muster bench model.gguf --roofline\n"
      "  muster bench model.gguf --tune\n"
      "  muster bench model.gguf -p 0 -t 1,2,4 --json");
  command->callback([flags, &outcome] {
    const Status status = Run(*flags);
    if (!status.ok()) outcome.exit_code = Fail(status);
  });
}

}  // namespace muster::cli
