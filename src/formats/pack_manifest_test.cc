#include "formats/pack_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::formats {
namespace {

using ::testing::HasSubstr;

// A dense layer, a layer of two experts in two shards, and two dense tensors.
PackManifest Small() {
  PackManifest m;
  m.muster_version = "0.1.0";
  m.created = "2026-01-01T00:00:00Z";
  m.source_files = {{"model \"x\".gguf", 123, std::string(64, 'a')}};
  m.descriptions = {{std::string(kMetadataName), 77, {1, 2}}};
  TensorInfo tensor{
      .name = "token_embd.weight", .type = DType::kQ8_0, .shape = {10, 64}};
  EXPECT_TRUE(FillSize(tensor));
  m.tensors.push_back({tensor, {3, 4}});
  tensor.name = "output.weight";
  tensor.offset = kExpertAlignment;
  m.tensors.push_back({tensor, {5, 6}});
  m.dense_bytes = 2 * kExpertAlignment;
  m.packed_tensors = {{.name = "blk.1.ffn_up_exps.weight",
                       .type = DType::kQ8_0,
                       .shape = {2, 32, 64}}};
  const MatrixShape up{.type = DType::kQ8_0, .rows = 32, .cols = 64};
  const MatrixShape down{.type = DType::kQ8_0, .rows = 64, .cols = 32};
  m.layers.resize(2);
  m.layers[1].layout = LayOutExpert(up, up, down);
  m.layers[1].experts = {{1, 0, {7, 8}}, {0, 0, {9, 10}}};
  const uint64_t expert_bytes = m.layers[1].layout.size_bytes;
  m.shard_bytes = {expert_bytes, expert_bytes};
  return m;
}

// The same with low-bit copies of its two experts, in one shard.
PackManifest WithCopies() {
  PackManifest m = Small();
  const MatrixShape up{.type = DType::kQ4_0, .rows = 32, .cols = 64};
  const MatrixShape down{.type = DType::kQ4_0, .rows = 64, .cols = 32};
  m.copies.resize(2);
  m.copies[1].layout = LayOutExpert(up, up, down);
  const uint64_t copy_bytes = m.copies[1].layout.size_bytes;
  EXPECT_EQ(copy_bytes, 2 * kExpertAlignment);
  m.copies[1].experts = {{0, copy_bytes, {11, 12}}, {0, 0, {13, 14}}};
  m.copy_shard_bytes = {2 * copy_bytes};
  return m;
}

TEST(PackManifestTest, WhatIsWrittenIsRead) {
  const PackManifest wrote = Small();
  const auto read = ReadManifest(WriteManifest(wrote), "m");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->source_files[0].name, "model \"x\".gguf");
  EXPECT_EQ(read->tensors[1].info.offset, kExpertAlignment);
  EXPECT_EQ(read->tensors[1].info.size_bytes, 10 * 2 * 34u);
  EXPECT_EQ(read->tensors[1].checksum, (Checksum{5, 6}));
  EXPECT_TRUE(read->packed_tensors[0].packed);
  EXPECT_EQ(read->packed_tensors[0].offset, kPackedOffset);
  EXPECT_TRUE(read->layers[0].experts.empty());
  EXPECT_TRUE(read->layers[1].layout == wrote.layers[1].layout);
  EXPECT_EQ(read->layers[1].experts[0].file, 1u);
  EXPECT_EQ(read->layers[1].experts[1].checksum, (Checksum{9, 10}));
  EXPECT_EQ(WriteManifest(*read), WriteManifest(wrote));
}

TEST(PackManifestTest, CopiesAreReadAndMayBeMissing) {
  const PackManifest wrote = WithCopies();
  const auto read = ReadManifest(WriteManifest(wrote), "m");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->copy_shard_bytes, wrote.copy_shard_bytes);
  ASSERT_EQ(read->copies.size(), 2u);
  EXPECT_TRUE(read->copies[0].experts.empty());
  EXPECT_TRUE(read->copies[1].layout == wrote.copies[1].layout);
  EXPECT_EQ(read->copies[1].experts[0].checksum, (Checksum{11, 12}));
  EXPECT_TRUE(read->layers[1].layout == wrote.layers[1].layout);
  EXPECT_EQ(WriteManifest(*read), WriteManifest(wrote));
  EXPECT_TRUE(ReadManifest(WriteManifest(Small()), "m")->copies.empty());
}

TEST(PackManifestTest, TilesOfFp8ScalesAreKept) {
  PackManifest m = Small();
  const MatrixShape fp8{.type = DType::kF8E4M3,
                        .rows = 64,
                        .cols = 64,
                        .scale_tile_rows = 32,
                        .scale_tile_cols = 16};
  m.layers[1].layout = LayOutExpert(fp8, fp8, fp8);
  m.shard_bytes.assign(2, m.layers[1].layout.size_bytes);
  const auto read = ReadManifest(WriteManifest(m), "m");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->layers[1].layout == m.layers[1].layout);
}

TEST(PackManifestTest, EveryFlippedBitIsFound) {
  const std::string text = WriteManifest(WithCopies());
  for (size_t i = 0; i < text.size() * 8; ++i) {
    std::string flipped = text;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
    ASSERT_FALSE(ReadManifest(flipped, "m").ok()) << "bit " << i;
  }
}

TEST(PackManifestTest, EveryTruncationIsFound) {
  const std::string text = WriteManifest(WithCopies());
  for (size_t size = 0; size < text.size(); ++size) {
    ASSERT_FALSE(ReadManifest(text.substr(0, size), "m").ok()) << size;
    if (size + 1 == text.size()) break;  // what ends is the line alone
    ASSERT_FALSE(ParseManifest(text.substr(0, size), "m").ok()) << size;
  }
}

