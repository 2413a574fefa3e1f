#include "tokenizer/stop_matcher.h"

#include <gtest/gtest.h>

namespace muster::tokenizer {
namespace {

// CASES A01: the stop string spans pieces.
TEST(StopMatcherTest, FindsAStopThatSpansPieces) {
  StopMatcher matcher({"O P Q"});
  EXPECT_EQ(matcher.Feed("L M N O"), "L M N ");
  EXPECT_EQ(matcher.Feed(" P"), "");
  EXPECT_EQ(matcher.Feed(" Q R"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), "O P Q");
  EXPECT_EQ(matcher.Feed("more"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

// CASES A03: a false start is shown once, whole.
TEST(StopMatcherTest, AFalseStartIsShownOnce) {
  StopMatcher matcher({"</s>"});
  EXPECT_EQ(matcher.Feed("a</"), "a");
  EXPECT_EQ(matcher.Feed("b>"), "</b>");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcherTest, TheFirstMatchWinsWhateverTheOrderOfStops) {
  StopMatcher matcher({"later", "soon"});
  EXPECT_EQ(matcher.Feed("x soon, not later"), "x ");
  EXPECT_EQ(matcher.matched(), "soon");
}

TEST(StopMatcherTest, WhatIsHeldBackComesOutAtTheEnd) {
  StopMatcher matcher({"END", ""});
  EXPECT_EQ(matcher.Feed("THE EN"), "THE ");
  EXPECT_EQ(matcher.Flush(), "EN");
}

}  // namespace
}  // namespace muster::tokenizer
