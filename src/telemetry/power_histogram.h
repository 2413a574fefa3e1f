// How often values of each magnitude occurred.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace muster::telemetry {

// Buckets of powers of two: bucket 0 has the zeros, bucket b > 0 the values
// from 2^(b-1) to 2^b - 1, the last one all above too. Never allocates. One
// thread at a time.
class PowerHistogram {
 public:
  static constexpr size_t kNumBuckets = 41;

  void Add(uint64_t value) {
    const auto bucket = static_cast<size_t>(std::bit_width(value));
    ++buckets_[std::min(bucket, kNumBuckets - 1)];
    ++count_;
  }

  uint64_t count() const { return count_; }
  uint64_t bucket(size_t b) const { return buckets_[b]; }
  // The largest value that belongs there.
  static constexpr uint64_t LargestOf(size_t b) {
    return (uint64_t{1} << b) - 1;
  }

  // At least this share of the values are at most so large, by the bucket where
  // that is first so: up to twice the true value. 0 without a value.
  uint64_t Quantile(double share) const {
    const double wanted = share * static_cast<double>(count_);
    uint64_t seen = 0;
    for (size_t b = 0; b < kNumBuckets; ++b) {
      seen += buckets_[b];
      if (seen > 0 && static_cast<double>(seen) >= wanted) return LargestOf(b);
    }
    return 0;
  }

 private:
  std::array<uint64_t, kNumBuckets> buckets_ = {};
  uint64_t count_ = 0;
};

// How long experts stay in memory and wait there, in turns: each time that a
// step comes to a layer is one.
struct ResidencyHistograms {
  PowerHistogram lifetime;  // of an evicted expert, since it came
  PowerHistogram idle;      // of an evicted one, since it was last used or came
  // Between two uses of an expert, whether it stayed in memory meanwhile or
  // not.
  PowerHistogram reuse_gap;
};

}  // namespace muster::telemetry
