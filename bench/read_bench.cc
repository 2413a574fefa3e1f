// How fast whole experts come from a disk, by engine, depth and split.
// usage: read_bench FILE [SECONDS [PIECE_KIB [ROUNDS]]]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/units.h"
#include "io/direct_file.h"
#include "io/open_read_engine.h"
#include "io/random_reads.h"
#include "tensor/aligned_buffer.h"

namespace muster::io {
namespace {

struct Way {
  bool direct = true;
  bool uring = true;
  bool registered = false;
  size_t depth = 1;
  size_t split_kib = 0;
  std::vector<double> gigabytes_per_second;
};

std::vector<Way> Ways() {
  std::vector<Way> ways;
  for (const size_t depth : {1, 2, 4, 8, 16, 32}) {
    for (const size_t split_kib : {0, 1024, 512, 256}) {
      ways.push_back({.depth = depth, .split_kib = split_kib});
    }
    ways.push_back({.registered = true, .depth = depth});
    ways.push_back({.uring = false, .depth = depth});
    ways.push_back({.direct = false, .depth = depth});
  }
  return ways;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Run(const std::string& path, double seconds, size_t piece_bytes,
        size_t num_rounds) {
  const auto direct = DirectFile::Open(path);
  const auto buffered = DirectFile::OpenBuffered(path);
  if (!direct.ok() || !buffered.ok() || direct->size_bytes() < piece_bytes) {
    fmt::print(stderr, "{}: {}\n", path,
               direct.ok() ? "too small" : direct.status().message());
    return 1;
  }
  AlignedBuffer memory(32 * piece_bytes);
  std::vector<Way> ways = Ways();
  uint64_t seed = 0;
  for (size_t round = 0; round < num_rounds; ++round) {
    for (Way& way : ways) {
      const auto opened = OpenReadEngine(
          {.depth = way.split_kib == 0 ? way.depth : way.depth * 16,
           .split_bytes = way.split_kib << 10,
           .registered =
               way.registered ? memory.bytes() : std::span<std::byte>(),
           .num_threads = way.depth,
           .allow_uring = way.uring});
      const auto rate =
          MeasureRandomReads(*opened.engine, way.direct ? *direct : *buffered,
                             {.depth = way.depth,
                              .piece_bytes = piece_bytes,
                              .seconds = seconds,
                              .seed = ++seed,
                              .dst = memory.bytes()});
      if (!rate.ok()) {
        fmt::print(stderr, "{}\n", rate.status().message());
        return 1;
      }
      way.gigabytes_per_second.push_back(*rate / 1e9);
    }
  }
  fmt::print("{} at random from {}, {} rounds of {} s in turns; GB/s\n",
             FormatBytes(piece_bytes), path, num_rounds, seconds);
  fmt::print("{:<10} {:<9} {:>5} {:>7} {:>8} {:>7} {:>7}\n", "engine", "file",
             "depth", "split", "median", "least", "most");
  for (const Way& way : ways) {
    const auto [least, most] = std::ranges::minmax(way.gigabytes_per_second);
    fmt::print("{:<10} {:<9} {:>5} {:>7} {:>8.2f} {:>7.2f} {:>7.2f}\n",
               !way.uring       ? "pread"
               : way.registered ? "registered"
                                : "io_uring",
               way.direct ? "direct" : "buffered", way.depth,
               way.split_kib == 0 ? "whole" : fmt::format("{}K", way.split_kib),
               Median(way.gigabytes_per_second), least, most);
  }
  return 0;
}

}  // namespace
}  // namespace muster::io

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: read_bench FILE [SECONDS [PIECE_KIB [ROUNDS]]]\n");
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.3;
  const size_t piece_kib = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 2764;
  const size_t rounds = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 5;
  if (seconds <= 0 || piece_kib == 0 || piece_kib % 4 != 0 || rounds == 0) {
    fmt::print(stderr,
               "read_bench: SECONDS and ROUNDS are positive, PIECE_KIB "
               "a multiple of 4\n");
    return 2;
  }
  return muster::io::Run(argv[1], seconds, piece_kib << 10, rounds);
}
