// Reads through io_uring: the kernel takes a batch in one call and works on all
// of it at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/status.h"
#include "io/read_engine.h"

namespace muster::io {

struct UringOptions {
  // Reads that the kernel has at a time, and requests in flight, each.
  size_t depth = 32;
  // Larger requests are read in pieces of so many bytes; 0: whole. Pieces past
  // `depth` start when the owner next calls Submit or Wait.
  size_t split_bytes = 0;
  // Pinned in memory while the engine lives, so that reads into it spare the
  // kernel that work each time. When that is refused (RLIMIT_MEMLOCK), reads go
  // on without and Name() says so. Must outlive the engine; none of its pages
  // can be given back meanwhile.
  std::span<std::byte> registered;
};

// Fails with kUnsupported when the kernel has no io_uring or its owner forbids
// it, as containers do, and kResourceExhausted when it has no room for another.
Result<std::unique_ptr<ReadEngine>> OpenUringEngine(
    const UringOptions& options);

}  // namespace muster::io
