// Runs many transfers at once on the thread that calls it (libcurl's multi
// interface). Knows nothing of objects.
#pragma once

#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "io/object/transfer.h"

namespace muster::io {

// All methods but Wake belong to the owner's thread.
class TransferLoop {
 public:
  explicit TransferLoop(size_t max_connections);
  ~TransferLoop();
  TransferLoop(const TransferLoop&) = delete;
  TransferLoop& operator=(const TransferLoop&) = delete;

  // Starts a prepared transfer, which stays where it is until it has ended or
  // was stopped.
  void Start(Transfer* transfer);
  // Ends it without an outcome; its dst is not written any more.
  void Stop(Transfer* transfer);

  struct Ended {
    Transfer* transfer;
    CURLcode code;
  };
  // Moves bytes without blocking; returns what ended.
  std::vector<Ended> Advance();

  // Blocks until something can be moved, Wake was called or the time is over.
  void Wait(int64_t timeout_ms);
  // Ends the current or the next Wait. Thread-safe.
  void Wake();

  size_t num_running() const { return num_running_; }

 private:
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  std::unique_ptr<CURLM, FreeMulti> multi_;
  size_t num_running_ = 0;
};

}  // namespace muster::io
