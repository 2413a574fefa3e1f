#include "io/user_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace muster::io {
namespace {

using nlohmann::json;

// The user's cache is a folder of the test.
class UserCacheTest : public ::testing::Test {
 protected:
  UserCacheTest() {
    std::filesystem::remove_all(folder_);
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~UserCacheTest() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  void Write(const std::string& text) {
    std::filesystem::create_directories(folder_ + "/muster");
    std::ofstream(folder_ + "/muster/x.json") << text;
  }
  std::string folder_ = ::testing::TempDir() + "user_cache_test";
};

TEST_F(UserCacheTest, WhatIsKeptUnderAKeyComesBackAndOthersStay) {
  ASSERT_TRUE(SaveToUserCache("x.json", "a", {{"n", 1}}).ok());
  ASSERT_TRUE(SaveToUserCache("x.json", "b", {{"n", 2}}).ok());
  EXPECT_EQ(LoadFromUserCache("x.json", "a")->value(), json({{"n", 1}}));
  EXPECT_EQ(LoadFromUserCache("x.json", "b")->value(), json({{"n", 2}}));
}

TEST_F(UserCacheTest, NoDraftIsLeftBehind) {
  ASSERT_TRUE(SaveToUserCache("x.json", "a", {{"n", 1}}).ok());
  size_t num_files = 0;
  for ([[maybe_unused]] const auto& file :
       std::filesystem::directory_iterator(folder_ + "/muster")) {
    ++num_files;
  }
  EXPECT_EQ(num_files, 1u);
}

TEST_F(UserCacheTest, WhatWasNeverKeptIsAbsent) {
  EXPECT_FALSE(LoadFromUserCache("x.json", "a")->has_value());
  ASSERT_TRUE(SaveToUserCache("x.json", "b", {{"n", 2}}).ok());
  EXPECT_FALSE(LoadFromUserCache("x.json", "a")->has_value());
}

TEST_F(UserCacheTest, RubbishIsCorruptAndIsReplaced) {
  for (const char* rubbish : {"{", "[]", "", R"({"a": 1})"}) {
    Write(rubbish);
    EXPECT_EQ(LoadFromUserCache("x.json", "a").status().code(), Code::kCorrupt)
        << rubbish;
    ASSERT_TRUE(SaveToUserCache("x.json", "a", {{"n", 1}}).ok());
    EXPECT_TRUE(LoadFromUserCache("x.json", "a")->has_value());
  }
}

}  // namespace
}  // namespace muster::io
