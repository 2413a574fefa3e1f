#include "io/object/range_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace muster::io {
namespace {

using ::testing::HasSubstr;

ResponseHead Head(std::initializer_list<const char*> lines) {
  ResponseHead head;
  for (const char* line : lines) AddHeaderLine(line, &head);
  return head;
}

const WantedRange kWanted = {.offset = 100,
                             .size_bytes = 50,
                             .object_bytes = 1000,
                             .validators = {"\"v1\"", ""}};

TEST(ResponseHeadTest, ContentRangesAreReadStrictly) {
  const auto range = ParseContentRange("bytes 0-99/1234");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(*range->first, 0u);
  EXPECT_EQ(*range->last, 99u);
  EXPECT_EQ(*range->total, 1234u);
  EXPECT_TRUE(ParseContentRange("bytes 0-99/*").has_value());
  EXPECT_TRUE(ParseContentRange("bytes */0").has_value());
  for (const char* bad :
       {"", "bytes", "bytes 0-99", "bytes 99-0/1000", "bytes 0-99/99",
        "bytes -1-5/9", "bytes 0-5/-9", "bytes */*", "items 0-1/2",
        "bytes 0-18446744073709551616/*", "bytes 0x0-0x5/9", "bytes 0 - 5/9"}) {
    EXPECT_FALSE(ParseContentRange(bad).has_value()) << bad;
  }
}

TEST(ResponseHeadTest, AnInterimResponseIsForgotten) {
  const ResponseHead head =
      Head({"HTTP/1.1 100 Continue\r\n", "ETag: \"x\"\r\n", "\r\n",
            "HTTP/1.1 206 OK\r\n", "\r\n"});
  EXPECT_EQ(head.status, 206);
  EXPECT_EQ(head.etag, "");
}

TEST(ResponseHeadTest, LengthsThatContradictAreMalformed) {
  EXPECT_TRUE(
      Head({"HTTP/1.1 200 OK", "Content-Length: 1", "Content-Length: 2"})
          .is_malformed);
  EXPECT_TRUE(Head({"HTTP/1.1 200 OK", "Content-Length: +5"}).is_malformed);
  EXPECT_FALSE(Head({"HTTP/1.1 200 OK", "content-length: 5 "}).is_malformed);
}

TEST(RangeAnswerTest, TheRangeThatWasAskedForIsTaken) {
  EXPECT_EQ(Judge(kWanted, Head({"HTTP/1.1 206 x", "ETag: \"v1\"",
                                 "Content-Range: bytes 100-149/1000",
                                 "Content-Length: 50"}))
                .verdict,
            Verdict::kTake);
}

TEST(RangeAnswerTest, EverythingElseIsNot) {
  const struct {
    ResponseHead head;
    Verdict verdict;
    Code code;
    const char* reason;
  } cases[] = {
      {Head({"HTTP/1.1 206 x", "ETag: \"v1\""}), Verdict::kRetry,
       Code::kCorrupt, "without a Content-Range"},
      {Head({"HTTP/1.1 206 x", "ETag: \"v1\"",
             "Content-Range: bytes 101-150/1000"}),
       Verdict::kRetry, Code::kCorrupt, "sends 101-150"},
      {Head({"HTTP/1.1 206 x", "ETag: \"v1\"",
             "Content-Range: bytes 100-148/1000"}),
       Verdict::kRetry, Code::kCorrupt, "sends 100-148"},
      {Head({"HTTP/1.1 206 x", "ETag: \"v1\"", "Content-Length: 49",
             "Content-Range: bytes 100-149/1000"}),
       Verdict::kRetry, Code::kCorrupt, "announces 49"},
      {Head({"HTTP/1.1 206 x", "ETag: \"v1\"",
             "Content-Range: bytes 100-149/1001"}),
       Verdict::kFail, Code::kCorrupt, "changed"},
      {Head({"HTTP/1.1 206 x", "ETag: \"v2\"",
             "Content-Range: bytes 100-149/1000"}),
       Verdict::kFail, Code::kCorrupt, "its ETag was \"v1\" and is \"v2\""},
      {Head({"HTTP/1.1 206 x", "Content-Range: bytes 100-149/1000"}),
       Verdict::kFail, Code::kCorrupt, "is absent"},
      {Head({"HTTP/1.1 206 x", "ETag: \"v1\"", "Content-Encoding: gzip",
             "Content-Range: bytes 100-149/1000"}),
       Verdict::kFail, Code::kUnsupported, "compressed"},
      {Head({"HTTP/1.1 200 x", "ETag: \"v1\"", "Content-Length: 1000"}),
       Verdict::kRetry, Code::kUnsupported, "200"},
      {Head({"HTTP/1.1 412 x"}), Verdict::kFail, Code::kCorrupt, "changed"},
      {Head({"HTTP/1.1 416 x", "Content-Range: bytes */10"}), Verdict::kFail,
       Code::kCorrupt, "changed"},
      {Head({"HTTP/1.1 404 x"}), Verdict::kFail, Code::kNotFound, "404"},
      {Head({"HTTP/1.1 403 x", "x-ms-error-code: AuthFailed"}), Verdict::kFail,
       Code::kIoError, "403 AuthFailed"},
      {Head({"HTTP/1.1 503 x"}), Verdict::kRetry, Code::kUnavailable, "503"},
      {Head({"HTTP/1.1 429 x"}), Verdict::kRetry, Code::kUnavailable, "429"},
      {Head({"HTTP/1.1 302 x"}), Verdict::kFail, Code::kIoError, "302"},
      {Head({"HTTP/1.1 xyz"}), Verdict::kFail, Code::kIoError, "0"},
  };
  for (const auto& c : cases) {
    const Judgement judgement = Judge(kWanted, c.head);
    EXPECT_EQ(judgement.verdict, c.verdict) << c.reason;
    EXPECT_EQ(judgement.status.code(), c.code) << c.reason;
    EXPECT_THAT(judgement.status.message(), HasSubstr(c.reason));
  }
}

TEST(RangeAnswerTest, AWholeObjectIsTakenWhenItIsTheRange) {
  WantedRange all = kWanted;
  all.offset = 0;
  all.size_bytes = 1000;
  const auto whole = Head({"HTTP/1.1 200 x", "ETag: \"v1\""});
  EXPECT_EQ(Judge(all, whole).verdict, Verdict::kTake);
  EXPECT_EQ(Judge(all, Head({"HTTP/1.1 200 x", "ETag: \"v1\"",
                             "Content-Length: 999"}))
                .verdict,
            Verdict::kFail);
}

TEST(RangeAnswerTest, AFirstLookLearnsTheSize) {
  const WantedRange look = {.size_bytes = 1};
  const auto partial =
      Head({"HTTP/1.1 206 x", "ETag: \"e\"", "Content-Range: bytes 0-0/77"});
  ASSERT_EQ(Judge(look, partial).verdict, Verdict::kTake);
  EXPECT_EQ(ReadFirstLook(partial)->size_bytes, 77u);
  EXPECT_TRUE(ReadFirstLook(partial)->accepts_ranges);

  const auto whole = Head({"HTTP/1.1 200 x", "Content-Length: 77"});
  ASSERT_EQ(Judge(look, whole).verdict, Verdict::kTake);
  EXPECT_EQ(ReadFirstLook(whole)->size_bytes, 77u);
  EXPECT_FALSE(ReadFirstLook(whole)->accepts_ranges);

  const auto empty = Head({"HTTP/1.1 416 x", "Content-Range: bytes */0"});
  ASSERT_EQ(Judge(look, empty).verdict, Verdict::kTake);
  EXPECT_EQ(ReadFirstLook(empty)->size_bytes, 0u);

  EXPECT_EQ(ReadFirstLook(Head({"HTTP/1.1 200 x"})).status().code(),
            Code::kUnsupported);
}

TEST(RangeAnswerTest, OnlyStrongETagsAreSentBack) {
  EXPECT_EQ(IfMatch({"\"a\"", ""}), "\"a\"");
  EXPECT_EQ(IfMatch({"W/\"a\"", ""}), std::nullopt);
  EXPECT_EQ(IfMatch({"", ""}), std::nullopt);
}

}  // namespace
}  // namespace muster::io
