#include "telemetry/power_histogram.h"

#include <gtest/gtest.h>

namespace muster::telemetry {
namespace {

TEST(PowerHistogramTest, AValueFallsIntoTheBucketOfItsMagnitude) {
  PowerHistogram histogram;
  for (const uint64_t value : {0, 1, 2, 3, 4, 7, 8}) histogram.Add(value);
  EXPECT_EQ(histogram.count(), 7u);
  EXPECT_EQ(histogram.bucket(0), 1u);
  EXPECT_EQ(histogram.bucket(1), 1u);
  EXPECT_EQ(histogram.bucket(2), 2u);
  EXPECT_EQ(histogram.bucket(3), 2u);
  EXPECT_EQ(histogram.bucket(4), 1u);
}

TEST(PowerHistogramTest, TheLastBucketTakesAllThatIsLarger) {
  PowerHistogram histogram;
  histogram.Add(~uint64_t{0});
  EXPECT_EQ(histogram.bucket(PowerHistogram::kNumBuckets - 1), 1u);
}

TEST(PowerHistogramTest, QuantilesAreTheUpperEndsOfTheirBuckets) {
  PowerHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0u);
  for (int i = 0; i < 8; ++i) histogram.Add(5);
  histogram.Add(100);
  histogram.Add(1000);
  EXPECT_EQ(histogram.Quantile(0.5), 7u);
  EXPECT_EQ(histogram.Quantile(0.9), 127u);
  EXPECT_EQ(histogram.Quantile(1), 1023u);
}

}  // namespace
}  // namespace muster::telemetry
