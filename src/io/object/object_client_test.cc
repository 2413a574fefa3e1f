#include "io/object/object_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "io/object/test_server.h"

namespace muster::io {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ObjectClientTest : public ::testing::Test {
 protected:
  std::string Url(const std::string& faults, uint64_t size_bytes) const {
    return TestServerUrl(
        fmt::format("/o/{}/{}/{}.bin", session_, faults, size_bytes));
  }
  ObjectClientOptions Options() { return {.clock = &clock_}; }

  const std::string session_ = NewSession();
  FakeClock clock_;
};

TEST_F(ObjectClientTest, OpenLearnsWhatTheServerTells) {
  ObjectClient client({}, Options());
  const auto object = client.Open(Url("-", 1000));
  ASSERT_TRUE(object.ok()) << object.status().message();
  const ObjectInfo& info = client.Info(*object);
  EXPECT_EQ(info.name, Url("-", 1000));
  EXPECT_EQ(info.size_bytes, 1000u);
  EXPECT_EQ(info.etag, "\"v1-1000\"");
  EXPECT_EQ(info.sha256, "");
  EXPECT_TRUE(info.accepts_ranges);
}

TEST_F(ObjectClientTest, AnyRangeIsRead) {
  ObjectClient client({}, Options());
  const auto object = client.Open(Url("-", 200'000));
  ASSERT_TRUE(object.ok()) << object.status().message();
  const std::pair<uint64_t, size_t> ranges[] = {
      {0, 1}, {0, 200'000}, {199'999, 1}, {65'500, 100}, {12'345, 67'890}};
  for (const auto& [offset, size_bytes] : ranges) {
    const ReadOutcome read = ReadRange(client, *object, offset, size_bytes);
    EXPECT_TRUE(read.status.ok()) << read.status.message();
    EXPECT_EQ(read.bytes, ServedBytes(offset, size_bytes));
  }
  EXPECT_EQ(client.counters().read_bytes, 1u + 200'000 + 1 + 100 + 67'890);
}

TEST_F(ObjectClientTest, ManyReadsAreInFlightAndEachEndsOnce) {
  ObjectClientOptions options = Options();
  options.max_connections = 4;
  ObjectClient client({}, options);
  const auto object = client.Open(Url("-", 1'000'000));
  ASSERT_TRUE(object.ok());
  constexpr size_t kReads = 100;
  std::vector<std::vector<std::byte>> bytes(kReads);
  std::vector<RangeRequest> requests;
  for (size_t i = 0; i < kReads; ++i) {
    bytes[i].resize(5000 + i);
    requests.push_back(
        {.object = *object, .offset = i * 7919, .dst = bytes[i], .tag = i});
  }
  const int before = NumConnections();
  ASSERT_EQ(client.Submit(requests), kReads);
  std::map<uint64_t, int> ended;
  std::vector<RangeDone> done(16);
  while (client.num_in_flight() > 0) {
    const size_t count = client.Wait(1, done);
    ASSERT_GT(count, 0u);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(done[i].status.ok()) << done[i].status.message();
      ++ended[done[i].tag];
    }
  }
  for (size_t i = 0; i < kReads; ++i) {
    EXPECT_EQ(ended[i], 1);
    EXPECT_EQ(bytes[i], ServedBytes(i * 7919, 5000 + i));
  }
  // Kept alive, and bounded: 4, and that of NumConnections itself.
  EXPECT_LE(NumConnections() - before, 4 + 1);
}

TEST_F(ObjectClientTest, SubmitTakesWhatFits) {
  ObjectClientOptions options = Options();
  options.max_in_flight = 2;
  ObjectClient client({}, options);
  const auto object = client.Open(Url("-", 10));
  std::byte byte[3];
  const RangeRequest requests[] = {{.object = *object, .dst = {&byte[0], 1}},
                                   {.object = *object, .dst = {&byte[1], 1}},
                                   {.object = *object, .dst = {&byte[2], 1}}};
  EXPECT_EQ(client.Submit(requests), 2u);
  EXPECT_EQ(client.Submit(requests), 0u);
  RangeDone done[2];
  EXPECT_EQ(client.Wait(2, done), 2u);
  EXPECT_EQ(client.num_in_flight(), 0u);
}

TEST_F(ObjectClientTest, ReadsGoOnWhileAnObjectIsOpened) {
  ObjectClient client({}, Options());
  const auto first = client.Open(Url("-", 1000));
  std::vector<std::byte> bytes(1000);
  const RangeRequest request = {.object = *first, .dst = bytes};
  ASSERT_EQ(client.Submit({&request, 1}), 1u);
  ASSERT_TRUE(client.Open(Url("-", 10)).ok());
  RangeDone done;
  EXPECT_EQ(client.Wait(1, {&done, 1}), 1u);
  EXPECT_TRUE(done.status.ok());
  EXPECT_EQ(bytes, ServedBytes(0, 1000));
}

TEST_F(ObjectClientTest, AServerWithoutRangesGivesTheWholeOnly) {
  ObjectClient client({}, Options());
  const auto object = client.Open(Url("!noranges", 1000));
  ASSERT_TRUE(object.ok()) << object.status().message();
  EXPECT_FALSE(client.Info(*object).accepts_ranges);
  const ReadOutcome whole = ReadRange(client, *object, 0, 1000);
  EXPECT_TRUE(whole.status.ok()) << whole.status.message();
  EXPECT_EQ(whole.bytes, ServedBytes(0, 1000));
  const ReadOutcome part = ReadRange(client, *object, 0, 999);
  EXPECT_EQ(part.status.code(), Code::kUnsupported);
}

TEST_F(ObjectClientTest, AnUnknownSizeIsUnsupported) {
  ObjectClient client({}, Options());
  const auto object = client.Open(Url("!noranges+!nolength", 1000));
  EXPECT_EQ(object.status().code(), Code::kUnsupported);
  EXPECT_THAT(object.status().message(), HasSubstr("how large"));
}

TEST_F(ObjectClientTest, AnEmptyObjectIsOpened) {
  ObjectClient client({}, Options());
  const auto object = client.Open(Url("-", 0));
  ASSERT_TRUE(object.ok()) << object.status().message();
  EXPECT_EQ(client.Info(*object).size_bytes, 0u);
}

TEST_F(ObjectClientTest, WhatIsNotThereIsNotFoundAtOnce) {
  ObjectClient client({}, Options());
  const auto object = client.Open(TestServerUrl("/o/x/-/missing?key=secret"));
  EXPECT_EQ(object.status().code(), Code::kNotFound);
  EXPECT_EQ(
      object.status().message(),
      TestServerUrl("/o/x/-/missing") + ": the server answered 404 NoSuchKey");
  EXPECT_EQ(client.counters().num_exchanges, 1u);
}

TEST_F(ObjectClientTest, NobodyListeningIsUnavailableAfterTheAttempts) {
  ObjectClient client({}, Options());
  const auto object = client.Open("http://127.0.0.1:1/x");
  EXPECT_EQ(object.status().code(), Code::kUnavailable);
  EXPECT_THAT(object.status().message(), HasSubstr("(6 attempts)"));
}

TEST_F(ObjectClientTest, CancelledReadsEndAndOthersDoNot) {
  ObjectClient client({}, Options());
  const auto stalled = client.Open(Url("stall", 1000));
  const auto good = client.Open(Url("-", 1000));
  std::vector<std::byte> a(1000), b(1000);
  const RangeRequest requests[] = {{.object = *stalled, .dst = a, .tag = 1},
                                   {.object = *good, .dst = b, .tag = 2}};
  ASSERT_EQ(client.Submit(requests), 2u);
  RangeDone done[2];
  ASSERT_EQ(client.Wait(1, {&done[0], 1}), 1u);
  EXPECT_EQ(done[0].tag, 2u);
  EXPECT_TRUE(done[0].status.ok());
  client.Cancel(1);
  ASSERT_EQ(client.Wait(1, {&done[1], 1}), 1u);
  EXPECT_EQ(done[1].tag, 1u);
  EXPECT_EQ(done[1].status.code(), Code::kCancelled);
}

TEST_F(ObjectClientTest, AnInterruptEndsAWait) {
  ObjectClient client({}, Options());
  const auto object = client.Open(Url("stall", 1000));
  std::vector<std::byte> bytes(1000);
  const RangeRequest request = {.object = *object, .dst = bytes};
  ASSERT_EQ(client.Submit({&request, 1}), 1u);
  std::jthread other([&] { client.Interrupt(); });
  RangeDone done;
  EXPECT_EQ(client.Wait(1, {&done, 1}), 0u);
  EXPECT_EQ(client.num_in_flight(), 1u);
}

TEST_F(ObjectClientTest, WhatIsInFlightEndsWithTheClient) {
  std::vector<std::byte> bytes(1000);
  ObjectClient client({}, Options());
  const auto object = client.Open(Url("stall", 1000));
  const RangeRequest request = {.object = *object, .dst = bytes};
  ASSERT_EQ(client.Submit({&request, 1}), 1u);
}

}  // namespace
}  // namespace muster::io
