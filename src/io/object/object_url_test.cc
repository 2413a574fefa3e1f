#include "io/object/object_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::io {
namespace {

using ::testing::HasSubstr;

TEST(ObjectUrlTest, S3NamesABucketAndAKey) {
  const auto url = ParseObjectUrl("s3://my.bucket-1/models/a b?%20@.gguf");
  ASSERT_TRUE(url.ok()) << url.status().message();
  const auto& s3 = std::get<S3Url>(*url);
  EXPECT_EQ(s3.bucket, "my.bucket-1");
  EXPECT_EQ(s3.key, "models/a b?%20@.gguf");
  EXPECT_EQ(NameOf(*url), "s3://my.bucket-1/models/a b?%20@.gguf");
  EXPECT_EQ(FileNameOf(*url), "a b?%20@.gguf");
}

TEST(ObjectUrlTest, AzureNamesAnAccountAContainerAndABlob) {
  const auto url = ParseObjectUrl("az://acc0unt/$root/a/b.gguf");
  ASSERT_TRUE(url.ok()) << url.status().message();
  const auto& azure = std::get<AzureUrl>(*url);
  EXPECT_EQ(azure.account, "acc0unt");
  EXPECT_EQ(azure.container, "$root");
  EXPECT_EQ(azure.blob, "a/b.gguf");
}

TEST(ObjectUrlTest, HuggingFaceNamesARepositoryARevisionAndAFile) {
  const auto whole = ParseObjectUrl("hf://Qwen/Qwen3-30B-A3B");
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(std::get<HuggingFaceUrl>(*whole).revision, "main");
  EXPECT_EQ(std::get<HuggingFaceUrl>(*whole).file, "");

  const auto file = ParseObjectUrl("hf://o/r@refs%2Fpr%2f1/d/m.safetensors");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(std::get<HuggingFaceUrl>(*file).repository, "r");
  EXPECT_EQ(std::get<HuggingFaceUrl>(*file).revision, "refs/pr/1");
  EXPECT_EQ(std::get<HuggingFaceUrl>(*file).file, "d/m.safetensors");
  EXPECT_EQ(NameOf(*file), "hf://o/r@refs%2Fpr%2F1/d/m.safetensors");
}

TEST(ObjectUrlTest, OddNamesAreRefusedWithWhatToWrite) {
  const struct {
    const char* text;
    const char* reason;
  } cases[] = {
      {"s3://ab/key", "s3://BUCKET/KEY"},
      {"s3://Bucket/key", "lower-case"},
      {"s3://a..b/key", "s3://BUCKET/KEY"},
      {"s3://bucket", "no key"},
      {"s3://bucket/", "no key"},
      {"s3://user@bucket/key", "s3://BUCKET/KEY"},
      {"s3://bucket/a/../b", "'..'"},
      {"s3://bucket/a\\b", "backslash"},
      {"s3://bucket/a\nb", "control character"},
      {"az://account/container", "no blob"},
      {"az://account/co/blob", "az://ACCOUNT/CONTAINER/BLOB"},
      {"az://acc.blob.core/container/blob", "account has 3 to 24"},
      {"hf://org", "hf://ORG/REPO"},
      {"hf:///repo/file", "hf://ORG/REPO"},
      {"hf://../repo/file", "hf://ORG/REPO"},
      {"hf://org/repo@/file", "@REVISION"},
      {"hf://org/repo@a%20b/file", "@REVISION"},
      {"hf://org/repo@..%2Fx/file", "@REVISION"},
      {"hf://org/repo/../file", "'..'"},
      {"hf://o?x/repo", "hf://ORG/REPO"},
  };
  for (const auto& c : cases) {
    const auto url = ParseObjectUrl(c.text);
    EXPECT_EQ(url.status().code(), Code::kInvalidArgument) << c.text;
    EXPECT_THAT(url.status().message(), HasSubstr(c.reason)) << c.text;
  }
}

TEST(ObjectUrlTest, OtherSchemesAreRefusedWithTheOnesThereAre) {
  for (const char* text : {"gs://b/k", "file:///x", "model.gguf", "://", ""}) {
    const auto url = ParseObjectUrl(text);
    EXPECT_EQ(url.status().code(), Code::kUnsupported) << text;
    EXPECT_THAT(url.status().message(), HasSubstr("hf://"));
  }
}

TEST(ObjectUrlTest, PathsDoNotLookLikeUrls) {
  EXPECT_TRUE(LooksLikeUrl("s3://b/k"));
  EXPECT_FALSE(LooksLikeUrl("/models/a.gguf"));
}

// CASES, path traversal: a name for a local file is one part of a path.
TEST(ObjectUrlTest, FileNamesStayInTheirFolder) {
  const auto name = [](const char* text) {
    return FileNameOf(ParseObjectUrl(text).value());
  };
  EXPECT_EQ(name("https://h/a/m%20x.gguf?sig=1"), "m x.gguf");
  EXPECT_EQ(name("https://h/a/..%2F..%2Fetc"), "");
  EXPECT_EQ(name("https://h/a/%2e%2e"), "");
  EXPECT_EQ(name("https://h/a/x%0Ay"), "");
  EXPECT_EQ(name("https://h/"), "");
}

}  // namespace
}  // namespace muster::io
