// The --record-routing flag: which experts each token took, in a file that
// `muster simulate` replays.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "experts/routing_trace.h"
#include "runtime/engine.h"

namespace muster::cli {

class RoutingRecorder {
 public:
  // Fails with kIoError when the file cannot be written.
  static Result<std::unique_ptr<RoutingRecorder>> Create(
      const std::string& path);
  RoutingRecorder(const RoutingRecorder&) = delete;
  RoutingRecorder& operator=(const RoutingRecorder&) = delete;

  // Writes the header and follows this engine, which must not run any more once
  // the recorder is gone.
  void Attach(runtime::Engine& engine);

  // As Engine::Append, and a line for each token is written. REQUIRES:
  // attached.
  Result<std::span<float>> Append(std::span<const int32_t> tokens);

  // Fails with kIoError when not all could be written.
  Status Finish();

 private:
  RoutingRecorder(std::string path, std::ofstream file)
      : path_(std::move(path)), file_(std::move(file)) {}
  void WriteStep(size_t num_tokens);

  const std::string path_;
  std::ofstream file_;
  runtime::Engine* engine_ = nullptr;       // null: not attached
  std::vector<routing::Routing> routings_;  // of the engine's last step
  experts::TokenRouting token_;             // token: those written so far
  std::string line_;
};

}  // namespace muster::cli
