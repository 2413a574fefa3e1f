#include "io/object/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::io {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr const char* kEmptySha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string AuthorizationOf(const HttpHeaders& headers) {
  return headers.back().name == "authorization" ? headers.back().value : "";
}

// The vectors that AWS publishes: its signature test suite ("service") and the
// examples of the S3 manual.
const AwsKeys kSuiteKeys = {"AKIDEXAMPLE",
                            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
constexpr int64_t kSuiteTime = 1440938160;  // 20150830T123600Z
const AwsKeys kManualKeys = {"AKIAIOSFODNN7EXAMPLE",
                             "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr int64_t kManualTime = 1369353600;  // 20130524T000000Z

SigV4Request SuiteRequest(std::string_view target) {
  return {
      .url = ParseHttpUrl("https://example.amazonaws.com" + std::string(target))
                 .value(),
      .payload_sha256 = kEmptySha256,
      .region = "us-east-1",
      .service = "service",
      .unix_seconds = kSuiteTime};
}

SigV4Request ManualRequest(std::string_view target, HttpHeaders headers) {
  headers.push_back({"x-amz-content-sha256", kEmptySha256});
  return {.url = ParseHttpUrl("https://examplebucket.s3.amazonaws.com" +
                              std::string(target))
                     .value(),
          .headers = std::move(headers),
          .payload_sha256 = kEmptySha256,
          .region = "us-east-1",
          .unix_seconds = kManualTime};
}

TEST(SigV4Test, SuiteGetVanilla) {
  EXPECT_EQ(AuthorizationOf(SignV4(kSuiteKeys, SuiteRequest("/"))),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/"
            "service/aws4_request, SignedHeaders=host;x-amz-date, Signature="
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(SigV4Test, SuiteQueryIsSortedByName) {
  EXPECT_THAT(
      AuthorizationOf(
          SignV4(kSuiteKeys, SuiteRequest("/?Param2=value2&Param1=value1"))),
      EndsWith(
          "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
}

TEST(SigV4Test, SuiteSessionTokenIsSigned) {
  AwsKeys keys = kSuiteKeys;
  keys.session_token =
      "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKW"
      "HGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4"
      "IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE"
      "8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yj"
      "c8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
  SigV4Request request = SuiteRequest("/");
  request.method = "POST";
  const std::string authorization = AuthorizationOf(SignV4(keys, request));
  EXPECT_THAT(authorization,
              HasSubstr("SignedHeaders=host;x-amz-date;x-amz-security-token"));
  EXPECT_THAT(
      authorization,
      EndsWith(
          "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"));
}

TEST(SigV4Test, ManualGetObjectWithARange) {
  EXPECT_EQ(
      AuthorizationOf(SignV4(
          kManualKeys, ManualRequest("/test.txt", {{"range", "bytes=0-9"}}))),
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
      "aws4_request, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
      "Signature="
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4Test, ManualQueriesWithAndWithoutValues) {
  EXPECT_THAT(
      AuthorizationOf(SignV4(kManualKeys, ManualRequest("/?lifecycle", {}))),
      EndsWith(
          "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  EXPECT_THAT(
      AuthorizationOf(
          SignV4(kManualKeys, ManualRequest("/?max-keys=2&prefix=J", {}))),
      EndsWith(
          "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(SigV4Test, HeadersAreTrimmedAndTheirOrderDoesNotMatter) {
  const auto one = SignV4(
      kManualKeys, ManualRequest("/x", {{"range", "bytes=0-9"}, {"A", "1"}}));
  const auto other = SignV4(
      kManualKeys, ManualRequest("/x", {{"a", " 1 "}, {"Range", "bytes=0-9"}}));
  EXPECT_EQ(AuthorizationOf(one), AuthorizationOf(other));
}

}  // namespace
}  // namespace muster::io
