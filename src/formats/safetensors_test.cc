#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::string File(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return bytes + header + std::string(data_bytes, '\1');
}

constexpr char kGood[] =
    R"({"__metadata__":{"format":"pt"},)"
    R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}})";

class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("safetensors_") + test->name());
    fs::create_directories(folder_);
    Write("config.json", "{}");
  }
  ~SafetensorsTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string ErrorOf(const std::string& bytes) {
    Write("model.safetensors", bytes);
    const auto model = OpenModelFiles(folder_.string());
    return model.ok() ? "opened" : model.status().message();
  }
  std::string ErrorOfTensor(const std::string& entry, size_t data_bytes) {
    return ErrorOf(File("{\"t\":" + entry + "}", data_bytes));
  }

  fs::path folder_;
};

TEST_F(SafetensorsTest, ReadsTensorsAndDescriptions) {
  Write("model.safetensors", File(kGood, 22));
  Write("tokenizer.json", "{\"x\":1}");
  const auto model = OpenModelFiles(folder_.string());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->format, Format::kSafetensors);
  EXPECT_EQ(model->config_json, "{}");
  EXPECT_EQ(model->tokenizer_json, "{\"x\":1}");
  const TensorInfo* b = model->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, DType::kBF16);
  EXPECT_THAT(b->shape, ElementsAre(3));
  EXPECT_EQ(b->offset, 8 + sizeof(kGood) - 1 + 16);
  EXPECT_TRUE(OpenModelFiles((folder_ / "model.safetensors").string()).ok());
}

// CASES T01.
TEST_F(SafetensorsTest, T01RangesMustBeWhatTheShapeNeeds) {
  EXPECT_THAT(
      ErrorOfTensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", 4),
      HasSubstr("needs 8"));
  EXPECT_THAT(ErrorOfTensor(R"({"dtype":"F32","shape":[4611686018427387905,4],)"
                            R"("data_offsets":[0,16]})",
                            16),
              HasSubstr("more than any file"));
  EXPECT_THAT(
      ErrorOfTensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", 4),
      HasSubstr("data_offsets"));
}

// CASES T02.
TEST_F(SafetensorsTest, T02DuplicateKeysAreRefused) {
  EXPECT_THAT(
      ErrorOf(File(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                   R"("t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                   4)),
      HasSubstr("'t' stands there twice"));
  EXPECT_THAT(ErrorOfTensor(R"({"dtype":"F32","dtype":"F16","shape":[1],)"
                            R"("data_offsets":[0,4]})",
                            4),
              HasSubstr("'dtype' stands there twice"));
}

// CASES T04.
TEST_F(SafetensorsTest, T04UnknownTypesAreRefused) {
  EXPECT_THAT(
      ErrorOfTensor(R"({"dtype":"F4","shape":[1],"data_offsets":[0,1]})", 1),
      AllOf(HasSubstr("'t'"), HasSubstr("'F4'")));
}

// CASES T06: the length is checked before anything is allocated.
TEST_F(SafetensorsTest, T06HugeHeadersAreRefused) {
  const uint64_t length = uint64_t{1} << 60;
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  EXPECT_THAT(ErrorOf(bytes + "{}"), HasSubstr("expected at most 2"));
}

TEST_F(SafetensorsTest, HolesOverlapsAndTruncationAreRefused) {
  EXPECT_THAT(
      ErrorOf(File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                   12)),
      HasSubstr("overlap or leave a hole"));
  EXPECT_THAT(ErrorOf(File(kGood, 20)), HasSubstr("2 bytes are missing"));
  EXPECT_THAT(ErrorOf(File(kGood, 25)), HasSubstr("behind the last tensor"));
}

TEST_F(SafetensorsTest, RubbishIsRefused) {
  EXPECT_NE(ErrorOf(File("{\"t\":", 0)), "opened");
  EXPECT_NE(ErrorOf(File("{} {}", 0)), "opened");
  EXPECT_NE(ErrorOf(File(std::string(100000, '['), 0)), "opened");
  EXPECT_NE(ErrorOf(File("{\"t\":" + std::string(100000, '['), 0)), "opened");
}

TEST_F(SafetensorsTest, ShardsAreFoundThroughTheIndex) {
  const std::string header =
      R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  Write("s1.safetensors", File(header, 4));
  Write("model.safetensors.index.json",
        R"({"weight_map":{"t":"s1.safetensors"}})");
  EXPECT_TRUE(OpenModelFiles(folder_.string()).ok());
  Write("model.safetensors.index.json",
        R"({"weight_map":{"t":"s1.safetensors","u":"s2.safetensors"}})");
  EXPECT_THAT(OpenModelFiles(folder_.string()).status().message(),
              HasSubstr("s2.safetensors"));
  Write("model.safetensors.index.json",
        R"({"weight_map":{"t":"s1.safetensors","u":"s1.safetensors"}})");
  EXPECT_THAT(OpenModelFiles(folder_.string()).status().message(),
              HasSubstr("is said to be in"));
  Write("model.safetensors.index.json", R"({"weight_map":{"t":"../x"}})");
  EXPECT_THAT(OpenModelFiles(folder_.string()).status().message(),
              HasSubstr("outside the folder"));
}

TEST_F(SafetensorsTest, AMissingConfigIsNamed) {
  fs::remove(folder_ / "config.json");
  Write("model.safetensors", File(kGood, 22));
  EXPECT_THAT(OpenModelFiles(folder_.string()).status().message(),
              HasSubstr("config.json is missing"));
}

TEST_F(SafetensorsTest, EveryMutationOfAHeaderByteIsSurvived) {
  const std::string good = File(kGood, 22);
  for (size_t at = 0; at < good.size() - 22; ++at) {
    for (const char value : {'\0', '"', '[', '9', '\xFF'}) {
      std::string bytes = good;
      bytes[at] = value;
      ErrorOf(bytes);  // opens or is refused
    }
  }
}

}  // namespace
}  // namespace muster::formats
