// Where redirects may lead (CASES: SSRF, redirect chain), and what goes along.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/object/http_url.h"
#include "io/object/object_client.h"
#include "io/object/test_server.h"

namespace muster::io {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class ObjectRedirectTest : public ::testing::Test {
 protected:
  // An object whose server redirects to `location`, in which PORT is the
  // server's.
  std::string Redirecting(const std::string& location) const {
    return TestServerUrl(fmt::format("/o/{}/!redirect={}/1000.bin", session_,
                                     PercentEncode(location, false)));
  }
  Status OpenStatus(const std::string& location) {
    ObjectClient client({}, options_);
    return client.Open(Redirecting(location)).status();
  }
  std::string Plain(const std::string& origin) const {
    return fmt::format("{}/o/{}/-/1000.bin", origin, session_);
  }

  const std::string session_ = NewSession();
  FakeClock clock_;
  ObjectClientOptions options_ = {.max_attempts = 2, .clock = &clock_};
};

TEST_F(ObjectRedirectTest, TheOperatorsOwnHostIsFollowed) {
  for (const std::string& location :
       {Plain(""), Plain("http://127.0.0.1:PORT"), Plain("//127.0.0.1:PORT")}) {
    EXPECT_TRUE(OpenStatus(location).ok()) << OpenStatus(location).message();
  }
}

TEST_F(ObjectRedirectTest, PrivateTargetsAreRefused) {
  const struct {
    const char* target;
    const char* kind;
  } cases[] = {
      {"http://localhost:PORT/o/x/-/9.bin", "a loopback address"},
      {"http://127.0.0.2:PORT/o/x/-/9.bin", "a loopback address"},
      {"http://127.0.0.1:1/", "a loopback address"},
      {"http://[::1]:PORT/", "a loopback address"},
      {"http://[::ffff:127.0.0.1]:PORT/", "a loopback address"},
      {"http://0.0.0.0:PORT/", "a reserved address"},
      {"http://169.254.169.254/latest/meta-data/", "a link-local or metadata"},
      {"http://[::ffff:a9fe:a9fe]/", "a link-local or metadata"},
      {"http://10.0.0.1/", "a private address"},
      {"http://192.168.1.1/", "a private address"},
      {"http://[fd00::1]/", "a private address"},
  };
  for (const auto& c : cases) {
    const Status status = OpenStatus(c.target);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << c.target;
    EXPECT_THAT(status.message(), HasSubstr(c.kind)) << c.target;
  }
}

TEST_F(ObjectRedirectTest, OddTargetsAreRefused) {
  for (const char* target :
       {"http://2130706433:PORT/", "http://0x7f.1:PORT/", "file:///etc/passwd",
        "ftp://h/x", "http://user@127.0.0.1:PORT/", "http:\\\\127.0.0.1/x",
        "/a b"}) {
    const Status status = OpenStatus(target);
    EXPECT_FALSE(status.ok()) << target;
    EXPECT_THAT(status.message(), HasSubstr("not followed")) << target;
  }
}

TEST_F(ObjectRedirectTest, PrivateTargetsAreFollowedWhenAllowed) {
  options_.allow_private_addresses = true;
  const Status status = OpenStatus(Plain("http://localhost:PORT"));
  EXPECT_TRUE(status.ok()) << status.message();
}

// A connection that a request of the operator's opened is there to be used.
TEST_F(ObjectRedirectTest, AnOpenConnectionIsNoWayAroundTheCheck) {
  ObjectClient client({}, options_);
  const std::string localhost =
      fmt::format("http://localhost:{}", TestServerPort());
  ASSERT_TRUE(client.Open(Plain(localhost)).ok());
  const auto object = client.Open(Redirecting(Plain("http://localhost:PORT")));
  EXPECT_EQ(object.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(object.status().message(), HasSubstr("a loopback address"));
  EXPECT_THAT(SeenBy(session_), SizeIs(2));
}

TEST_F(ObjectRedirectTest, NamesOfTheOperatorReachTheirNetwork) {
  ObjectClient client({}, options_);
  const auto object =
      client.Open(Plain(fmt::format("http://localhost:{}", TestServerPort())));
  EXPECT_TRUE(object.ok()) << object.status().message();
}

TEST_F(ObjectRedirectTest, ChainsAreBounded) {
  ObjectClient client({}, options_);
  std::string location = Plain("");
  for (int hop = 0; hop < 6; ++hop) {
    location = fmt::format("/o/{}/!redirect={}/1000.bin", session_,
                           PercentEncode(location, false));
  }
  const auto object = client.Open(TestServerUrl(location));
  EXPECT_EQ(object.status().code(), Code::kIoError);
  EXPECT_THAT(object.status().message(), HasSubstr("more than 5 redirects"));
}

TEST_F(ObjectRedirectTest, LaterReadsGoStraightToWhereTheFirstWasLed) {
  options_.allow_private_addresses = true;
  ObjectClient client({}, options_);
  const auto object = client.Open(Redirecting(Plain("http://localhost:PORT")));
  ASSERT_TRUE(object.ok()) << object.status().message();
  EXPECT_TRUE(ReadRange(client, *object, 5, 100).status.ok());
  EXPECT_EQ(client.counters().num_exchanges, 3u);
}

TEST_F(ObjectRedirectTest, ATargetThatExpiredIsLookedUpAnew) {
  options_.allow_private_addresses = true;
  ObjectClient client({}, options_);
  const auto object = client.Open(Redirecting(fmt::format(
      "http://localhost:PORT/o/{}/status=403,1/1000.bin", session_)));
  ASSERT_TRUE(object.ok()) << object.status().message();
  const ReadOutcome read = ReadRange(client, *object, 5, 100);
  EXPECT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_EQ(read.bytes, ServedBytes(5, 100));
  // Look, redirected; the stale target; the redirect again, the target.
  EXPECT_EQ(client.counters().num_exchanges, 5u);
  EXPECT_EQ(client.counters().num_retries, 0u);
}

}  // namespace
}  // namespace muster::io
