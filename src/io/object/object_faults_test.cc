// What servers do wrong (CASES: truncated or altered download, 200 instead of
// 206, changed ETag mid-way): retried, or refused with a reason; never taken.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/object/object_client.h"
#include "io/object/test_server.h"

namespace muster::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kSize = 100'000;

class ObjectFaultsTest : public ::testing::Test {
 protected:
  // Reads [10, 60010) of an object with these faults.
  ReadOutcome Read(const std::string& faults) {
    ObjectClientOptions options = options_;
    if (options.clock == nullptr) options.clock = &clock_;
    ObjectClient client({}, options);
    const auto object = client.Open(TestServerUrl(
        fmt::format("/o/{}/{}/{}.bin?key=secret", session_, faults, kSize)));
    EXPECT_TRUE(object.ok()) << object.status().message();
    ReadOutcome read = ReadRange(client, *object, 10, 60'000);
    counters_ = client.counters();
    EXPECT_THAT(read.status.message(), Not(HasSubstr("secret")));
    return read;
  }

  void ExpectMended(const std::string& faults, uint64_t num_retries) {
    const int64_t begin_ms = clock_.NowMs();
    const ReadOutcome read = Read(faults);
    EXPECT_TRUE(read.status.ok()) << read.status.message();
    EXPECT_EQ(read.bytes, ServedBytes(10, 60'000));
    EXPECT_EQ(counters_.num_retries, num_retries);
    waited_ms_ = clock_.NowMs() - begin_ms;
  }

  void ExpectRefused(const std::string& faults, Code code,
                     const std::string& reason) {
    const ReadOutcome read = Read(faults);
    EXPECT_EQ(read.status.code(), code) << read.status.message();
    EXPECT_THAT(read.status.message(),
                AllOf(HasSubstr(reason), HasSubstr("bytes 10-60009")));
    EXPECT_EQ(counters_.num_failures, 1u);
  }

  const std::string session_ = NewSession();
  FakeClock clock_;
  ObjectClientOptions options_;
  ObjectCounters counters_;
  int64_t waited_ms_ = 0;
};

TEST_F(ObjectFaultsTest, ServerErrorsAreRetriedWithGrowingDelays) {
  ExpectMended("status=500,3", 3);
  EXPECT_GE(waited_ms_, 100 + 200 + 400);
  EXPECT_LE(waited_ms_, 200 + 400 + 800);
}

TEST_F(ObjectFaultsTest, RetryAfterIsRespected) {
  ExpectMended("status=503,1", 1);
  EXPECT_EQ(waited_ms_, 7000);
}

TEST_F(ObjectFaultsTest, LastingErrorsEndAfterTheAttempts) {
  ExpectRefused("status=500", Code::kUnavailable,
                "the server answered 500 Injected (6 attempts)");
}

TEST_F(ObjectFaultsTest, ADeadlineEndsTheAttempts) {
  options_.timeout_ms = 500;
  options_.max_attempts = 1000;
  ExpectRefused("status=500", Code::kUnavailable, "500 Injected");
  EXPECT_LE(counters_.num_retries, 3u);
}

TEST_F(ObjectFaultsTest, ClientErrorsAreNotRetried) {
  ExpectRefused("status=400", Code::kIoError, "400 Injected");
  EXPECT_EQ(counters_.num_retries, 0u);
}

// libcurl itself asks again when it was a kept connection that ended.
TEST_F(ObjectFaultsTest, ADroppedConnectionIsRetried) {
  const ReadOutcome read = Read("drop,3");
  EXPECT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_EQ(read.bytes, ServedBytes(10, 60'000));
  EXPECT_GE(counters_.num_retries, 1u);
}

TEST_F(ObjectFaultsTest, ATruncatedBodyIsRetriedAndNeverTaken) {
  ExpectMended("truncate,1", 1);
  ExpectRefused("truncate", Code::kUnavailable,
                "the connection ended after 30000 of 60000 bytes");
}

TEST_F(ObjectFaultsTest, ABodyThatIsTooLongIsNeverTaken) {
  ExpectMended("long,1", 1);
  ExpectRefused("long", Code::kCorrupt, "more than the 60000 bytes");
}

TEST_F(ObjectFaultsTest, TheWholeObjectInPlaceOfARangeIsNeverTaken) {
  ExpectMended("whole,1", 1);
  ExpectRefused("whole", Code::kUnsupported, "200, the whole object");
}

TEST_F(ObjectFaultsTest, AnotherRangeIsNeverTaken) {
  ExpectMended("range,1", 1);
  ExpectRefused("range", Code::kCorrupt,
                "asked for bytes 10-60009, the server sends 11-60010");
}

TEST_F(ObjectFaultsTest, AChangedObjectIsRefusedAtOnce) {
  ExpectRefused("etag", Code::kCorrupt, "the object changed");
  ExpectRefused("412", Code::kCorrupt, "If-Match was refused");
  ExpectRefused("grown", Code::kCorrupt, "it had 100000 bytes and has 100001");
  EXPECT_EQ(counters_.num_retries, 0u);
}

TEST_F(ObjectFaultsTest, WeakETagsAreComparedHereNotThere) {
  const ReadOutcome read = Read("!weak");
  EXPECT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_THAT(SeenBy(session_).back(), HasSubstr("if-match=None"));
}

TEST_F(ObjectFaultsTest, StrongETagsAreSentBack) {
  ExpectMended("-", 0);
  EXPECT_THAT(SeenBy(session_).back(), HasSubstr("if-match=\"v1-100000\""));
}

TEST_F(ObjectFaultsTest, CompressedBytesAreRefused) {
  ExpectRefused("gzip", Code::kUnsupported, "compressed");
}

// The stalled server's silence takes real time: the window, once.
TEST_F(ObjectFaultsTest, AStalledServerIsGivenUpAndAskedAgain) {
  options_.clock = &ObjectClock::System();
  options_.low_speed_window_ms = 300;
  options_.low_speed_bytes = 60'000;
  options_.first_delay_ms = 1;
  ExpectMended("stall,1", 1);
}

TEST_F(ObjectFaultsTest, AServerThatOnlyStallsIsUnavailable) {
  options_.clock = &ObjectClock::System();
  options_.low_speed_window_ms = 100;
  options_.low_speed_bytes = 60'000;
  options_.first_delay_ms = 1;
  options_.max_attempts = 2;
  ExpectRefused("stall", Code::kUnavailable, "the server stalled");
}

}  // namespace
}  // namespace muster::io
