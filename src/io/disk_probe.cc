#include "io/disk_probe.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/check.h"
#include "io/direct_file.h"
#include "io/open_read_engine.h"
#include "io/random_reads.h"
#include "io/scratch_file.h"
#include "tensor/aligned_buffer.h"

namespace muster::io {
namespace {

constexpr uint64_t kScratchBytes = uint64_t{256} << 20;
constexpr size_t kPieceBytes = size_t{2} << 20;
// Not 1: the disk would idle while the owner of the engine turns to the next.
constexpr std::array<size_t, 5> kDepths = {2, 4, 8, 16, 32};
// Rounds in turns, so that a slow moment of a shared disk hits all ways.
constexpr int kMaxRounds = 4;
constexpr double kSecondsEach = 0.02;
constexpr std::chrono::seconds kEnough{1};  // no round starts after it
constexpr double kNear = 0.95;

std::vector<DiskTrial> Ways(bool direct_works) {
  std::vector<DiskTrial> ways;
  for (const bool direct : {true, false}) {
    if (direct && !direct_works) continue;
    for (const size_t depth : kDepths) {
      ways.push_back({.direct = direct, .depth = depth});
    }
  }
  return ways;
}

Result<DiskProbe> ProbeFile(const std::string& path) {
  ASSIGN_OR_RETURN(const DirectFile direct, DirectFile::Open(path));
  ASSIGN_OR_RETURN(const DirectFile buffered, DirectFile::OpenBuffered(path));
  const size_t piece_bytes = std::min<uint64_t>(
      kPieceBytes, direct.size_bytes() / kReadAlignment * kReadAlignment);
  if (piece_bytes == 0) {
    return InvalidArgument(path + ": too small to measure its disk");
  }
  AlignedBuffer memory(kDepths.back() * piece_bytes);
  std::vector<DiskTrial> ways = Ways(direct.is_direct());
  uint64_t seed = 0;
  int num_rounds = 0;
  const auto start = std::chrono::steady_clock::now();
  while (
      num_rounds < kMaxRounds &&
      (num_rounds == 0 || std::chrono::steady_clock::now() - start < kEnough)) {
    for (DiskTrial& way : ways) {
      auto opened = OpenReadEngine({.depth = way.depth});
      ASSIGN_OR_RETURN(
          const double rate,
          MeasureRandomReads(*opened.engine, way.direct ? direct : buffered,
                             {.depth = way.depth,
                              .piece_bytes = piece_bytes,
                              .seconds = kSecondsEach,
                              .seed = ++seed,
                              .dst = memory.bytes()}));
      way.bytes_per_second += rate;
    }
    ++num_rounds;
  }
  for (DiskTrial& way : ways) way.bytes_per_second /= num_rounds;
  const DiskTrial best = ChooseTrial(ways);
  return DiskProbe{
      .best = best,
      .engine = OpenReadEngine({.depth = best.depth}).engine->Name(),
      .why_not_direct = direct.why_not()};
}

}  // namespace

Result<DiskProbe> ProbeDisk(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return ProbeFile(path);
  ASSIGN_OR_RETURN(const ScratchFile file,
                   ScratchFile::Create(path, kScratchBytes));
  return ProbeFile(file.path());
}

DiskTrial ChooseTrial(std::span<const DiskTrial> trials) {
  CHECK(!trials.empty());
  const double fastest =
      std::ranges::max(trials, {}, &DiskTrial::bytes_per_second)
          .bytes_per_second;
  const DiskTrial* best = nullptr;
  for (const DiskTrial& trial : trials) {
    if (trial.bytes_per_second < kNear * fastest) continue;
    if (best == nullptr || (trial.direct && !best->direct) ||
        (trial.direct == best->direct && trial.depth < best->depth)) {
      best = &trial;
    }
  }
  return *best;
}

}  // namespace muster::io
