// Packs of every model in tests/goldens against the models themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "experts/pack_source.h"
#include "experts/pack_writer.h"
#include "formats/model_files.h"
#include "formats/pack_manifest.h"
#include "io/file.h"
#include "routing/router.h"
#include "runtime/engine.h"
#include "runtime/scheduler.h"
#include "tests/goldens.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  std::vector<float> logits;
  uint64_t parameters = 0;
  uint64_t active = 0;
  bool is_tiered = false;
};

class GoldenPackTest : public ::testing::TestWithParam<std::string> {
 protected:
  GoldenPackTest()
      : pack_(fs::path(::testing::TempDir()) /
              ("muster_pack_" + AsTestName(GetParam()))) {
    source_ = GoldenPath(GetParam());
    tokens_ = ReadGolden(GetParam())
                  .at("prompts")
                  .back()
                  .at("tokens")
                  .get<std::vector<int32_t>>();
    fs::remove_all(pack_);
    fs::remove_all(pack_.string() + ".partial");
  }
  ~GoldenPackTest() override { fs::remove_all(pack_); }

  void Pack(uint64_t shard_bytes) {
    const auto source = experts::PackSource::Open(source_);
    ASSERT_TRUE(source.ok()) << source.status().message();
    const auto written = experts::WritePack(
        **source, experts::OrderByIndex((*source)->config()), pack_,
        {.num_threads = 3, .shard_bytes = shard_bytes}, nullptr);
    ASSERT_TRUE(written.ok()) << written.status().message();
  }

  // The prompt at once, then its last tokens again, one by one.
  Outcome RunModel(const std::string& path,
                   const runtime::TierOptions& tiers = {}) {
    Outcome run;
    const auto files = formats::OpenModelFiles(path);
    EXPECT_TRUE(files.ok()) << files.status().message();
    if (!files.ok()) return run;
    const auto engine = runtime::Engine::Load(
        *files,
        {.num_threads = 2, .kv_type = kernels::KvType::kF16, .tiers = tiers},
        nullptr);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    if (!engine.ok()) return run;
    const auto logits = (*engine)->AppendForAllLogits(tokens_);
    EXPECT_TRUE(logits.ok());
    if (logits.ok()) run.logits.assign(logits->begin(), logits->end());
    const size_t again = tokens_.size() / 2;
    (*engine)->Rewind(again);
    for (size_t i = again; i < tokens_.size(); ++i) {
      const auto row = (*engine)->Append({&tokens_[i], 1});
      EXPECT_TRUE(row.ok()) << row.status().message();
      if (row.ok()) {
        run.logits.insert(run.logits.end(), row->begin(), row->end());
      }
    }
    run.is_tiered = (*engine)->model().tiers != nullptr;
    run.parameters = (*engine)->model().parameters.total;
    run.active = (*engine)->model().parameters.active;
    return run;
  }

  static uint64_t Floor(const std::string& path) {
    const auto files = formats::OpenModelFiles(path);
    const auto engine = runtime::Engine::Load(
        *files, {.tiers = {.cache_bytes = uint64_t{1} << 40}}, nullptr);
    return experts::ExpertCache::FloorBytes((*engine)->model().tiers->table());
  }

  fs::path source_, pack_;
  std::vector<int32_t> tokens_;
};

TEST_P(GoldenPackTest, APackComputesTheBitsOfItsSource) {
  Pack(/*shard_bytes=*/64 << 10);  // several shards
  const Outcome source = RunModel(source_);
  const Outcome pack = RunModel(pack_);
  ASSERT_FALSE(source.logits.empty());
  ASSERT_EQ(pack.logits.size(), source.logits.size());
  EXPECT_EQ(std::memcmp(pack.logits.data(), source.logits.data(),
                        source.logits.size() * sizeof(float)),
            0);
  EXPECT_EQ(pack.parameters, source.parameters);
  EXPECT_EQ(pack.active, source.active);
}

