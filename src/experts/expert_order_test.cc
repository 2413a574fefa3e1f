#include "experts/expert_order.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace muster::experts {
namespace {

class ExpertOrderTest : public ::testing::Test {
 protected:
  ExpertOrderTest() : path_(::testing::TempDir() + "muster_order_trace") {
    config_.layers.resize(2);
    config_.layers[1].is_moe = true;
    config_.layers[1].router.num_experts = 6;
    config_.layers[1].router.top_k = 2;
  }
  ~ExpertOrderTest() override { std::remove(path_.c_str()); }

  Result<ExpertOrder> Order(const std::string& trace) {
    std::ofstream(path_) << trace;
    return OrderByTrace(path_, config_);
  }

  model::ModelConfig config_;
  std::string path_;
};

TEST_F(ExpertOrderTest, ExpertsThatTokensTakeTogetherStandTogether) {
  const auto order = Order(
      "{\"token\":0,\"experts\":[[],[4,1]]}\n"
      "{\"token\":1,\"experts\":[[],[1,4]]}\n"
      "{\"token\":2,\"experts\":[[],[1,4]]}\n"
      "{\"token\":3,\"experts\":[[],[5,2]]}\n"
      "{\"token\":4,\"experts\":[[],[5,2]]}\n"
      "{\"token\":5,\"experts\":[[],[4,3]]}\n");
  ASSERT_TRUE(order.ok()) << order.status().message();
  // 4 was taken most; 1 and 3 with it; 2 and 5 with each other; 0 never.
  EXPECT_EQ((*order)[0], std::vector<uint32_t>{});
  EXPECT_EQ((*order)[1], (std::vector<uint32_t>{4, 1, 3, 2, 5, 0}));
}

TEST_F(ExpertOrderTest, ATraceOfAnotherModelIsRefused) {
  EXPECT_EQ(Order("{\"token\":0,\"experts\":[[],[6]]}\n").status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Order("{\"token\":0,\"experts\":[[0],[1]]}\n").status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Order("{\"token\":0,\"experts\":[[1]]}\n").status().code(),
            Code::kInvalidArgument);
}

TEST_F(ExpertOrderTest, WithoutATraceTheOrderIsTheIndex) {
  EXPECT_EQ(OrderByIndex(config_)[1],
            (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(OrderByIndex(config_)[0].empty());
}

}  // namespace
}  // namespace muster::experts
