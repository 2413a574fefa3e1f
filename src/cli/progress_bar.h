// A bar on stderr for work that takes longer than a blink. Silent when stderr
// is not a terminal.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace muster::cli {

// Draws on a thread of its own until destroyed, which clears the line.
class ProgressBar {
 public:
  // Reads the two counters, which must outlive it. `unit_is_bytes` writes "1.2
  // GiB".
  ProgressBar(std::string what, const std::atomic<uint64_t>& done,
              const std::atomic<uint64_t>& total, bool unit_is_bytes);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  void Draw(double seconds) const;

  const std::string what_;
  const std::atomic<uint64_t>& done_;
  const std::atomic<uint64_t>& total_;
  const bool unit_is_bytes_;
  std::jthread thread_;
};

}  // namespace muster::cli