TEST_P(GoldenPackTest, ExpertsInTiersComputeTheSameBits) {
  Pack(/*shard_bytes=*/64 << 10);
  const Outcome in_memory = RunModel(source_);
  if (!RunModel(source_, {.cache_bytes = uint64_t{1} << 40}).is_tiered) {
    GTEST_SKIP() << "a dense model has no experts";
  }
  for (const std::string& path : {source_.string(), pack_.string()}) {
    // 4 experts of 12 to 16 a layer in these models, down to one token's.
    for (const runtime::TierOptions& tiers :
         {runtime::TierOptions{.cache_bytes = Floor(path)},
          runtime::TierOptions{.cache_bytes = 2 * Floor(path),
          .policy = "lfru"},
          runtime::TierOptions{.cache_bytes = 3 * Floor(path),
          .policy = "least-stale",
          .direct_reads = false,
          .io_uring = false}}) {
      const Outcome tiered = RunModel(path, tiers);
      EXPECT_TRUE(tiered.is_tiered);
      ASSERT_EQ(tiered.logits.size(), in_memory.logits.size());
      EXPECT_EQ(std::memcmp(tiered.logits.data(), in_memory.logits.data(),
                            in_memory.logits.size() * sizeof(float)),
                0)
          << path << ", " << *tiers.cache_bytes << " bytes, " << tiers.policy;
    }
  }
}

class DamagedPackTest : public ::testing::Test {
 protected:
  DamagedPackTest()
      : pack_(fs::path(::testing::TempDir()) / "muster_damaged_pack") {
    fs::remove_all(pack_);
    const auto source =
        experts::PackSource::Open(GoldenPath("qwen3_moe:model.gguf"));
    EXPECT_TRUE(experts::WritePack(**source,
                                   experts::OrderByIndex((*source)->config()),
                                   pack_, {.num_threads = 2}, nullptr)
                    .ok());
  }
  ~DamagedPackTest() override { fs::remove_all(pack_); }

  Status Load(const runtime::TierOptions& tiers = {}) const {
    const auto files = formats::OpenModelFiles(pack_);
    if (!files.ok()) return files.status();
    return runtime::Engine::Load(*files, {.num_threads = 2, .tiers = tiers},
                                 nullptr)
        .status();
  }
  void Flip(const std::string& name, uint64_t at) const {
    std::fstream file(pack_ / name,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
  }
  // With a checksum that fits: what a stranger could send.
  void EditManifest(const std::function<void(formats::PackManifest&)>& edit) {
    const std::string path = pack_ / formats::kManifestName;
    const auto text = io::ReadTextFile(path, 1 << 20);
    auto manifest = formats::ReadManifest(*text, path);
    ASSERT_TRUE(manifest.ok());
    edit(*manifest);
    std::ofstream(path, std::ios::binary) << formats::WriteManifest(*manifest);
  }

  fs::path pack_;
};

TEST_F(DamagedPackTest, AFlippedBitOfAnExpertIsNotComputedOn) {
  ASSERT_TRUE(Load().ok());
  Flip("experts-00000.bin", 5000);
  const Status status = Load();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("experts-00000.bin"), std::string::npos);
}

TEST_F(DamagedPackTest, AFlippedBitOfAnExpertInATierFailsTheStepThatWantsIt) {
  const auto files = formats::OpenModelFiles(pack_);
  const auto flip_all_of_the_first_layer = [&] {
    for (const auto& expert : files->pack->layers[0].experts) {
      Flip("experts-00000.bin", expert.offset + 99);
    }
  };
  flip_all_of_the_first_layer();
  const auto engine = runtime::Engine::Load(
      *files, {.num_threads = 2, .tiers = {.cache_bytes = 1 << 20}}, nullptr);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const std::vector<int32_t> tokens = {1, 2, 3};
  const Status status = (*engine)->Append(tokens).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("of layer 0"), std::string::npos)
      << status.message();
  EXPECT_EQ((*engine)->position(), 0u);
  flip_all_of_the_first_layer();  // repaired
  EXPECT_TRUE((*engine)->Append(tokens).ok());
}

// The experts of the first layer that a step over one token calls.
std::vector<uint32_t> CalledInTheFirstLayer(runtime::Engine* engine,
                                            int32_t token) {
  std::vector<routing::Routing> routings;
  engine->KeepRoutings(&routings);
  engine->Rewind(0);
  EXPECT_TRUE(engine->Append({&token, 1}).ok());
  engine->KeepRoutings(nullptr);
  return routings[0].ids;
}

// How a sequence ended.
struct Ending : runtime::SequenceListener {
  bool OnToken(int32_t, const runtime::TokenChances*) override { return true; }
  void OnFinish(const runtime::Finish& f) override { finish = f; }
  runtime::Finish finish;
};

