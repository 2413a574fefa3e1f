#include "io/direct_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/read_engine.h"
#include "io/testing_file.h"
#include "tensor/aligned_buffer.h"

namespace muster::io {
namespace {

using ::testing::HasSubstr;

TEST(DirectFileTest, IsDirectExactlyWhenItHasNoReasonNotToBe) {
  const TestingFile bytes("direct_file_test", RandomBytes(10'000, 1));
  auto file = DirectFile::Open(bytes.path());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size_bytes(), 10'000u);
  EXPECT_EQ(file->path(), bytes.path());
  EXPECT_EQ((fcntl(file->fd(), F_GETFL) & O_DIRECT) != 0, file->is_direct());
  EXPECT_EQ(file->is_direct(), file->why_not().empty());
}

TEST(DirectFileTest, TheLastPageComesBackAsLongAsTheFileIs) {
  const TestingFile bytes("direct_file_test", RandomBytes(10'000, 1));
  auto file = DirectFile::Open(bytes.path());
  ASSERT_TRUE(file.ok());
  AlignedBuffer page(kReadAlignment);
  ASSERT_EQ(pread(file->fd(), page.data(), kReadAlignment, 8192),
            10'000 - 8192);
  EXPECT_EQ(page.data()[1807], bytes.bytes()[9'999]);
}

TEST(DirectFileTest, AFileSystemWithoutDirectReadsIsReadThroughTheCache) {
  // A kernel file that is regular and refuses O_DIRECT.
  auto file = DirectFile::Open("/proc/self/status");
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->is_direct());
  EXPECT_THAT(file->why_not(), HasSubstr("Invalid argument"));
}

TEST(DirectFileTest, ABufferedFileSaysThatItWasAskedFor) {
  const TestingFile bytes("direct_file_test", RandomBytes(10, 1));
  auto file = DirectFile::OpenBuffered(bytes.path());
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->is_direct());
  EXPECT_EQ(fcntl(file->fd(), F_GETFL) & O_DIRECT, 0);
}

TEST(DirectFileTest, WhatIsNotAFileIsRefused) {
  EXPECT_EQ(DirectFile::Open("/no/such/file").status().code(), Code::kNotFound);
  EXPECT_EQ(DirectFile::Open("/tmp").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace muster::io
