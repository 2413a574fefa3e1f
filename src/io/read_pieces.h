// The bookkeeping behind an engine whose reads take time: large requests are
// cut into pieces that are read side by side, short reads go on where they
// stopped, and each request ends once.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "io/read_engine.h"

namespace muster::io {

// Not thread-safe.
class ReadPieces {
 public:
  struct Options {
    size_t max_requests = 32;  // between Add and TakeDone
    size_t max_pieces = 32;    // being read at a time
    size_t split_bytes = 0;    // multiple of the alignment; 0: whole requests
  };
  explicit ReadPieces(const Options& options);

  // False, and nothing happens, when there are max_requests.
  bool Add(const ReadRequest& request);

  // The next piece to start, first request first; nullopt when none is left or
  // max_pieces are being read.
  std::optional<uint32_t> Start();

  // What is still to be read of a started piece.
  ReadRequest Rest(uint32_t piece) const;

  // A read of Rest(piece) returned `result`, bytes or -errno. True: read the
  // rest that there is now. False: the piece has ended, its number is free.
  [[nodiscard]] bool Ended(uint32_t piece, ssize_t result);

  // Forgets what has not been started.
  void DropQueue() { queue_.clear(); }

  size_t num_done() const { return done_.size(); }
  size_t TakeDone(std::span<ReadDone> done);

  size_t num_started() const { return pieces_.size() - free_pieces_.size(); }
  size_t num_requests() const { return num_open_ + done_.size(); }

 private:
  static constexpr size_t kNoEnd = std::numeric_limits<size_t>::max();

  struct Request {
    ReadRequest what;
    size_t num_started = 0;    // bytes of it that are in some piece
    size_t num_pieces = 0;     // being read
    size_t file_end = kNoEnd;  // bytes of it before the file ends
    int error = 0;             // the first
  };
  struct Piece {
    uint32_t request = 0;
    size_t begin = 0;  // of the request's bytes
    size_t end = 0;
    size_t num_read = 0;
    int num_retries = 0;
  };

  bool Retry(Piece& piece, int error);
  void Finish(uint32_t request);

  Options options_;
  std::vector<Request> requests_;
  std::vector<uint32_t> free_requests_;
  std::vector<Piece> pieces_;
  std::vector<uint32_t> free_pieces_;
  std::deque<uint32_t> queue_;  // requests with bytes that were not started
  std::deque<ReadDone> done_;
  size_t num_open_ = 0;
};

}  // namespace muster::io
