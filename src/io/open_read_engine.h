// The best engine that this process may use.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "io/read_engine.h"

namespace muster::io {

struct ReadEngineOptions {
  size_t depth = 32;                // requests in flight at most
  size_t split_bytes = 0;           // see uring_engine.h
  std::span<std::byte> registered;  // see uring_engine.h
  size_t num_threads = 8;           // where threads read
  bool allow_uring = true;
};

struct OpenedReadEngine {
  std::unique_ptr<ReadEngine> engine;
  std::string why_not_uring;  // empty: it is io_uring
};

// io_uring, or threads where that is refused. Always succeeds.
OpenedReadEngine OpenReadEngine(const ReadEngineOptions& options);

}  // namespace muster::io
