#include "io/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "io/file.h"

namespace muster::io {
namespace {

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() : path_(::testing::TempDir() + "muster_output_file_test") {
    std::remove(path_.c_str());
  }
  ~OutputFileTest() override { std::remove(path_.c_str()); }
  std::string Text() const {
    const auto text = ReadTextFile(path_, 1000);
    return text.ok() ? *text : text.status().message();
  }
  static std::span<const std::byte> Bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }
  std::string path_;
};

TEST_F(OutputFileTest, OpeningAgainKeepsWhatWasWritten) {
  ASSERT_TRUE(OutputFile::Open(path_)->WriteAt(0, Bytes("0123456789")).ok());
  ASSERT_TRUE(OutputFile::Open(path_)->WriteAt(4, Bytes("xy")).ok());
  EXPECT_EQ(Text(), "0123xy6789");
}

TEST_F(OutputFileTest, ResizingCutsAndExtends) {
  const auto file = OutputFile::Open(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->WriteAt(0, Bytes("abc")).ok());
  ASSERT_TRUE(file->Resize(5).ok());
  EXPECT_EQ(Text(), std::string("abc\0\0", 5));
  ASSERT_TRUE(file->Resize(2).ok());
  EXPECT_EQ(Text(), "ab");
}

TEST_F(OutputFileTest, OneHolderHasTheLock) {
  {
    const auto first = OutputFile::Open(path_);
    EXPECT_TRUE(first->TryLock());
    EXPECT_FALSE(OutputFile::Open(path_)->TryLock());
  }
  EXPECT_TRUE(OutputFile::Open(path_)->TryLock());
}

TEST_F(OutputFileTest, AtomicWritingReplacesTheWholeFile) {
  ASSERT_TRUE(WriteFileAtomically(path_, "a long first text").ok());
  ASSERT_TRUE(WriteFileAtomically(path_, "short").ok());
  EXPECT_EQ(Text(), "short");
}

TEST_F(OutputFileTest, AFolderThatIsNotThereIsAnErrorThatNamesTheFile) {
  const auto file = OutputFile::Open("/no/such/folder/file");
  EXPECT_EQ(file.status().code(), Code::kIoError);
  EXPECT_THAT(file.status().message(),
              ::testing::HasSubstr("/no/such/folder/file"));
}

TEST_F(OutputFileTest, AFullDiskIsNamedAsSuch) {
  const auto file = OutputFile::Open("/dev/full");
  if (!file.ok()) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(file->WriteAt(0, Bytes("x")).code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace muster::io
