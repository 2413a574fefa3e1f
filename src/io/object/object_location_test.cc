#include "io/object/object_location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace muster::io {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ObjectSettings SettingsOf(std::map<std::string, std::string> variables) {
  return ReadObjectSettings([&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

Result<ObjectLocation> LocateText(const char* url,
                                  const ObjectSettings& settings) {
  return Locate(ParseObjectUrl(url).value(), settings);
}

std::string UrlOf(const char* url,
                  std::map<std::string, std::string> variables) {
  const auto at = LocateText(url, SettingsOf(std::move(variables)));
  return at.ok() ? at->url.Text() : at.status().message();
}

TEST(ObjectLocationTest, S3IsVirtualHostedUnlessTheEndpointIsCustom) {
  EXPECT_EQ(UrlOf("s3://bucket/a b", {}),
            "https://bucket.s3.us-east-1.amazonaws.com/a%20b");
  EXPECT_EQ(UrlOf("s3://bucket/k", {{"AWS_DEFAULT_REGION", "eu-central-1"}}),
            "https://bucket.s3.eu-central-1.amazonaws.com/k");
  EXPECT_EQ(UrlOf("s3://dotted.bucket/k", {}),
            "https://s3.us-east-1.amazonaws.com/dotted.bucket/k");
  EXPECT_EQ(UrlOf("s3://bucket/k", {{"AWS_ENDPOINT_URL", "http://h:9000/x/"}}),
            "http://h:9000/x/bucket/k");
}

TEST(ObjectLocationTest, TheMoreSpecialVariableCounts) {
  EXPECT_EQ(UrlOf("s3://bucket/k", {{"AWS_ENDPOINT_URL", "http://general"},
                                    {"AWS_ENDPOINT_URL_S3", "http://s3only"}}),
            "http://s3only/bucket/k");
  EXPECT_EQ(
      SettingsOf({{"AWS_REGION", "a"}, {"AWS_DEFAULT_REGION", "b"}}).aws_region,
      "a");
}

TEST(ObjectLocationTest, HalfAKeyIsAnError) {
  const auto at =
      LocateText("s3://bucket/k", SettingsOf({{"AWS_ACCESS_KEY_ID", "id"}}));
  EXPECT_EQ(at.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(at.status().message(), HasSubstr("AWS_SECRET_ACCESS_KEY is not"));
}

TEST(ObjectLocationTest, WithoutKeysRequestsAreAnonymous) {
  for (const char* url : {"s3://bucket/k", "az://account/container/b",
                          "hf://o/r/f", "https://h/x"}) {
    const auto at = LocateText(url, {});
    ASSERT_TRUE(at.ok()) << at.status().message();
    EXPECT_TRUE(std::holds_alternative<std::monostate>(at->credentials));
  }
}

TEST(ObjectLocationTest, AzureTakesItsEndpointAndSasToken) {
  EXPECT_EQ(UrlOf("az://account/container/a b", {}),
            "https://account.blob.core.windows.net/container/a%20b");
  EXPECT_EQ(
      UrlOf("az://account/container/b",
            {{"AZURE_STORAGE_ACCOUNT", "account"},
             {"AZURE_STORAGE_BLOB_ENDPOINT", "http://127.0.0.1:10000/account"},
             {"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=a%2Fb%3D"}}),
      "http://127.0.0.1:10000/account/container/b?sv=1&sig=a%2Fb%3D");
}

TEST(ObjectLocationTest, AzureKeysGoToTheirOwnAccountOnly) {
  const ObjectSettings settings =
      SettingsOf({{"AZURE_STORAGE_ACCOUNT", "mine"},
                  {"AZURE_STORAGE_KEY", "a2V5"},
                  {"AZURE_STORAGE_BLOB_ENDPOINT", "http://127.0.0.1:1/mine"}});
  const auto mine = LocateText("az://mine/container/b", settings);
  EXPECT_EQ(std::get<AzureKey>(mine->credentials).key, "key");
  const auto other = LocateText("az://other/container/b", settings);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(other->credentials));
  EXPECT_EQ(other->url.host, "other.blob.core.windows.net");
}

TEST(ObjectLocationTest, HuggingFaceFilesAreResolved) {
  EXPECT_EQ(UrlOf("hf://o/r@refs%2Fpr%2F1/d/f.gguf", {}),
            "https://huggingface.co/o/r/resolve/refs%2Fpr%2F1/d/f.gguf");
  EXPECT_EQ(UrlOf("hf://o/r/f", {{"HF_ENDPOINT", "http://mirror/x"}}),
            "http://mirror/x/o/r/resolve/main/f");
  EXPECT_THAT(UrlOf("hf://o/r", {}), HasSubstr("add the file"));
}

TEST(ObjectLocationTest, BadSettingsAreNamedButNotShown) {
  const struct {
    const char* url;
    std::map<std::string, std::string> variables;
    const char* reason;
  } cases[] = {
      {"hf://o/r/f", {{"HF_TOKEN", "secret\nx"}}, "HF_TOKEN"},
      {"s3://bucket/k", {{"AWS_REGION", "secret/x"}}, "AWS_REGION"},
      {"s3://bucket/k",
       {{"AWS_ENDPOINT_URL", "http://u:secret@h"}},
       "AWS_ENDPOINT_URL"},
      {"s3://bucket/k", {{"AWS_ENDPOINT_URL", "http://h?secret"}}, "no query"},
      {"az://mine/container/b",
       {{"AZURE_STORAGE_KEY", "secret"}},
       "AZURE_STORAGE_ACCOUNT"},
      {"az://mine/container/b",
       {{"AZURE_STORAGE_ACCOUNT", "mine"}, {"AZURE_STORAGE_KEY", "secret!"}},
       "not base64"},
      {"az://mine/container/b",
       {{"AZURE_STORAGE_ACCOUNT", "mine"},
        {"AZURE_STORAGE_SAS_TOKEN", "secret#"}},
       "AZURE_STORAGE_SAS_TOKEN"},
  };
  for (const auto& c : cases) {
    const auto at = LocateText(c.url, SettingsOf(c.variables));
    EXPECT_EQ(at.status().code(), Code::kInvalidArgument) << c.reason;
    EXPECT_THAT(at.status().message(), HasSubstr(c.reason));
    EXPECT_THAT(at.status().message(), Not(HasSubstr("secret")));
  }
}

TEST(ObjectLocationTest, SpaceAroundAValueIsLeftOut) {
  EXPECT_EQ(SettingsOf({{"HF_TOKEN", " token\n"}}).hf_token, "token");
}

TEST(ObjectLocationTest, AddressesThatTheOperatorWroteReachAnything) {
  EXPECT_EQ(ReachOf(ParseHttpUrl("http://169.254.169.254/").value()),
            Reach::kAny);
  EXPECT_EQ(ReachOf(ParseHttpUrl("http://minio.local/").value()),
            Reach::kNetwork);
}

}  // namespace
}  // namespace muster::io
