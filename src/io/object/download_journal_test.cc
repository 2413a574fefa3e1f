#include "io/object/download_journal.h"

#include <gtest/gtest.h>

namespace muster::io {
namespace {

const DownloadPlan kPlan = {
    .size_bytes = 25, .part_bytes = 10, .etag = "\"a b\"", .sha256 = ""};

TEST(DownloadJournalTest, PartsCoverTheObject) {
  EXPECT_EQ(kPlan.NumParts(), 3u);
  EXPECT_EQ(kPlan.OffsetOf(2), 20u);
  EXPECT_EQ(kPlan.BytesOf(1), 10u);
  EXPECT_EQ(kPlan.BytesOf(2), 5u);
  EXPECT_EQ((DownloadPlan{.size_bytes = 0, .part_bytes = 10}).NumParts(), 0u);
}

TEST(DownloadJournalTest, WhatIsWrittenIsRead) {
  const auto journal = ParseDownloadJournal(
      FormatJournalHead(kPlan) + FormatJournalPart(2) + FormatJournalPart(0));
  ASSERT_TRUE(journal.ok()) << journal.status().message();
  EXPECT_EQ(journal->plan.etag, kPlan.etag);
  EXPECT_TRUE(kPlan.CanResume(journal->plan));
  EXPECT_EQ(journal->has_part, std::vector<bool>({true, false, true}));
}

TEST(DownloadJournalTest, ATornLastLineIsLeftOut) {
  const auto journal =
      ParseDownloadJournal(FormatJournalHead(kPlan) + "done 1\ndone 2");
  ASSERT_TRUE(journal.ok()) << journal.status().message();
  EXPECT_EQ(journal->has_part, std::vector<bool>({false, true, false}));
}

TEST(DownloadJournalTest, DamageIsFound) {
  const std::string head = FormatJournalHead(kPlan);
  for (const std::string& text :
       {std::string(), std::string("x\n"), head.substr(0, head.size() - 1),
        head + "done 3\n", head + "done -1\n", head + "donut\n", head + "\n",
        std::string("muster-download 1\nsize 9\npart 0\netag x\nsha256 x\n"),
        std::string("muster-download 1\nsize 18446744073709551615\npart 1\n"
                    "etag x\nsha256 x\n")}) {
    EXPECT_EQ(ParseDownloadJournal(text).status().code(), Code::kCorrupt)
        << text;
  }
}

TEST(DownloadJournalTest, OnlyTheSameBytesAreResumed) {
  DownloadPlan other = kPlan;
  EXPECT_TRUE(kPlan.CanResume(other));
  other.etag = "\"b\"";
  EXPECT_FALSE(kPlan.CanResume(other));
  other = kPlan;
  other.size_bytes = 26;
  EXPECT_FALSE(kPlan.CanResume(other));
  DownloadPlan nameless = kPlan;
  nameless.etag.clear();
  EXPECT_FALSE(nameless.CanResume(nameless));
}

}  // namespace
}  // namespace muster::io
