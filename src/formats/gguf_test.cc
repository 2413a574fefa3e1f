#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/gguf_test_writer.h"

namespace muster::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Writer = GgufTestWriter;

namespace fs = std::filesystem;

// A folder of its own for each test.
class GgufTest : public ::testing::Test {
 protected:
  GgufTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::path(::testing::TempDir()) / (std::string("gguf_") + test->name());
    fs::create_directories(folder_);
  }
  ~GgufTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::string Write(const Writer& writer, const std::string& name = "m.gguf") {
    writer.WriteTo(Path(name));
    return Path(name);
  }
  // The message of an error, or "opened".
  std::string ErrorOf(const Writer& writer) {
    const auto model = OpenModelFiles(Write(writer));
    return model.ok() ? "opened" : model.status().message();
  }

  fs::path folder_;
};

// F32 [2, 4], then F16 [8]: 32 bytes and 16 bytes.
Writer GoodFile() {
  return Writer()
      .Header(2, 2)
      .KeyString("general.architecture", "llama")
      .KeyU32("llama.block_count", 2)
      .Tensor("a.weight", {4, 2}, 0, 0)
      .Tensor("b.weight", {8}, 1, 32)
      .Align()
      .Data(48);
}

TEST_F(GgufTest, ReadsKeysAndPlacesTensors) {
  for (const uint32_t version : {2u, 3u}) {
    std::string bytes = GoodFile().bytes();
    bytes[4] = static_cast<char>(version);
    const auto model = OpenModelFiles(Write(Writer().Raw(bytes)));
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->metadata.GetUint("llama.block_count").value(), 2u);
    const TensorInfo* a = model->Find("a.weight");
    ASSERT_NE(a, nullptr);
    EXPECT_THAT(a->shape, ElementsAre(2, 4));  // row-major
    EXPECT_EQ(a->type, DType::kF32);
    EXPECT_EQ(a->offset, bytes.size() - 48);
    EXPECT_EQ(model->Find("b.weight")->offset, bytes.size() - 16);
    EXPECT_EQ(model->Find("c.weight"), nullptr);
  }
}

// CASES G01: a tensor without elements is accepted.
TEST_F(GgufTest, G01ZeroDimensionIsAnEmptyTensor) {
  const auto model = OpenModelFiles(
      Write(Writer().Header(1, 0).Tensor("t.weight", {4, 0}, 0, 0)));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->tensors[0].num_elements(), 0u);
  EXPECT_EQ(model->tensors[0].size_bytes, 0u);
}

// CASES G02.
TEST_F(GgufTest, G02EmptyKeyIsRefused) {
  EXPECT_THAT(ErrorOf(Writer().Header(0, 1).KeyU32("", 1)),
              HasSubstr("a key is empty"));
}

// CASES G03.
TEST_F(GgufTest, G03DimensionsThatOverflowAreRefused) {
  EXPECT_THAT(ErrorOf(Writer().Header(1, 0).Tensor(
                  "t", {uint64_t{INT64_MAX}, 2}, 24, 0)),
              HasSubstr("overflows"));
  EXPECT_THAT(ErrorOf(Writer().Header(1, 0).Tensor(
                  "t", {uint64_t{1} << 42, (uint64_t{1} << 42) + 1}, 0, 0)),
              HasSubstr("overflows"));
}

// CASES G04.
TEST_F(GgufTest, G04SizesWhoseSumWrapsAreRefused) {
  const uint64_t huge = 0x7FFFFFFFFFFFFFC0;
  EXPECT_THAT(ErrorOf(Writer()
                          .Header(2, 0)
                          .Tensor("a", {huge}, 24, 0)
                          .Tensor("b", {huge}, 24, huge)),
              AllOf(HasSubstr("bytes are missing")));
}

