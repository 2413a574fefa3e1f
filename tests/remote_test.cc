// Models by URL: the same bits as local ones, early, once, and despite faults.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experts/expert_order.h"
#include "experts/pack_source.h"
#include "experts/pack_writer.h"
#include "formats/expert_pack.h"
#include "formats/model_files.h"
#include "io/object/stage.h"
#include "io/object/test_server.h"
#include "runtime/engine.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Logits = std::vector<float>;

const fs::path& Source() {
  static const fs::path source(MUSTER_SOURCE_DIR);
  return source;
}

class RemoteTest : public ::testing::Test {
 protected:
  RemoteTest() {
    std::string folder = ::testing::TempDir() + "muster-remote-XXXXXX";
    folder_ = mkdtemp(folder.data());
    stage_options_.folder = folder_ / "stage";
    stage_options_.client.clock = &clock_;
    stage_options_.fetch_bytes = 256 << 10;
    stage_options_.max_fetches = 4;
  }
  ~RemoteTest() override {
    engine_.reset();
    stage_.reset();
    fs::remove_all(folder_);
  }

  std::string Url(const fs::path& path, const std::string& faults = "-") const {
    return io::TestServerUrl(fmt::format("/f/{}/{}{}", session_, faults,
                                         fs::absolute(path).string()));
  }
  uint64_t ServedBytesSoFar() const {
    io::ObjectClient client({}, {});
    const auto object = client.Open(io::TestServerUrl("/served/" + session_));
    EXPECT_TRUE(object.ok());
    const auto read =
        io::ReadRange(client, *object, 0, client.Info(*object).size_bytes);
    return std::stoull(std::string(
        reinterpret_cast<const char*>(read.bytes.data()), read.bytes.size()));
  }

  // As a new process would: nothing but the folder is left of what was before.
  Status Load(const std::string& path) {
    engine_.reset();
    stage_.reset();
    ASSIGN_OR_RETURN(stage_, io::OpenStage({}, stage_options_));
    io::InstallRemoteFiles(stage_);
    ASSIGN_OR_RETURN(const auto files, formats::OpenModelFiles(path));
    ASSIGN_OR_RETURN(engine_, runtime::Engine::Load(files, options_, nullptr));
    return {};
  }
  Result<Logits> Run(const std::string& path) {
    RETURN_IF_ERROR(Load(path));
    ASSIGN_OR_RETURN(const auto logits, engine_->AppendForAllLogits(tokens_));
    return Logits(logits.begin(), logits.end());
  }
  Logits MustRun(const std::string& path) {
    auto logits = Run(path);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    return logits.ok() ? std::move(logits).value() : Logits();
  }
  static void ExpectSameBits(const Logits& a, const Logits& b) {
    ASSERT_FALSE(a.empty());
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }
  // One token's experts of a layer: the floor, so that experts come and go.
  void TakeTheSmallestCache(const fs::path& model) {
    options_.tiers.cache_bytes = uint64_t{1} << 40;
    ASSERT_TRUE(Load(model).ok());
    options_.tiers.cache_bytes =
        experts::ExpertCache::FloorBytes(engine_->model().tiers->table());
  }

  const std::string session_ = io::NewSession();
  fs::path folder_;
  io::FakeClock clock_;
  io::StageOptions stage_options_;
  runtime::EngineOptions options_ = {.num_threads = 2};
  std::vector<int32_t> tokens_ = {1, 7, 3, 11, 2, 5};
  std::shared_ptr<io::RemoteFiles> stage_;
  std::unique_ptr<runtime::Engine> engine_;
};

TEST_F(RemoteTest, GoldensByUrlComputeTheBitsOfLocalOnes) {
  for (const char* model :
       {"qwen3_moe/model.gguf", "qwen3_moe/split-00001-of-00003.gguf",
        "mixtral/model.gguf", "mixtral/legacy.gguf", "olmoe/model.gguf",
        "qwen3_moe-q4_k/model.gguf"}) {
    const fs::path path = Source() / "tests/goldens" / model;
    if (!fs::exists(path)) continue;
    ExpectSameBits(MustRun(Url(path)), MustRun(path));
  }
}

TEST_F(RemoteTest, ByUrlTheSmallestCacheComputesTheSameBits) {
  const fs::path path = Source() / "tests/goldens/qwen3_moe/model.gguf";
  const Logits local = MustRun(path);
  TakeTheSmallestCache(path);
  ExpectSameBits(MustRun(Url(path)), local);
}

class RemoteDemoTest : public RemoteTest {
 protected:
  RemoteDemoTest() { tokens_ = {1}; }
  const fs::path path_ = Source() / "models/demo/demo-moe-q8_0.gguf";
};

