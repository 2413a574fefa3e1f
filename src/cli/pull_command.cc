// muster pull: a remote object to a file.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/units.h"
#include "cli/command.h"
#include "cli/print_json.h"
#include "cli/progress_bar.h"
#include "io/object/object_download.h"
#include "io/object/object_url.h"

namespace muster::cli {
namespace {

struct PullOptions {
  std::string url;
  std::string path;
  std::string sha256;
  size_t connections = 8;
  bool allow_private = false;
  bool json = false;
};

// The file that `path`, which may be empty or a folder, means.
Result<std::string> TargetOf(const io::ObjectUrl& url,
                             const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored) ||
                         (!path.empty() && path.back() == '/');
  if (!path.empty() && !is_folder) return path;
  const std::string name = io::FileNameOf(url);
  if (name.empty()) {
    return InvalidArgument(
        fmt::format("{} does not end in a file's name; name the file to write",
                    io::NameOf(url)));
  }
  return path.empty() ? name : (std::filesystem::path(path) / name).string();
}

Status CheckSha256(const std::string& sha256) {
  const bool ok = sha256.empty() ||
                  (sha256.size() == 64 &&
                   sha256.find_first_not_of("0123456789abcdef") == sha256.npos);
  return ok ? Status()
            : InvalidArgument("--sha256: 64 lower-case hexadecimal digits");
}

void Print(const PullOptions& options, const std::string& path,
           const io::DownloadOutcome& outcome) {
  if (options.json) {
    PrintJson({{"path", path},
               {"size_bytes", outcome.size_bytes},
               {"fetched_bytes", outcome.fetched_bytes},
               {"sha256", outcome.sha256}});
    return;
  }
  fmt::print("{}\n", path);
  fmt::print(stderr, "{}, {} fetched now, SHA-256 {}\n",
             FormatBytes(outcome.size_bytes),
             FormatBytes(outcome.fetched_bytes),
             outcome.sha256.empty() ? "not known" : "verified");
}

Status Pull(const PullOptions& options) {
  RETURN_IF_ERROR(CheckSha256(options.sha256));
  ASSIGN_OR_RETURN(const io::ObjectUrl url, io::ParseObjectUrl(options.url));
  ASSIGN_OR_RETURN(const std::string path, TargetOf(url, options.path));
  io::ObjectClient client(io::ObjectSettingsFromEnvironment(),
                          {.max_connections = options.connections,
                           .allow_private_addresses = options.allow_private,
                           .seed = std::random_device()()});
  io::DownloadProgress progress;
  io::DownloadOutcome outcome;
  {
    const ProgressBar bar(path, progress.done_bytes, progress.total_bytes,
                          /*unit_is_bytes=*/true);
    ASSIGN_OR_RETURN(outcome,
                     io::DownloadObject(client, options.url, path,
                                        {.max_parallel = options.connections,
                                         .sha256 = options.sha256},
                                        progress));
  }
  Print(options, path, outcome);
  return {};
}

std::string EnvironmentHelp() {
  std::string text = "Environment:\n";
  for (const io::ObjectVariable& variable : io::ObjectVariables()) {
    text += fmt::format("  {:<28} {}\n", variable.name, variable.help);
  }
  return text;
}

}  // namespace

void AddPullCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<PullOptions>();
  CLI::App* command = app.add_subcommand(
      "pull", "Download a model's file; goes on where it stopped");
  command
      ->add_option("url", options->url,
                   "https://, s3://BUCKET/KEY, az://ACCOUNT/CONTAINER/BLOB or "
                   "hf://ORG/REPO[@REV]/FILE")
      ->required();
  command->add_option("path", options->path,
                      "A file or a folder; none: the URL's last part, here");
  command->add_option("--sha256", options->sha256,
                      "The checksum it must have; Hugging Face tells its own");
  command
      ->add_option("--connections", options->connections,
                   "How many parts are fetched at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_flag("--allow-private", options->allow_private,
                    "Follow redirects to private and local addresses");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  muster pull hf://Qwen/Qwen3-30B-A3B-GGUF/Qwen3-30B-A3B-Q4_K_M.gguf\n"
      "  muster pull s3://models/demo.gguf /var/models/\n"
      "  muster pull https://example.org/m.gguf m.gguf --sha256 0f3a...\n" +
      EnvironmentHelp());
  command->callback([options, &outcome] {
    const Status status = Pull(*options);
    if (!status.ok()) outcome.exit_code = Fail(status);
  });
}

}  // namespace muster::cli
