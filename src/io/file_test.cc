#include "io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

namespace muster::io {
namespace {

using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  FileTest() : path_(::testing::TempDir() + "muster_file_test") {
    std::ofstream(path_, std::ios::binary) << "0123456789";
  }
  ~FileTest() override { std::remove(path_.c_str()); }
  std::string path_;
};

TEST_F(FileTest, ReadsAtAnyOffset) {
  auto file = File::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size_bytes(), 10u);
  std::vector<std::byte> bytes(3);
  ASSERT_TRUE(file->ReadAt(4, bytes).ok());
  EXPECT_EQ(static_cast<char>(bytes[0]), '4');
}

TEST_F(FileTest, ReadingPastTheEndSaysHowMuchWasThere) {
  auto file = File::Open(path_);
  ASSERT_TRUE(file.ok());
  std::vector<std::byte> bytes(6);
  const Status status = file->ReadAt(8, bytes);
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_THAT(status.message(), HasSubstr("2 of the 6 bytes"));
}

TEST_F(FileTest, WhatIsNotAFileIsRefused) {
  EXPECT_EQ(File::Open("/no/such/file").status().code(), Code::kNotFound);
  EXPECT_EQ(File::Open("/tmp").status().code(), Code::kInvalidArgument);
}

TEST_F(FileTest, TextFilesHaveALimit) {
  EXPECT_EQ(ReadTextFile(path_, 10).value(), "0123456789");
  EXPECT_EQ(ReadTextFile(path_, 9).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace muster::io