// One edit each, under a checksum that fits.
struct Edit {
  const char* from;
  const char* to;
  const char* message;
};

class HostileManifestTest : public ::testing::TestWithParam<Edit> {};

TEST_P(HostileManifestTest, IsRefused) {
  std::string text = WriteManifest(WithCopies());
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, std::string_view(GetParam().from).size(), GetParam().to);
  const auto read = ParseManifest(text, "m");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.status().message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Edits, HostileManifestTest,
    ::testing::Values(
        Edit{"muster-pack", "other", "not an expert pack"},
        Edit{"\"version\":1", "\"version\":2", "pack the model again"},
        // Its BF16 experts are as large, and in rows.
        Edit{"\"panel_layout\":2", "\"panel_layout\":1",
             "pack the model again"},
        Edit{"\"panel_layout\":2", "\"panel_layout\":9",
             "pack the model again"},
        Edit{"\"source_format\":\"gguf\"", "\"source_format\":\"x\"",
             "source_format"},
        Edit{"[\"model", "[\"../model", ""},
        Edit{"\\\"x\\\"", "/x", "source_files"},
        Edit{"\"metadata.gguf\"", "\"../../etc/passwd\"", "descriptions"},
        Edit{"\"metadata.gguf\"", "\"config.json\"", "descriptions"},
        Edit{"\"token_embd.weight\",\"Q8_0\"", "\"token_embd.weight\",\"Q9\"",
             "tensors"},
        Edit{"[10,64],0", "[10,65],0", "cannot be"},
        Edit{"[10,64],0", "[4611686018427387904,64],0", "cannot be"},
        Edit{"[10,64],0", "[10,64],4096", "is at offset 4096, expected 0"},
        Edit{"[10,64],4096", "[10,64],0", "is at offset 0, expected 4096"},
        Edit{"[10,64],0", "[10,64],-1", "tensors"},
        Edit{"\"dense_size\":8192", "\"dense_size\":4096", "dense_size"},
        Edit{"\"dense_size\":8192", "\"dense_size\":12288", "dense_size"},
        Edit{"\"dense_size\":8192", "\"dense_size\":1e4", "dense_size"},
        Edit{"\"shard_sizes\":[12288,12288]", "\"shard_sizes\":[12288,16384]",
             "fill 12288 of its 16384 bytes"},
        Edit{"\"shard_sizes\":[12288,12288]", "\"shard_sizes\":[12288,4096]",
             "end beyond it"},
        Edit{"\"shard_sizes\":[12288,12288]",
             "\"shard_sizes\":[12288,18446744073709551615]", "fill 12288"},
        Edit{"[1,0,\"", "[0,0,\"", "overlap"},
        Edit{"[1,0,\"", "[2,0,\"", "experts"},
        Edit{"[1,0,\"", "[1,4096,\"", "hole"},
        Edit{"[1,0,\"", "[1,18446744073709547520,\"", "hole"},
        Edit{"\"gate\":[\"Q8_0\",32,64]", "\"gate\":[\"Q8_0\",0,64]", "gate"},
        Edit{"\"gate\":[\"Q8_0\",32,64]",
             "\"gate\":[\"Q8_0\",1073741824,1073741824]", "gate"},
        Edit{"\"gate\":[\"Q8_0\",32,64]", "\"gate\":[\"Q8_0\",640,64]",
             "expert_size"},
        Edit{"\"gate\":[\"Q8_0\",32,64]", "\"gate\":[\"Q8_0\",32,64,1,1]",
             "gate"},
        Edit{"\"gate\":[\"Q8_0\",32,64]", "\"gate\":[\"F8_E4M3\",32,64]",
             "gate"},
        Edit{"\"expert_size\":12288", "\"expert_size\":4096", "expert_size"},
        Edit{"null", "[[[[[[[[[[1]]]]]]]]]]", "not valid JSON"},
        Edit{"null", "{}", "layers"},
        Edit{"\"copies\":{", "\"copies\":7,\"other\":{", "copies"},
        Edit{"\"copies\":{", "\"copies\":{},\"other\":{", "shard_sizes"},
        Edit{"\"copies\":{\"shard_sizes\":[16384],\n\"layers\":[\nnull,\n",
             "\"copies\":{\"shard_sizes\":[16384],\n\"layers\":[\n",
             "not of each expert"},
        Edit{"[16384]", "[20480]", "copies-00000.bin fill 16384"},
        Edit{"[16384]", "[8192]", "copies-00000.bin"},
        Edit{"[0,8192,\"", "[1,8192,\"", "experts"},
        Edit{"[0,8192,\"", "[0,0,\"", "copies-00000.bin overlap"},
        Edit{"[0,8192,\"", "[0,18446744073709547520,\"", "hole"},
        // As large, but another shape.
        Edit{"\"gate\":[\"Q4_0\",32,64]", "\"gate\":[\"Q4_0\",64,32]", ""},
        Edit{"\"gate\":[\"Q4_0\",32,64]", "\"gate\":[\"I8\",32,64]", ""},
        Edit{"\"gate\":[\"Q4_0\",32,64]", "\"gate\":[\"Q4_0\",0,64]", "gate"},
        Edit{"\"expert_size\":8192", "\"expert_size\":4096", "expert_size"}));

}  // namespace
}  // namespace muster::formats
