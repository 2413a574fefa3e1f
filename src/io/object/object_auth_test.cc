// Signatures and tokens as the test server checks them, and who gets to see
// them.
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
using ::testing::SizeIs;

class ObjectAuthTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& faults = "-") const {
    return fmt::format("{}/{}/1000.bin", session_, faults);
  }
  // Reads bytes [5, 105).
  Status Read(const std::string& url, const ObjectSettings& settings) {
    ObjectClient client(settings, options_);
    const auto object = client.Open(url);
    if (!object.ok()) return object.status();
    info_ = client.Info(*object);
    const ReadOutcome read = ReadRange(client, *object, 5, 100);
    EXPECT_TRUE(!read.status.ok() || read.bytes == ServedBytes(5, 100));
    return read.status;
  }
  void ExpectDenied(const std::string& url, const ObjectSettings& settings,
                    const std::string& reason) {
    const Status status = Read(url, settings);
    EXPECT_EQ(status.code(), Code::kIoError);
    EXPECT_THAT(status.message(), HasSubstr(reason));
    for (const std::string& secret :
         {settings.aws_secret_access_key, settings.azure_key, settings.hf_token,
          std::string("signature")}) {
      if (secret.empty()) continue;
      EXPECT_THAT(status.message(), Not(HasSubstr(secret)));
    }
  }

  const std::string session_ = NewSession();
  FakeClock clock_;
  ObjectClientOptions options_ = {.clock = &clock_};
  ObjectInfo info_;
};

TEST_F(ObjectAuthTest, S3RequestsAreSigned) {
  const Status status = Read("s3://bucket/" + Path(), TestServerSettings());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(SeenBy(session_).back(), HasSubstr("token=session-token"));
}

TEST_F(ObjectAuthTest, S3KeysWithOddCharactersAreSigned) {
  const std::string key =
      fmt::format("s3://bucket/{}+ %&=?ä~/-/1000.bin", session_);
  const Status status = Read(key, TestServerSettings());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(ObjectAuthTest, S3RequestsWithoutKeysAreAnonymous) {
  ObjectSettings settings = {.aws_endpoint = TestServerUrl("/s3")};
  EXPECT_TRUE(Read("s3://public/" + Path(), settings).ok());
  ExpectDenied("s3://bucket/" + Path(), settings,
               "403 AccessDenied; set AWS_ACCESS_KEY_ID");
}

TEST_F(ObjectAuthTest, AWrongS3KeyIsDenied) {
  ObjectSettings settings = TestServerSettings();
  settings.aws_secret_access_key = "wrong-key";
  ExpectDenied("s3://bucket/" + Path(), settings, "403 SignatureDoesNotMatch");
}

TEST_F(ObjectAuthTest, AzureRequestsAreSigned) {
  const Status status =
      Read("az://account/container/" + Path(), TestServerSettings());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(ObjectAuthTest, AWrongAzureKeyIsDenied) {
  ObjectSettings settings = TestServerSettings();
  settings.azure_key = "d3Jvbmc=";
  ExpectDenied("az://account/container/" + Path(), settings,
               "403 AuthenticationFailed; check AZURE_STORAGE_KEY");
}

TEST_F(ObjectAuthTest, AzureTakesASasTokenRatherThanTheKey) {
  ObjectSettings settings = TestServerSettings();
  settings.azure_sas_token = "?sv=2021-08-06&sig=sas%2Fsignature%3D";
  const Status status = Read("az://account/container/" + Path(), settings);
  EXPECT_TRUE(status.ok()) << status.message();
  settings.azure_sas_token = "sv=2021-08-06&sig=wrong-signature";
  ExpectDenied("az://account/container/" + Path(), settings, "403");
}

TEST_F(ObjectAuthTest, HuggingFaceTellsTheChecksum) {
  options_.allow_private_addresses = true;
  const Status status = Read("hf://org/repo/" + Path(), TestServerSettings());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(info_.sha256.size(), 64u);
}

TEST_F(ObjectAuthTest, TheTokenStaysWithItsHost) {
  options_.allow_private_addresses = true;
  const Status status =
      Read("hf://private/repo/" + Path(), TestServerSettings());
  ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<std::string> seen = SeenBy(session_);
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_THAT(seen[0], AllOf(HasSubstr("/hf/private"),
                             HasSubstr("authorization=Bearer hf_test")));
  for (size_t i : {1, 2}) {
    EXPECT_THAT(seen[i], AllOf(HasSubstr("host=localhost"),
                               HasSubstr("authorization=None")));
  }
}

TEST_F(ObjectAuthTest, AGatedRepositorySaysWhatToSet) {
  ObjectSettings settings = TestServerSettings();
  settings.hf_token.clear();
  ExpectDenied("hf://private/repo/" + Path(), settings,
               "403 GatedRepo; set HF_TOKEN");
}

// A server of checksums other than the hub's own is not believed.
TEST_F(ObjectAuthTest, PlainUrlsHaveNoTrustedChecksum) {
  options_.allow_private_addresses = true;
  const Status status =
      Read(TestServerUrl("/hf/org/repo/resolve/main/" + Path()), {});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(info_.sha256, "");
}

TEST_F(ObjectAuthTest, SignaturesDoNotFollowRedirects) {
  options_.allow_private_addresses = true;
  const std::string target = fmt::format(
      "http:%2F%2Flocalhost:PORT%2Fo%2F{}%2F-%2F1000.bin", session_);
  const Status status =
      Read("s3://bucket/" + Path("!redirect=" + target), TestServerSettings());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(SeenBy(session_).back(),
              AllOf(HasSubstr("host=localhost"),
                    HasSubstr("authorization=None"), HasSubstr("token=None")));
}

}  // namespace
}  // namespace muster::io
