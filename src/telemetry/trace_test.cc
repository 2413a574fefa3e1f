#include "telemetry/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace muster::telemetry {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

json Written(const Trace& trace) {
  std::ostringstream out;
  trace.WriteJson(out);
  return json::parse(out.str());
}

// The zones of a written trace, in the order in which they ended.
std::vector<json> Zones(const json& written) {
  std::vector<json> zones;
  for (const json& event : written["traceEvents"]) {
    if (event["ph"] == "X") zones.push_back(event);
  }
  return zones;
}

bool IsInside(const json& inner, const json& outer) {
  const double begin = inner["ts"];
  const double outer_begin = outer["ts"];
  const double end = begin + inner["dur"].get<double>();
  const double outer_end = outer_begin + outer["dur"].get<double>();
  constexpr double kRounding = 0.002;  // two figures of three decimals each
  return begin >= outer_begin - kRounding && end <= outer_end + kRounding;
}

TEST(TraceTest, ZonesNestAndCarryNumbers) {
  const Trace trace;
  {
    const TraceZone outer("layer", {"layer", 3});
    const TraceZone inner("expert", {"layer", 3}, {"expert", -1});
  }
  const std::vector<json> zones = Zones(Written(trace));
  ASSERT_EQ(zones.size(), 2u);
  EXPECT_EQ(zones[0]["name"], "expert");
  EXPECT_EQ(zones[0]["args"], json({{"layer", 3}, {"expert", -1}}));
  EXPECT_EQ(zones[1]["name"], "layer");
  EXPECT_EQ(zones[1]["args"], json({{"layer", 3}}));
  EXPECT_EQ(zones[0]["tid"], zones[1]["tid"]);
  EXPECT_TRUE(IsInside(zones[0], zones[1]));
}

TEST(TraceTest, TimesAreMicroseconds) {
  using Clock = std::chrono::steady_clock;
  const Trace trace;
  { const TraceZone first("takes memory"); }
  const auto before = Clock::now();
  {
    const TraceZone zone("busy");
    const auto start = Clock::now();
    while (Clock::now() - start < std::chrono::milliseconds(5)) {
    }
  }
  const double elapsed_us =
      std::chrono::duration<double, std::micro>(Clock::now() - before).count();
  const double zone_us = Zones(Written(trace))[1]["dur"];
  // A hundredth: the two clocks are compared over some milliseconds, to within
  // the microseconds for which a thread may be held up between them.
  EXPECT_LE(zone_us, elapsed_us * 1.01);
  EXPECT_GE(zone_us, 5000 * 0.99);
}

TEST(TraceTest, WithoutATraceNothingIsRecorded) {
  { const Trace earlier; }
  { const TraceZone zone("between"); }
  const Trace trace;
  EXPECT_THAT(Zones(Written(trace)), IsEmpty());
}

TEST(TraceTest, AZoneThatOutlivesItsTraceIsInNoTrace) {
  auto first = std::make_unique<Trace>();
  auto zone = std::make_unique<TraceZone>("open");
  first.reset();
  const Trace second;
  zone.reset();
  EXPECT_THAT(Zones(Written(second)), IsEmpty());
}

TEST(TraceTest, ASecondTraceStartsEmpty) {
  {
    const Trace trace;
    const TraceZone zone("old");
  }
  const Trace trace;
  { const TraceZone zone("new"); }
  const std::vector<json> zones = Zones(Written(trace));
  ASSERT_EQ(zones.size(), 1u);
  EXPECT_EQ(zones[0]["name"], "new");
}

TEST(TraceTest, ThreadsKeepTheirNamesAfterTheirEnd) {
  const Trace trace;
  std::thread([] {
    pthread_setname_np(pthread_self(), "a \"b\\\n\xff");
    const TraceZone zone("work");
  }).join();
  const json written = Written(trace);
  const json zone = Zones(written)[0];
  std::vector<std::string> names;
  for (const json& event : written["traceEvents"]) {
    if (event["name"] == "thread_name" && event["tid"] == zone["tid"]) {
      names.push_back(event["args"]["name"]);
    }
  }
  EXPECT_THAT(names, ElementsAre("a \"b\\??"));
}

TEST(TraceTest, ZonesBeyondTheLimitAreCountedAndNotKept) {
  const Trace trace(/*zones_per_thread=*/3);
  for (int i = 0; i < 10; ++i) const TraceZone zone("zone");
  const json written = Written(trace);
  EXPECT_EQ(Zones(written).size(), 3u);
  EXPECT_EQ(written["otherData"]["dropped_zones"], 7);
}

TEST(TraceTest, OtherThreadsMayGoOnWhileATraceIsWritten) {
  const Trace trace;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) const TraceZone zone("other", {"n", 1});
  });
  size_t before = 0;
  for (int i = 0; i < 3; ++i) {
    const size_t now = Zones(Written(trace)).size();
    EXPECT_GE(now, before);
    before = now;
  }
  stop = true;
  other.join();
}

TEST(TraceTest, TheCurrentNameIsTheInnermostOpenZones) {
  const Trace trace;
  EXPECT_EQ(TraceZone::CurrentName(), nullptr);
  const TraceZone outer("outer");
  {
    const TraceZone inner("inner");
    EXPECT_STREQ(TraceZone::CurrentName(), "inner");
  }
  EXPECT_STREQ(TraceZone::CurrentName(), "outer");
}

}  // namespace
}  // namespace muster::telemetry
