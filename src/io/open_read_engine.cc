#include "io/open_read_engine.h"

#include <algorithm>

#include "io/thread_read_engine.h"
#include "io/uring_engine.h"

namespace muster::io {

OpenedReadEngine OpenReadEngine(const ReadEngineOptions& options) {
  std::string why_not = "not wanted";
  if (options.allow_uring) {
    auto uring = OpenUringEngine({.depth = options.depth,
                                  .split_bytes = options.split_bytes,
                                  .registered = options.registered});
    if (uring.ok()) return {.engine = std::move(*uring), .why_not_uring = ""};
    why_not = uring.status().message();
  }
  auto threads = std::make_unique<ThreadReadEngine>(ThreadReadOptions{
      .num_threads = std::min(options.num_threads, options.depth),
      .depth = options.depth,
      .split_bytes = options.split_bytes});
  return {.engine = std::move(threads), .why_not_uring = std::move(why_not)};
}

}  // namespace muster::io
