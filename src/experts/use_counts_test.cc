#include "experts/use_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace muster::experts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Checksum kModel = {.high = 1, .low = 2};

// Three experts, a dense layer, two experts.
ExpertTable SmallTable() {
  return ExpertTable(
      {{.num_experts = 3, .top_k = 2}, {}, {.num_experts = 2, .top_k = 1}});
}

std::string Good() {
  return WriteUses(kModel, SmallTable(), std::vector<uint64_t>{5, 0, 7, 1, 12});
}

// With the checksum that belongs to it.
std::string Resealed(std::string text) {
  text.resize(text.rfind("checksum "));
  const std::string checksum = ToHex(ChecksumOf(text));
  return text + "checksum " + checksum + "\n";
}

std::string Replaced(std::string text, std::string_view from,
                     std::string_view to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(UseCountsTest, WhatIsWrittenIsRead) {
  EXPECT_THAT(*ParseUses(Good(), kModel, SmallTable()),
              ElementsAre(5, 0, 7, 1, 12));
}

TEST(UseCountsTest, AnyChangedOrMissingByteIsNoticed) {
  const std::string good = Good();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_EQ(ParseUses(bad, kModel, SmallTable()).status().code(),
              Code::kCorrupt)
        << i;
    EXPECT_FALSE(ParseUses(good.substr(0, i), kModel, SmallTable()).ok()) << i;
  }
  EXPECT_FALSE(ParseUses(good + "\n", kModel, SmallTable()).ok());
}

TEST(UseCountsTest, AnotherVersionModelOrShapeIsRefusedThoughItsChecksumFits) {
  const struct {
    const char* from;
    const char* to;
    const char* reason;
  } kCases[] = {{"uses 1", "uses 2", "expected 'muster expert uses 1'"},
                {"model 0", "model 1", "another model"},
                {"5 0 7", "5 0", "3 counts for layer 0"},
                {"5 0 7", "5 0 7 1", "3 counts for layer 0"},
                {"5 0 7", "5 0  7", "3 counts for layer 0"},
                {"5 0 7", "5 -1 7", "3 counts for layer 0"},
                {"5 0 7", "5 99999999999999999999 7", "3 counts for layer 0"},
                {"7\n\n", "7\n1\n", "0 counts for layer 1"},
                {"1 12\n", "", "2 counts for layer 2"},
                {"1 12\n", "1 12\n3\n", "more layers"}};
  for (const auto& c : kCases) {
    const std::string bad = Resealed(Replaced(Good(), c.from, c.to));
    const auto uses = ParseUses(bad, kModel, SmallTable());
    ASSERT_FALSE(uses.ok()) << c.to;
    EXPECT_EQ(uses.status().code(), Code::kCorrupt);
    EXPECT_THAT(uses.status().message(), HasSubstr(c.reason)) << c.to;
  }
}

Result<std::vector<uint64_t>> Count(const std::string& trace) {
  std::istringstream in(trace);
  return CountUses(in, "trace", SmallTable());
}

TEST(UseCountsTest, ATracesTokensAreCounted) {
  EXPECT_THAT(*Count("{\"token\":0,\"experts\":[[0,2],[],[1]]}\n"
                     "{\"token\":1,\"experts\":[[2,1],[],[1]]}\n"),
              ElementsAre(1, 1, 2, 0, 2));
}

TEST(UseCountsTest, ATraceOfAnotherShapeIsRefused) {
  for (const char* bad :
       {"{\"token\":0,\"experts\":[[0,2],[1]]}\n",
        "{\"token\":0,\"experts\":[[0,3],[],[1]]}\n",
        "{\"token\":0,\"experts\":[[0,1],[0],[1]]}\n",
        "{\"num_experts\":[4,0,2]}\n{\"token\":0,\"experts\":[[0],[],[1]]}\n",
        ""}) {
    const auto uses = Count(bad);
    ASSERT_FALSE(uses.ok()) << bad;
    EXPECT_EQ(uses.status().code(), Code::kInvalidArgument)
        << uses.status().message();
  }
  EXPECT_EQ(Count("nonsense\n").status().code(), Code::kCorrupt);
}

TEST(UseCountsTest, AModelIsKnownByItsTensorsWhereverTheyLie) {
  formats::ModelFiles a;
  a.tensors = {{.name = "x", .shape = {2, 3}, .offset = 64}};
  formats::ModelFiles b = a;
  b.path = "elsewhere";
  b.tensors[0].offset = 128;
  EXPECT_EQ(ModelIdentity(a), ModelIdentity(b));
  b.tensors[0].shape = {3, 2};
  EXPECT_NE(ModelIdentity(a), ModelIdentity(b));
}

}  // namespace
}  // namespace muster::experts