// CASES G06: no count is believed before the file could hold it.
TEST_F(GgufTest, G06HugeCountsAreRefused) {
  EXPECT_THAT(ErrorOf(Writer().Header(UINT64_MAX, 0)), HasSubstr("tensors"));
  EXPECT_THAT(ErrorOf(Writer().Header(0, UINT64_MAX)), HasSubstr("keys"));
  EXPECT_THAT(ErrorOf(Writer().Header(0, 1).U64(UINT64_MAX).Data(20)),
              HasSubstr("a key"));
  EXPECT_THAT(ErrorOf(Writer().Header(0, 1).String("k").U32(9).U32(4).U64(
                  uint64_t{1} << 60)),
              HasSubstr("array elements"));
}

// CASES G08.
TEST_F(GgufTest, G08AlignmentMustBeAPowerOfTwoOfTheRightType) {
  EXPECT_THAT(ErrorOf(Writer().Header(0, 1).KeyU32("general.alignment", 13)),
              HasSubstr("power of two"));
  EXPECT_THAT(ErrorOf(Writer().Header(0, 1).KeyU32("general.alignment", 0)),
              HasSubstr("power of two"));
  EXPECT_THAT(ErrorOf(Writer().Header(0, 1).KeyU16("general.alignment", 32)),
              HasSubstr("UINT32"));
  EXPECT_EQ(ErrorOf(Writer().Header(0, 1).KeyU32("general.alignment", 64)),
            "opened");
}

// CASES G09.
TEST_F(GgufTest, G09DuplicatesAndLongNamesAreRefused) {
  EXPECT_THAT(ErrorOf(Writer().Header(0, 2).KeyU32("k", 1).KeyU32("k", 2)),
              HasSubstr("stands there twice"));
  EXPECT_THAT(ErrorOf(Writer()
                          .Header(2, 0)
                          .Tensor("t", {8}, 0, 0)
                          .Tensor("t", {8}, 0, 32)
                          .Align()
                          .Data(64)),
              HasSubstr("stands there twice"));
  EXPECT_THAT(
      ErrorOf(Writer().Header(1, 0).Tensor(std::string(64, 'n'), {0}, 0, 0)),
      HasSubstr("expected at most 63"));
}

// CASES G10.
TEST_F(GgufTest, G10OffsetsMustFollowEachOther) {
  EXPECT_THAT(ErrorOf(Writer()
                          .Header(2, 0)
                          .Tensor("a", {8}, 0, 0)
                          .Tensor("b", {8}, 0, 64)
                          .Align()
                          .Data(96)),
              HasSubstr("at offset 64 of the data, expected 32"));
}

// CASES G11: the missing bytes are counted when the file is opened.
TEST_F(GgufTest, G11TruncationIsSeenAtOpening) {
  std::string bytes = GoodFile().bytes();
  bytes.resize(bytes.size() - 10);
  EXPECT_THAT(ErrorOf(Writer().Raw(bytes)),
              AllOf(HasSubstr("m.gguf"), HasSubstr("10 bytes are missing")));
}

Writer Shard(uint16_t number, uint16_t count, const char* tensor) {
  return Writer()
      .Header(1, 2)
      .KeyU16("split.no", number)
      .KeyU16("split.count", count)
      .Tensor(tensor, {8}, 0, 0)
      .Align()
      .Data(32);
}

TEST_F(GgufTest, AnyShardOpensTheWholeSplit) {
  Write(Shard(0, 2, "a"), "m-00001-of-00002.gguf");
  Write(Shard(1, 2, "b"), "m-00002-of-00002.gguf");
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    const auto model = OpenModelFiles(Path(name));  // CASES G14
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->Find("a")->file, 0u);
    EXPECT_EQ(model->Find("b")->file, 1u);
  }
  EXPECT_TRUE(OpenModelFiles(folder_.string()).ok());
}

// CASES G13.
TEST_F(GgufTest, G13JoinedShardsAreNamedAsSuch) {
  const std::string joined =
      Shard(0, 2, "a").bytes() + Shard(1, 2, "b").bytes();
  EXPECT_THAT(ErrorOf(Writer().Raw(joined)),
              AllOf(HasSubstr("joined end to end"), HasSubstr("merge")));
}

