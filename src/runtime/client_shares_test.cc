#include "runtime/client_shares.h"

#include <gtest/gtest.h>

namespace muster::runtime {
namespace {

TEST(ClientSharesTest, EachPaysForWhatItWasServed) {
  ClientShares shares;
  shares.Enter("a");
  shares.Enter("b");
  shares.Charge("a", 10);
  shares.Charge("b", 3);
  shares.Charge("a", 1);
  EXPECT_EQ(shares.Served("a"), 11u);
  EXPECT_EQ(shares.Served("b"), 3u);
}

TEST(ClientSharesTest, WhoComesLaterBeginsWithTheLeastServed) {
  ClientShares shares;
  shares.Enter("a");
  shares.Enter("b");
  shares.Charge("a", 100);
  shares.Charge("b", 40);
  shares.Enter("c");
  EXPECT_EQ(shares.Served("c"), 40u);
}

TEST(ClientSharesTest, WhoStaysKeepsItsAccountWhoLeavesDoesNot) {
  ClientShares shares;
  shares.Enter("a");
  shares.Enter("b");
  shares.Charge("a", 100);
  shares.Charge("b", 7);
  shares.Enter("a");  // a second sequence
  shares.Leave("a");
  EXPECT_EQ(shares.Served("a"), 100u);
  shares.Leave("a");
  shares.Enter("a");
  EXPECT_EQ(shares.Served("a"), 7u);
}

}  // namespace
}  // namespace muster::runtime
