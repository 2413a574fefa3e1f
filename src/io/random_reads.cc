#include "io/random_reads.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/check.h"

namespace muster::io {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<double> MeasureRandomReads(ReadEngine& engine, const DirectFile& file,
                                  const RandomReads& plan) {
  CHECK_LE(plan.piece_bytes, file.size_bytes());
  CHECK_LE(plan.depth * plan.piece_bytes, plan.dst.size());
  const uint64_t num_places =
      (file.size_bytes() - plan.piece_bytes) / kReadAlignment + 1;
  std::mt19937_64 random(plan.seed);
  std::vector<uint64_t> idle(plan.depth);  // parts of dst
  std::iota(idle.begin(), idle.end(), 0);
  std::array<ReadDone, 16> done;
  uint64_t num_bytes = 0;
  const auto start = Clock::now();
  do {
    while (!idle.empty() && SecondsSince(start) < plan.seconds) {
      const uint64_t part = idle.back();
      const uint64_t offset = random() % num_places * kReadAlignment;
      if (!file.is_direct()) {
        posix_fadvise(file.fd(), static_cast<off_t>(offset),
                      static_cast<off_t>(plan.piece_bytes),
                      POSIX_FADV_DONTNEED);
      }
      const ReadRequest request{
          .fd = file.fd(),
          .offset = offset,
          .dst = plan.dst.subspan(part * plan.piece_bytes, plan.piece_bytes),
          .tag = part};
      if (engine.Submit({&request, 1}) == 0) break;
      idle.pop_back();
    }
    if (engine.num_in_flight() == 0) break;
    const size_t count = engine.Wait(1, done);
    for (size_t i = 0; i < count; ++i) {
      if (done[i].status != ReadStatus::kOk) {
        return IoError(fmt::format("{}: reading at random: {}", file.path(),
                                   std::strerror(done[i].error)));
      }
      num_bytes += done[i].size_bytes;
      idle.push_back(done[i].tag);
    }
  } while (true);
  return static_cast<double>(num_bytes) / SecondsSince(start);
}

}  // namespace muster::io