// CASES G15.
TEST_F(GgufTest, G15MissingShardsAreListed) {
  Write(Shard(1, 3, "b"), "m-00002-of-00003.gguf");
  const auto model = OpenModelFiles(Path("m-00002-of-00003.gguf"));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(),
              AllOf(HasSubstr("m-00001-of-00003.gguf"),
                    HasSubstr("m-00003-of-00003.gguf")));
}

TEST_F(GgufTest, G15AShardThatContradictsItsNameIsRefused) {
  Write(Shard(0, 2, "a"), "m-00001-of-00002.gguf");
  Write(Shard(0, 2, "b"), "m-00002-of-00002.gguf");
  const auto model = OpenModelFiles(Path("m-00001-of-00002.gguf"));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(), HasSubstr("split.no is 0"));
}

// CASES G18, G19.
TEST_F(GgufTest, G18UnknownTypesAreNamedAndNeverReinterpreted) {
  EXPECT_THAT(ErrorOf(Writer().Header(1, 0).Tensor("t", {32}, 42, 0)),
              AllOf(HasSubstr("'t'"), HasSubstr("42"), HasSubstr("newer")));
  EXPECT_THAT(ErrorOf(Writer().Header(1, 0).Tensor("t", {256}, 16, 0)),
              HasSubstr("IQ2_XXS"));
  EXPECT_THAT(ErrorOf(Writer().Header(1, 0).Tensor("t", {256}, 137, 0)),
              HasSubstr("fork"));
}

// CASES G27: 3-D expert tensors count in full.
TEST_F(GgufTest, G27SizeOfStackedExpertsIsExact) {
  const auto model = OpenModelFiles(Write(Writer()
                                              .Header(1, 0)
                                              .Tensor("e", {32, 4, 3}, 8, 0)
                                              .Align()
                                              .Data(34 * 4 * 3)));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->tensors[0].size_bytes, 34u * 4 * 3);
  EXPECT_THAT(model->tensors[0].shape, ElementsAre(3, 4, 32));
}

TEST_F(GgufTest, RowsMustBeWholeBlocks) {
  EXPECT_THAT(ErrorOf(Writer().Header(1, 0).Tensor("t", {33, 2}, 8, 0)),
              HasSubstr("multiple of Q8_0's block of 32"));
}

TEST_F(GgufTest, OtherVersionsAndByteOrdersAreToldApart) {
  EXPECT_THAT(ErrorOf(Writer().Header(0, 0, 1)), HasSubstr("expected 2 or 3"));
  EXPECT_THAT(ErrorOf(Writer().Header(0, 0, 0x03000000)),
              HasSubstr("big-endian"));
}

TEST_F(GgufTest, WhatIsNoModelIsNamed) {
  EXPECT_THAT(ErrorOf(Writer()), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf(Writer().Raw("version https://git-lfs.github.com")),
              HasSubstr("Git LFS pointer"));
  EXPECT_THAT(ErrorOf(Writer().Raw("<!DOCTYPE html><html>")),
              HasSubstr("web page"));
  EXPECT_THAT(ErrorOf(Writer().Raw("hello, this is a text file")),
              HasSubstr("neither GGUF nor safetensors"));
}

// Whatever one byte of the header becomes, the file opens or is refused.
TEST_F(GgufTest, EveryMutationOfAHeaderByteIsSurvived) {
  const std::string good = GoodFile().bytes();
  size_t opened = 0;
  for (size_t at = 0; at < good.size() - 48; ++at) {
    for (const int value : {0, 1, 0x7F, 0x80, 0xFF}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(value);
      opened += ErrorOf(Writer().Raw(bytes)) == "opened";
    }
  }
  EXPECT_GT(opened, 0u);
}

}  // namespace
}  // namespace muster::formats