TEST_F(RemoteDemoTest, TheFirstTokenArrivesBeforeMostOfTheModel) {
  const Logits remote = MustRun(Url(path_));
  const uint64_t served_bytes = ServedBytesSoFar();
  EXPECT_LT(static_cast<double>(served_bytes),
            0.6 * static_cast<double>(fs::file_size(path_)));
  ExpectSameBits(remote, MustRun(path_));
}

TEST_F(RemoteDemoTest, ASecondRunFetchesNothingThatTheFirstStaged) {
  const Logits first = MustRun(Url(path_));
  EXPECT_GT(engine_->tier_counters().remote_experts, 0u);
  const uint64_t served_bytes = ServedBytesSoFar();
  const Logits second = MustRun(Url(path_));
  EXPECT_EQ(ServedBytesSoFar(), served_bytes + 1);  // the first look
  EXPECT_EQ(engine_->tier_counters().remote_bytes, 0u);
  EXPECT_EQ(engine_->tier_counters().remote_experts, 0u);
  EXPECT_GT(engine_->tier_counters().staged_experts, 0u);
  ExpectSameBits(second, first);
}

TEST_F(RemoteDemoTest, AModelThatIsStagedWholeIsLoadedAsALocalOne) {
  const Logits first = MustRun(Url(path_));
  {
    const auto file = io::OpenRemoteFile(Url(path_));
    ASSERT_TRUE(file.ok());
    const auto all =
        io::RangeHold::Take({file->get(), 0, (*file)->size_bytes()});
    ASSERT_TRUE(all.ok());
  }
  ExpectSameBits(MustRun(Url(path_)), first);
  EXPECT_EQ(engine_->model().tiers, nullptr);
}

TEST_F(RemoteDemoTest, WithinASmallDiskBudgetTheBitsAreTheSame) {
  stage_options_.disk_bytes = 6 << 20;
  tokens_ = {1, 50, 300, 7, 900, 12, 33};
  ExpectSameBits(MustRun(Url(path_)), MustRun(path_));
}

TEST_F(RemoteDemoTest, FaultsThatPassChangeNothing) {
  const Logits local = MustRun(path_);
  for (const char* faults :
       {"status=500,3", "truncate,4", "drop,2", "status=503,1+truncate,3"}) {
    fs::remove_all(stage_options_.folder);
    ExpectSameBits(MustRun(Url(path_, faults)), local);
  }
}

TEST_F(RemoteDemoTest, FaultsThatStayFailWithTheirReason) {
  for (const char* faults : {"status=500", "truncate", "whole", "etag"}) {
    const auto logits = Run(Url(path_, faults) + "?key=secret");
    ASSERT_FALSE(logits.ok()) << faults;
    EXPECT_THAT(
        logits.status().message(),
        AllOf(HasSubstr("demo-moe-q8_0.gguf"), Not(HasSubstr("secret"))))
        << faults;
  }
}

class RemotePackTest : public RemoteTest {
 protected:
  void WritePack() {
    const auto source = experts::PackSource::Open(source_);
    ASSERT_TRUE(source.ok()) << source.status().message();
    const auto written = experts::WritePack(
        **source, experts::OrderByIndex((*source)->config()), pack_,
        {.num_threads = 2, .shard_bytes = 64 << 10}, nullptr);
    ASSERT_TRUE(written.ok()) << written.status().message();
  }
  const fs::path source_ = Source() / "tests/goldens/qwen3_moe/model.gguf";
  const fs::path pack_ = folder_ / "pack";
};

TEST_F(RemotePackTest, APackByItsManifestsUrlComputesTheSameBits) {
  WritePack();
  ExpectSameBits(MustRun(Url(pack_ / "manifest.json")), MustRun(source_));
}

TEST_F(RemotePackTest, AnExpertThatCameWrongIsFetchedAgain) {
  WritePack();
  const auto files = formats::OpenModelFiles(pack_);
  ASSERT_TRUE(files.ok());
  const auto& expert = files->pack->layers.back().experts.front();
  // Enough of them that one calls that expert.
  tokens_.clear();
  for (int32_t token = 0; token < 40; ++token) tokens_.push_back(token);
  const Logits right = MustRun(source_);
  const fs::path shard = files->pack->paths[expert.file];
  ExpectSameBits(
      MustRun(Url(pack_ / "manifest.json",
                  fmt::format("flip={}:{}", shard.filename().string(),
                              expert.offset + 100))),
      right);
  const auto counters = engine_->tier_counters();
  EXPECT_GE(counters.checksum_failures, 1u);
  EXPECT_EQ(counters.dropped_experts, counters.checksum_failures);
}

}  // namespace
}  // namespace muster
