#include "experts/routing_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace muster::experts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<RoutingTrace> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadTrace(in, "t.jsonl");
}

std::string MessageFor(const std::string& text) {
  const auto trace = Read(text);
  EXPECT_FALSE(trace.ok()) << text;
  return trace.status().message();
}

TEST(RoutingTraceTest, WhatIsWrittenIsRead) {
  std::string text;
  AppendTraceHeader({.model = "a \"model\"",
                     .num_experts = {0, 4, 300},
                     .expert_bytes = {0, 1000, uint64_t{3} << 30}},
                    &text);
  AppendTraceToken({.token = 0, .ids = {3, 1, 299}, .ends = {0, 2, 3}}, &text);
  AppendTraceToken({.token = 1, .ids = {0, 2, 7}, .ends = {0, 2, 3}}, &text);

  const auto trace = Read(text);

  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->header.model, "a \"model\"");
  EXPECT_THAT(trace->header.expert_bytes,
              ElementsAre(0, 1000, uint64_t{3} << 30));
  EXPECT_THAT(trace->num_experts, ElementsAre(0, 4, 300));
  EXPECT_EQ(trace->num_tokens, 2u);
  EXPECT_THAT(trace->Experts(0, 0), IsEmpty());
  EXPECT_THAT(trace->Experts(0, 1), ElementsAre(3, 1));
  EXPECT_THAT(trace->Experts(1, 2), ElementsAre(7));
}

TEST(RoutingTraceTest, WithoutAHeaderTheLargestIdSaysHowManyExperts) {
  const auto trace = Read(
      "{\"token\":0,\"experts\":[[],[1,0],[2,1]]}\n"
      "\n"
      "{\"experts\": [[], [0, 5], [2, 0]], \"note\": {\"a\": [1]}, "
      "\"token\": 1}\r\n");

  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_THAT(trace->num_experts, ElementsAre(0, 6, 6));
  EXPECT_THAT(trace->Experts(1, 1), ElementsAre(0, 5));
}

TEST(RoutingTraceTest, AHeaderMaySayLess) {
  const auto trace = Read(
      "{\"model\":\"m\",\"num_experts\":[],\"expert_bytes\":[7]}\n"
      "{\"token\":0,\"experts\":[[4]]}");

  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_THAT(trace->header.expert_bytes, ElementsAre(7));
  EXPECT_THAT(trace->num_experts, ElementsAre(5));
}

TEST(RoutingTraceTest, ErrorsNameTheLineWhatIsThereAndWhatWasExpected) {
  const std::string good = "{\"token\":0,\"experts\":[[1],[0]]}\n";
  const std::string header = "{\"num_experts\":[4,4]}\n";
  const struct {
    std::string text;
    std::string message;
  } cases[] = {
      {good + "rubbish",
       "t.jsonl line 2: expected {\"token\": n, \"experts\": [[id, ...] per "
       "layer]}, found rubbish"},
      {"[1]", "line 1: expected {"},
      {"{\"token\":0,\"experts\":[[1],[0]", "line 1: expected {"},
      {"{\"token\":0,\"experts\":[[1]]} x", "line 1: expected {"},
      {"{\"token\":0,\"experts\":[[1]]} {}", "line 1: expected {"},
      {"{\"token\":0,\"experts\":[[1.5]]}", "line 1: expected {"},
      {"{\"token\":0,\"experts\":[[-1]]}", "line 1: expected {"},
      {"{\"token\":0,\"experts\":[1]}", "line 1: expected {"},
      {"{\"token\":\"a\",\"experts\":[[1]]}", "line 1: expected {"},
      {"{\"token\":0}", "expected 'token' and 'experts'"},
      {"{\"experts\":[[1]]}", "expected 'token' and 'experts'"},
      {"{\"token\":0,\"experts\":[[1]],\"experts\":[[1]]}",
       "expected 'experts' once"},
      {good + "{\"token\":1,\"experts\":[[1]]}",
       "line 2: expected 2 layers as before, not 1"},
      {"{\"token\":0,\"experts\":[]}", "expected 1 to 4096 layers, not 0"},
      {"{\"token\":0,\"experts\":[[1],[2,3,2]]}",
       "expected each id once in layer 1, not 2 twice"},
      {"{\"token\":0,\"experts\":[[65536]]}",
       "expected ids below 65536 in layer 0, not 65536"},
      {header + "{\"token\":0,\"experts\":[[3],[4]]}",
       "line 2: expected ids below 4 in layer 1, not 4"},
      {header + "{\"token\":0,\"experts\":[[3]]}",
       "line 2: expected 2 layers as before, not 1"},
      {good + header, "line 2: expected a header on the first line only"},
      {"{\"num_experts\":[4],\"expert_bytes\":[1,2]}",
       "expected as many 'expert_bytes' as 'num_experts', not 2 and 1"},
      {"{\"num_experts\":[100000]}", "expected numbers up to 65536"},
      {"", "t.jsonl: no token"},
      {header, "t.jsonl: no token"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(MessageFor(text), HasSubstr(message)) << text;
  }
}

TEST(RoutingTraceTest, UnprintableBytesAreNotEchoed) {
  EXPECT_THAT(MessageFor("\x1b[31m\xff"), HasSubstr("found ?[31m?"));
}

TEST(RoutingTraceTest, ALineThatIsTooLongIsRefused) {
  std::string text = "{\"token\":0,\"experts\":[[1]]";
  text.resize(kMaxTraceLineBytes, ' ');
  EXPECT_THAT(MessageFor(text + "}\n"),
              HasSubstr("t.jsonl line 1: longer than 1048576 bytes"));
}

TEST(RoutingTraceTest, ADeepLineIsRefused) {
  std::string text = "{\"x\":";
  text.resize(100'000, '[');
  EXPECT_THAT(MessageFor(text), HasSubstr("line 1: expected {"));
}

TEST(RoutingTraceTest, ManyLayersOfLargeIdsAreRefused) {
  std::string text = "{\"token\":0,\"experts\":[[65535]";
  for (int layer = 1; layer < 1000; ++layer) text += ",[0]";
  EXPECT_THAT(MessageFor(text + "]}"),
              HasSubstr("expected at most 4194304 experts in all"));
}

}  // namespace
}  // namespace muster::experts
