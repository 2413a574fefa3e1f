#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "base/units.h"

namespace muster::cli {

ProgressBar::ProgressBar(std::string what, const std::atomic<uint64_t>& done,
                         const std::atomic<uint64_t>& total, bool unit_is_bytes)
    : what_(std::move(what)),
      done_(done),
      total_(total),
      unit_is_bytes_(unit_is_bytes) {
  if (isatty(STDERR_FILENO) == 0) return;
  thread_ = std::jthread([this](std::stop_token stop) {
    const auto start = std::chrono::steady_clock::now();
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    bool drawn = false;
    while (!wake.wait_for(lock, stop, std::chrono::milliseconds(200),
                          [&] { return stop.stop_requested(); })) {
      const std::chrono::duration<double> spent =
          std::chrono::steady_clock::now() - start;
      Draw(spent.count());
      drawn = true;
    }
    if (drawn) fmt::print(stderr, "\r\033[K");
  });
}

ProgressBar::~ProgressBar() = default;

void ProgressBar::Draw(double seconds) const {
  const uint64_t done = done_, total = total_;
  if (total == 0) return;
  const double share =
      std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  constexpr size_t kWidth = 30;
  const auto filled = static_cast<size_t>(share * kWidth);
  const auto show = [&](uint64_t n) {
    return unit_is_bytes_ ? FormatBytes(n) : std::to_string(n);
  };
  const std::string left =
      share > 0.02 ? FormatSeconds(seconds / share * (1 - share)) + " left"
                   : "";
  fmt::print(stderr, "\r\033[K{} [{}{}] {} of {}  {}", what_,
             std::string(filled, '#'), std::string(kWidth - filled, '.'),
             show(done), show(total), left);
  std::fflush(stderr);
}

}  // namespace muster::cli
