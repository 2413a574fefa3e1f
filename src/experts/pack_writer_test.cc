#include "experts/pack_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "experts/pack_verifier.h"
#include "formats/expert_pack.h"

namespace muster::experts {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void WriteAll(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class PackWriterTest : public ::testing::Test {
 protected:
  PackWriterTest()
      : folder_(fs::path(::testing::TempDir()) / "muster_pack_writer_test") {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~PackWriterTest() override { fs::remove_all(folder_); }

  static fs::path Golden(const std::string& name) {
    return fs::path(MUSTER_SOURCE_DIR) / "tests/goldens" / name;
  }

  Result<PackResult> Pack(const fs::path& out, PackOptions options,
                          const std::string& model = "qwen3_moe/model.gguf") {
    return PackFile(Golden(model), out, std::move(options));
  }

  static Result<PackResult> PackFile(const fs::path& model, const fs::path& out,
                                     PackOptions options) {
    const auto source = PackSource::Open(model);
    EXPECT_TRUE(source.ok()) << source.status().message();
    options.shard_bytes = 100 << 10;
    return WritePack(**source, OrderByIndex((*source)->config()), out, options,
                     nullptr);
  }

  // Rows of 256 weights, as copies need them.
  static fs::path Demo() {
    return fs::path(MUSTER_SOURCE_DIR) / "models/demo/demo-moe-q8_0.gguf";
  }

  // By name; the manifest's time is left out.
  static std::map<std::string, std::string> FilesOf(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name != formats::kManifestName) files[name] = ReadAll(entry.path());
    }
    const auto manifest =
        formats::ReadManifest(ReadAll(folder / formats::kManifestName), folder);
    EXPECT_TRUE(manifest.ok()) << manifest.status().message();
    if (!manifest.ok()) return {};
    auto timeless = *manifest;
    timeless.created.clear();
    files["manifest"] = formats::WriteManifest(timeless);
    return files;
  }

  static std::vector<PackDamage> Damages(const fs::path& pack) {
    const auto check = VerifyPack(pack, 2, nullptr);
    EXPECT_TRUE(check.ok()) << check.status().message();
    return check.ok() ? check->damages : std::vector<PackDamage>();
  }

  static Status Repair(const fs::path& pack, const fs::path& model) {
    const auto source = PackSource::Open(model);
    const auto check = VerifyPack(pack, 2, nullptr);
    if (!source.ok() || !check.ok()) return Corrupt("test");
    return RepairPack(pack, *check, **source);
  }

  fs::path folder_;
};

TEST_F(PackWriterTest, StoppedAnywhereItGoesOnToTheSameBytes) {
  ASSERT_TRUE(Pack(folder_ / "whole", {}).ok());
  const auto whole = FilesOf(folder_ / "whole");
  const fs::path out = folder_ / "stopped";
  for (int after = 1;; after += 7) {
    fs::remove_all(out);
    std::atomic<int> asked{0};
    const auto stopped =
        Pack(out, {.num_threads = 2, .stop = [&] { return ++asked > after; }});
    if (stopped.ok()) break;
    ASSERT_EQ(stopped.status().code(), Code::kCancelled);
    ASSERT_FALSE(fs::exists(out));
    const auto resumed = Pack(out, {.num_threads = 2});
    ASSERT_TRUE(resumed.ok()) << resumed.status().message();
    if (after > 7) {
      EXPECT_GT(resumed->num_resumed_units, 0u);
    }
    ASSERT_EQ(FilesOf(out), whole) << "stopped after " << after;
    ASSERT_FALSE(fs::exists(out.string() + ".partial"));
  }
}

TEST_F(PackWriterTest, ATornJournalLosesOnlyWhatItDoesNotSay) {
  ASSERT_TRUE(Pack(folder_ / "whole", {}).ok());
  const fs::path out = folder_ / "torn";
  std::atomic<int> asked{0};
  ASSERT_FALSE(Pack(out, {.stop = [&] { return ++asked > 30; }}).ok());
  const fs::path journal = out.string() + ".partial/journal";
  const std::string text = ReadAll(journal);
  for (const size_t cut : {size_t{10}, text.size() / 2, text.size() - 3}) {
    const fs::path copy = folder_ / "copy";
    fs::copy(out.string() + ".partial", copy.string() + ".partial");
    WriteAll(copy.string() + ".partial/journal", text.substr(0, cut));
    ASSERT_TRUE(Pack(copy, {}).ok());
    EXPECT_EQ(FilesOf(copy), FilesOf(folder_ / "whole")) << cut;
    fs::remove_all(copy);
  }
}

TEST_F(PackWriterTest, WhatAnotherModelLeftIsNotUsed) {
  ASSERT_TRUE(Pack(folder_ / "whole", {}).ok());
  const fs::path out = folder_ / "out";
  std::atomic<int> asked{0};
  ASSERT_FALSE(
      Pack(out, {.stop = [&] { return ++asked > 9; }}, "olmoe/model.gguf")
          .ok());
  const auto packed = Pack(out, {});
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  EXPECT_EQ(packed->num_resumed_units, 0u);
  EXPECT_EQ(FilesOf(out), FilesOf(folder_ / "whole"));
}

TEST_F(PackWriterTest, WhatWasPackedOfAnOlderFileIsNotUsed) {
  const fs::path model = folder_ / "model.gguf";
  fs::copy(Golden("qwen3_moe/model.gguf"), model);
  const fs::path out = folder_ / "out";
  std::atomic<int> asked{0};
  ASSERT_FALSE(
      PackFile(model, out, {.stop = [&] { return ++asked > 25; }}).ok());
  std::string bytes = ReadAll(model);
  bytes[formats::OpenModelFiles(model)->Find("token_embd.weight")->offset] ^= 1;
  WriteAll(model, bytes);
  fs::last_write_time(model,
                      fs::last_write_time(model) + std::chrono::seconds(1));
  const auto packed = PackFile(model, out, {});
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  EXPECT_EQ(packed->num_resumed_units, 0u);
  ASSERT_TRUE(PackFile(model, folder_ / "whole", {}).ok());
  EXPECT_EQ(FilesOf(out), FilesOf(folder_ / "whole"));
}

TEST_F(PackWriterTest, AFileOfThePartialPackThatShrankIsWrittenAgain) {
  ASSERT_TRUE(Pack(folder_ / "whole", {}).ok());
  const fs::path out = folder_ / "out";
  std::atomic<int> asked{0};
  ASSERT_FALSE(Pack(out, {.stop = [&] { return ++asked > 30; }}).ok());
  fs::resize_file(out.string() + ".partial/experts-00000.bin", 8192);
  ASSERT_TRUE(Pack(out, {}).ok());
  EXPECT_EQ(FilesOf(out), FilesOf(folder_ / "whole"));
}

TEST_F(PackWriterTest, OnlyPacksAreReplacedAndOnlyWhenForced) {
  const fs::path out = folder_ / "out";
  fs::create_directory(out);
  WriteAll(out / "thesis.txt", "years of work");
  EXPECT_EQ(Pack(out, {.force = true}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(ReadAll(out / "thesis.txt"), "years of work");
  fs::remove(out / "thesis.txt");
  ASSERT_TRUE(Pack(out, {}).ok());  // an empty folder is as good as none
  const auto again = Pack(out, {});
  EXPECT_EQ(again.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(again.status().message(), HasSubstr("--force"));
  ASSERT_TRUE(Pack(out, {.force = true}, "olmoe/model.gguf").ok());
  EXPECT_EQ(formats::OpenModelFiles(out)
                ->metadata.GetString("general.architecture")
                ->value_or(""),
            "olmoe");
  EXPECT_FALSE(fs::exists(out.string() + ".partial"));
}

TEST_F(PackWriterTest, APackIsNoSource) {
  ASSERT_TRUE(Pack(folder_ / "out", {}).ok());
  EXPECT_EQ(PackSource::Open(folder_ / "out").status().code(),
            Code::kInvalidArgument);
}

TEST_F(PackWriterTest, AnOrderMovesExpertsAndNothingElse) {
  ASSERT_TRUE(Pack(folder_ / "whole", {}).ok());
  const auto source = PackSource::Open(Golden("qwen3_moe/model.gguf"));
  auto order = OrderByIndex((*source)->config());
  for (auto& layer : order) std::reverse(layer.begin(), layer.end());
  ASSERT_TRUE(
      WritePack(**source, order, folder_ / "reversed", {}, nullptr).ok());
  const auto a = formats::OpenModelFiles(folder_ / "whole");
  const auto b = formats::OpenModelFiles(folder_ / "reversed");
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t l = 0; l < a->pack->layers.size(); ++l) {
    const auto& experts = b->pack->layers[l].experts;
    for (size_t e = 0; e < experts.size(); ++e) {
      EXPECT_EQ(a->pack->layers[l].experts[e].checksum, experts[e].checksum);
      if (e > 0) {
        EXPECT_LT(experts[e].offset, experts[e - 1].offset);
      }
    }
  }
  EXPECT_TRUE(Damages(folder_ / "reversed").empty());
}

TEST_F(PackWriterTest, AFlippedBitAnywhereIsFoundAndRepaired) {
  const fs::path pack = folder_ / "pack";
  ASSERT_TRUE(Pack(pack, {}).ok());
  const auto whole = FilesOf(pack);
  for (const auto& [name, bytes] : whole) {
    if (name == "manifest") continue;
    for (size_t at = 0; at < bytes.size(); at += 14983) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ 16);
      WriteAll(pack / name, flipped);
      const auto damages = Damages(pack);
      ASSERT_EQ(damages.size(), 1u) << name << " byte " << at;
      EXPECT_EQ(damages[0].file, name);
      EXPECT_LE(damages[0].offset, at);
      ASSERT_TRUE(Repair(pack, Golden("qwen3_moe/model.gguf")).ok());
      ASSERT_EQ(ReadAll(pack / name), bytes) << name << " byte " << at;
    }
  }
}

TEST_F(PackWriterTest, CopiesStandInFilesOfTheirOwnAndChangeNoOther) {
  ASSERT_TRUE(PackFile(Demo(), folder_ / "plain", {}).ok());
  const auto packed = PackFile(Demo(), folder_ / "one",
                               {.num_threads = 1, .copies = DType::kQ2_K});
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  ASSERT_TRUE(PackFile(Demo(), folder_ / "four",
                       {.num_threads = 4, .copies = DType::kQ2_K})
                  .ok());
  const auto plain = FilesOf(folder_ / "plain");
  auto with_copies = FilesOf(folder_ / "one");
  EXPECT_EQ(FilesOf(folder_ / "four"), with_copies);
  uint64_t copy_bytes = 0;
  std::erase_if(with_copies, [&](const auto& file) {
    const bool is_copies = file.first.starts_with("copies-");
    copy_bytes += is_copies ? file.second.size() : 0;
    return is_copies;
  });
  with_copies["manifest"] = plain.at("manifest");
  EXPECT_EQ(with_copies, plain);
  const auto files = formats::OpenModelFiles(folder_ / "one");
  ASSERT_TRUE(files.ok()) << files.status().message();
  const uint64_t size_bytes = files->pack->copies[0].layout.size_bytes;
  EXPECT_EQ(copy_bytes, packed->num_experts * size_bytes);
  // 2.6 bits a weight, 8.5 of Q8_0, and what panels add to either.
  EXPECT_LT(100 * size_bytes, 35 * files->pack->layers[0].layout.size_bytes);
}

TEST_F(PackWriterTest, WhatCannotHaveCopiesIsRefused) {
  const auto status = [&](const fs::path& model, DType type) {
    return PackFile(model, folder_ / "out", {.copies = type}).status();
  };
  const Status narrow = status(Golden("qwen3_moe/model.gguf"), DType::kQ2_K);
  EXPECT_EQ(narrow.code(), Code::kInvalidArgument);
  EXPECT_THAT(narrow.message(), HasSubstr("layer 0: rows of experts have"));
  EXPECT_THAT(status(Golden("qwen2/model.gguf"), DType::kQ2_K).message(),
              HasSubstr("no routed experts"));
  EXPECT_FALSE(fs::exists(folder_ / "out.partial"));
}

TEST_F(PackWriterTest, AFlippedBitInACopyIsFoundNamedAndRepaired) {
  const fs::path pack = folder_ / "pack";
  ASSERT_TRUE(PackFile(Demo(), pack, {.copies = DType::kQ3_K}).ok());
  const auto files = formats::OpenModelFiles(pack);
  const auto& copy = files->pack->copies[1].experts[3];
  const fs::path shard = files->pack->copy_paths[copy.file];
  const std::string good = ReadAll(shard);
  std::string bad = good;
  bad[copy.offset + 5000] ^= 1;
  WriteAll(shard, bad);
  const auto damages = Damages(pack);
  ASSERT_EQ(damages.size(), 1u);
  EXPECT_EQ(damages[0].part, "layer 1, low-bit copy of expert 3");
  EXPECT_EQ(damages[0].file, shard.filename());
  EXPECT_EQ(damages[0].offset, copy.offset);
  const Status repaired = Repair(pack, Demo());
  ASSERT_TRUE(repaired.ok()) << repaired.message();
  EXPECT_EQ(ReadAll(shard), good);
  fs::remove(shard);
  EXPECT_FALSE(formats::OpenModelFiles(pack).ok());
  ASSERT_TRUE(Repair(pack, Demo()).ok());
  EXPECT_EQ(ReadAll(shard), good);
}

TEST_F(PackWriterTest, DamageNamesLayerAndExpert) {
  const fs::path pack = folder_ / "pack";
  ASSERT_TRUE(Pack(pack, {}).ok());
  const auto files = formats::OpenModelFiles(pack);
  const auto& expert = files->pack->layers[1].experts[3];
  const fs::path shard = files->pack->paths[expert.file];
  std::string bytes = ReadAll(shard);
  bytes[expert.offset + 100] ^= 1;
  WriteAll(shard, bytes);
  const auto damages = Damages(pack);
  ASSERT_EQ(damages.size(), 1u);
  EXPECT_EQ(damages[0].part, "layer 1, expert 3");
  EXPECT_EQ(damages[0].file, shard.filename());
  EXPECT_EQ(damages[0].offset, expert.offset);
}

TEST_F(PackWriterTest, ShortLongAndMissingFilesAreFoundAndRepaired) {
  const fs::path pack = folder_ / "pack";
  ASSERT_TRUE(Pack(pack, {}, "qwen3_moe/hf").ok());
  const auto whole = FilesOf(pack);
  fs::remove(pack / "experts-00001.bin");
  fs::resize_file(pack / "experts-00000.bin", 5000);
  fs::resize_file(pack / "dense.bin", whole.at("dense.bin").size() + 1);
  fs::remove(pack / "config.json");
  EXPECT_FALSE(formats::OpenModelFiles(pack).ok());
  EXPECT_GT(Damages(pack).size(), 4u);
  const Status repaired = Repair(pack, Golden("qwen3_moe/hf"));
  ASSERT_TRUE(repaired.ok()) << repaired.message();
  EXPECT_EQ(FilesOf(pack), whole);
}

TEST_F(PackWriterTest, AnotherModelRepairsNothing) {
  const fs::path pack = folder_ / "pack";
  ASSERT_TRUE(Pack(pack, {}).ok());
  // The same model with one weight changed.
  const fs::path other = folder_ / "other.gguf";
  std::string bytes = ReadAll(Golden("qwen3_moe/model.gguf"));
  const auto files = formats::OpenModelFiles(Golden("qwen3_moe/model.gguf"));
  bytes[files->Find("blk.1.ffn_up_exps.weight")->offset] ^= 1;
  WriteAll(other, bytes);
  const auto opened = formats::OpenModelFiles(pack);
  const auto& expert = opened->pack->layers[1].experts[0];
  const fs::path shard = pack / formats::ShardName(expert.file);
  std::string damaged = ReadAll(shard);
  damaged[expert.offset] ^= 1;
  WriteAll(shard, damaged);
  const Status status = Repair(pack, other);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("layer 1, expert 0"));
  EXPECT_EQ(ReadAll(shard), damaged);
  EXPECT_EQ(Repair(pack, Golden("olmoe/model.gguf")).code(),
            Code::kInvalidArgument);
}

TEST_F(PackWriterTest, ADamagedManifestIsSaidToBeDamaged) {
  const fs::path pack = folder_ / "pack";
  ASSERT_TRUE(Pack(pack, {}).ok());
  std::string text = ReadAll(pack / formats::kManifestName);
  text[0] ^= 1;
  WriteAll(pack / formats::kManifestName, text);
  EXPECT_THAT(VerifyPack(pack, 1, nullptr).status().message(),
              HasSubstr("manifest is damaged"));
  EXPECT_THAT(formats::OpenModelFiles(pack).status().message(),
              HasSubstr("manifest is damaged"));
}

TEST_F(PackWriterTest, ASecondWriterIsTurnedAway) {
  const fs::path out = folder_ / "out";
  std::atomic<bool> asked{false};
  Status second;
  const auto first = Pack(out, {.stop = [&] {
                            if (!asked.exchange(true)) {
                              second = Pack(out, {}).status();
                            }
                            return false;
                          }});
  EXPECT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(second.code(), Code::kUnavailable) << second.message();
}

}  // namespace
}  // namespace muster::experts