// Of sequences in one step only those fail whose experts cannot be had.
TEST_F(DamagedPackTest, AFlippedBitFailsTheSequencesThatWantItAndNoOther) {
  const runtime::EngineOptions options = {.num_threads = 2,
                                          .context_length = 16,
                                          .kv_positions = 1024,
                                          .logit_rows = 4,
                                          .tiers = {.cache_bytes = 1 << 20}};
  const auto files = formats::OpenModelFiles(pack_);
  std::vector<uint32_t> spared, hit;  // by the tokens 1 and `victim`
  int32_t victim = 2;
  const auto is_spared = [&](uint32_t id) {
    return std::ranges::find(spared, id) != spared.end();
  };
  {
    const auto engine = runtime::Engine::Load(*files, options, nullptr);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    spared = CalledInTheFirstLayer(engine->get(), 1);
    do {
      hit = CalledInTheFirstLayer(engine->get(), ++victim);
      std::erase_if(hit, is_spared);
    } while (hit.empty());
  }
  Flip("experts-00000.bin",
       files->pack->layers[0].experts[hit.front()].offset + 99);
  auto engine = runtime::Engine::Load(*files, options, nullptr);
  ASSERT_TRUE(engine.ok());
  const auto scheduler = runtime::Scheduler::Create(
      (*engine)->shared_model(), {.engine = options, .max_running = 4});
  ASSERT_TRUE(scheduler.ok()) << scheduler.status().message();
  std::vector<Ending> endings(3);
  const int32_t prompts[] = {1, victim, 1};
  for (size_t i = 0; i < 3; ++i) {
    runtime::SequenceRequest request;
    request.prompt = {prompts[i]};
    request.max_tokens = 1;
    ASSERT_TRUE((*scheduler)->Submit(std::move(request), &endings[i]).ok());
  }
  (*scheduler)->Step();
  EXPECT_EQ(endings[0].finish.reason, runtime::FinishReason::kLength);
  EXPECT_EQ(endings[1].finish.reason, runtime::FinishReason::kFailed);
  EXPECT_EQ(endings[1].finish.status.code(), Code::kCorrupt);
  EXPECT_EQ(endings[2].finish.reason, runtime::FinishReason::kLength);
  const runtime::SchedulerStats stats = (*scheduler)->stats();
  EXPECT_EQ(stats.failed_steps, 1u);
  EXPECT_EQ(stats.step_tokens, 2u);
  EXPECT_EQ((*scheduler)->routing().tokens(1), 2u);
}

TEST_F(DamagedPackTest, AFlippedBitOfADenseTensorIsNotComputedOn) {
  const auto files = formats::OpenModelFiles(pack_);
  for (const char* name : {"token_embd.weight", "blk.0.attn_q.weight",
                           "blk.1.ffn_gate_inp.weight", "output_norm.weight"}) {
    Flip("dense.bin", files->Find(name)->offset + 5);
    EXPECT_EQ(Load().code(), Code::kCorrupt) << name;
    EXPECT_EQ(Load({.cache_bytes = 1 << 20}).code(), Code::kCorrupt) << name;
    Flip("dense.bin", files->Find(name)->offset + 5);
  }
  EXPECT_TRUE(Load().ok());
}

TEST_F(DamagedPackTest, ADenseTensorAmongTheExpertsIsRefused) {
  uint64_t dense_bytes = 0;
  EditManifest([&](formats::PackManifest& m) {
    m.packed_tensors.push_back(m.tensors.back().info);
    m.dense_bytes = m.tensors.back().info.offset;
    m.tensors.pop_back();
    dense_bytes = m.dense_bytes;
  });
  fs::resize_file(pack_ / "dense.bin", dense_bytes);
  const Status status = Load();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("does not belong"), std::string::npos)
      << status.message();
}

TEST_F(DamagedPackTest, ExpertsOfAnotherShapeThanTheModelsAreRefused) {
  EditManifest([](formats::PackManifest& m) {
    // As large, and otherwise.
    for (auto& layer : m.layers) {
      MatrixShape gate = layer.layout.gate.shape;
      std::swap(gate.rows, gate.cols);
      layer.layout =
          LayOutExpert(gate, layer.layout.up.shape, layer.layout.down.shape);
    }
  });
  const Status status = Load();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("another shape"), std::string::npos)
      << status.message();
}

INSTANTIATE_TEST_SUITE_P(AllFiles, GoldenPackTest,
                         ::testing::ValuesIn(AllGoldenForms()),
                         [](const auto& param) {
                           return AsTestName(param.param);
                         });

}  // namespace
}  // namespace muster
