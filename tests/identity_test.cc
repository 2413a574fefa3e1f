// DESIGN's second promise: the same model and tokens give logits of the same
// bits whatever the threads, the chunks, the company in a batch and the
// instruction set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/model_files.h"
#include "kernels/instruction_set.h"
#include "runtime/forward.h"
#include "runtime/kv_cache.h"
#include "runtime/loaded_model.h"
#include "tests/goldens.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using kernels::KvType;
using runtime::BatchRow;
using runtime::Forward;
using runtime::KvCache;
using runtime::KvPages;
using runtime::LoadedModel;

// Behind the longest chunk of 64 and no multiple of any chunk. The goldens were
// made for 128 positions; nothing in their math ends there.
constexpr size_t kLongPrompt = 259;

// Each [tokens, vocab_size].
using Logits = std::vector<float>;
using Prompt = std::vector<int32_t>;

// Each form of each golden, and the demo model.
std::vector<std::string> AllModels() {
  std::vector<std::string> models;
  for (const std::string& form : AllGoldenForms()) {
    models.push_back(
        fs::relative(GoldenPath(form), MUSTER_SOURCE_DIR).string());
  }
  models.push_back("models/demo/demo-moe-q8_0.gguf");
  return models;
}

// baseline rounds a multiply-add twice and is not promised.
std::vector<std::string> PromisedInstructionSets() {
  std::vector<std::string> names = kernels::SupportedInstructionSets();
  std::erase(names, "baseline");
  return names;
}

// The first float whose bits differ; none: all are the same.
std::optional<size_t> FirstDifference(const Logits& a, const Logits& b) {
  if (a.size() != b.size()) return std::min(a.size(), b.size());
  if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) return {};
  size_t i = 0;
  while (std::memcmp(&a[i], &b[i], sizeof(float)) == 0) ++i;
  return i;
}

// Whether some layer with a router has another so few layers behind it.
bool HasRoutersWithin(const model::ModelConfig& config, size_t layers_ahead) {
  for (size_t l = 0; l < config.layers.size(); ++l) {
    for (size_t next = l + 1;
         next < std::min(l + 1 + layers_ahead, config.layers.size()); ++next) {
      if (config.layers[l].is_moe && config.layers[next].is_moe) return true;
    }
  }
  return false;
}

class IdentityTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const fs::path path = fs::path(MUSTER_SOURCE_DIR) / GetParam();
    if (!fs::exists(path)) GTEST_SKIP() << path << " is not there";
    auto files = formats::OpenModelFiles(path);
    ASSERT_TRUE(files.ok()) << files.status().message();
    files_ = std::move(files).value();
    model_ = Load({});
    ASSERT_NE(model_, nullptr);
  }

  std::unique_ptr<LoadedModel> Load(const runtime::TierOptions& tiers) const {
    ThreadPool pool(2);
    auto model = runtime::LoadModel(files_, {.tiers = tiers}, pool, nullptr);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? std::move(model).value() : nullptr;
  }

  void TearDown() override {
    ASSERT_TRUE(kernels::ForceInstructionSet(best_).ok());
  }

  size_t vocab_size() const { return model_->config.vocab_size; }

  // Tokens that no rule of the model knows of; another `seed`, others.
  Prompt MakePrompt(size_t length, uint32_t seed) const {
    Prompt prompt(length);
    for (int32_t& token : prompt) {
      seed = seed * 1664525 + 1013904223;  // Numerical Recipes' generator
      token = static_cast<int32_t>((seed >> 8) % vocab_size());
    }
    return prompt;
  }

  // As `muster run --chunk` cuts it.
  Logits RunAlone(const Prompt& prompt, size_t num_threads, size_t chunk) {
    return RunAlone(*model_, prompt, num_threads, chunk);
  }
  Logits RunAlone(const LoadedModel& model, const Prompt& prompt,
                  size_t num_threads, size_t chunk,
                  std::optional<uint32_t> layers_ahead = {}) {
    ThreadPool pool(num_threads);
    Forward forward(model, pool, prompt.size(), {}, layers_ahead);
    KvPages pages(model.config, KvType::kF16, KvPages::PagesFor(prompt.size()));
    KvCache kv(&pages);
    EXPECT_TRUE(kv.Reserve(prompt.size()));
    Logits logits(prompt.size() * vocab_size());
    for (size_t begin = 0; begin < prompt.size(); begin += chunk) {
      std::vector<BatchRow> batch;
      for (size_t i = begin; i < std::min(begin + chunk, prompt.size()); ++i) {
        batch.push_back({.token = prompt[i],
                         .position = i,
                         .kv = &kv,
                         .wants_logits = true});
      }
      const Status status =
          forward.Run(batch, logits.data() + begin * vocab_size(), {});
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return logits;
  }

  // As a server would: in each step every sequence that has begun and not
  // ended puts its next rows among those of the others.
  std::vector<Logits> RunTogether(const std::vector<Prompt>& prompts,
                                  size_t num_threads) {
    ThreadPool pool(num_threads);
    Forward forward(*model_, pool, kLongPrompt);
    size_t num_pages = 0;
    for (const Prompt& prompt : prompts) {
      num_pages += KvPages::PagesFor(prompt.size());
    }
    KvPages pages(model_->config, KvType::kF16, num_pages);
    std::vector<KvCache> caches;
    std::vector<size_t> positions(prompts.size(), 0);
    std::vector<Logits> logits(prompts.size());
    caches.reserve(prompts.size());
    for (const Prompt& prompt : prompts) {
      EXPECT_TRUE(caches.emplace_back(&pages).Reserve(prompt.size()));
    }
    for (size_t step = 0;; ++step) {
      std::vector<BatchRow> batch;
      std::vector<size_t> owners;
      for (size_t turn = 0; turn < kMostRows; ++turn) {
        for (size_t s = 0; s < prompts.size(); ++s) {
          const bool has_begun = step >= s * kStepsBetweenArrivals;
          const bool has_turn = turn < RowsInStep(s, step);
          if (!has_begun || !has_turn || positions[s] == prompts[s].size()) {
            continue;
          }
          batch.push_back({.token = prompts[s][positions[s]],
                           .position = positions[s],
                           .kv = &caches[s],
                           .wants_logits = true});
          owners.push_back(s);
          ++positions[s];
        }
      }
      if (batch.empty()) return logits;
      Logits rows(batch.size() * vocab_size());
      EXPECT_TRUE(forward.Run(batch, rows.data(), {}).ok());
      for (size_t row = 0; row < owners.size(); ++row) {
        const auto first =
            rows.begin() + static_cast<ptrdiff_t>(row * vocab_size());
        Logits& own = logits[owners[row]];
        own.insert(own.end(), first,
                   first + static_cast<ptrdiff_t>(vocab_size()));
      }
    }
  }

  void ExpectSame(const Logits& got, const Logits& expected,
                  const std::string& setting) const {
    const auto at = FirstDifference(got, expected);
    EXPECT_FALSE(at.has_value()) << setting << ": token " << *at / vocab_size()
                                 << ", logit " << *at % vocab_size();
  }

  static constexpr size_t kMostRows = 40;
  static constexpr size_t kStepsBetweenArrivals = 3;

  // Long prompts in large pieces, the others token by token, in changing
  // company.
  static size_t RowsInStep(size_t sequence, size_t step) {
    return sequence == 0 ? 1 + step * 13 % kMostRows : 1 + sequence * step % 4;
  }

  const std::string best_ = kernels::CurrentInstructionSet();
  formats::ModelFiles files_;
  std::unique_ptr<LoadedModel> model_;
};

TEST_P(IdentityTest, AnyThreadsAndChunksGiveTheSameBits) {
  const Prompt prompt = MakePrompt(kLongPrompt, 1);
  const Logits expected = RunAlone(prompt, 1, 64);
  for (const size_t threads : {1, 2, 3, 4}) {
    for (const size_t chunk : {1, 7, 64, 512}) {
      ExpectSame(RunAlone(prompt, threads, chunk), expected,
                 fmt::format("{} threads, chunk {}", threads, chunk));
    }
  }
}

TEST_P(IdentityTest, ARowsCompanyChangesNoBit) {
  const std::vector<Prompt> prompts = {MakePrompt(kLongPrompt, 2),
                                       MakePrompt(61, 3), MakePrompt(1, 4),
                                       MakePrompt(40, 5), MakePrompt(61, 3)};
  const std::vector<Logits> together = RunTogether(prompts, 2);
  for (size_t s = 0; s < prompts.size(); ++s) {
    ExpectSame(together[s], RunAlone(prompts[s], 2, 512),
               fmt::format("sequence {}", s));
  }
}

TEST_P(IdentityTest, EveryInstructionSetGivesTheSameBits) {
  const Prompt prompt = MakePrompt(kLongPrompt, 6);
  const Logits expected = RunAlone(prompt, 2, 512);
  for (const std::string& name : PromisedInstructionSets()) {
    ASSERT_TRUE(kernels::ForceInstructionSet(name).ok());
    ASSERT_EQ(kernels::CurrentInstructionSet(), name);
    for (const size_t chunk : {7, 512}) {
      ExpectSame(RunAlone(prompt, 2, chunk), expected,
                 fmt::format("{}, chunk {}", name, chunk));
    }
  }
}

TEST_P(IdentityTest, ExpertsThatComeInBehindGiveTheSameBits) {
  const auto filling = Load({.load_behind_bytes = 0});
  ASSERT_NE(filling, nullptr);
  if (filling->tiers == nullptr) GTEST_SKIP() << "no experts to wait for";
  EXPECT_EQ(filling->tiers->cache().num_resident(), 0u);
  const Prompt prompt = MakePrompt(kLongPrompt, 7);
  const Logits expected = RunAlone(prompt, 2, 64);
  ExpectSame(RunAlone(*filling, prompt, 2, 1), expected, "while they come");
  ExpectSame(RunAlone(*filling, prompt, 2, 64), expected, "when they are here");
  EXPECT_EQ(filling->tiers->cache().num_resident(),
            filling->tiers->table().num_experts());
}

// From the fewest experts that a step can do with to all of them.
TEST_P(IdentityTest, ExpertsInTiersGiveTheSameBits) {
  const auto all = Load({.cache_bytes = uint64_t{1} << 40});
  ASSERT_NE(all, nullptr);
  if (all->tiers == nullptr) GTEST_SKIP() << "a dense model has no experts";
  const experts::ExpertTable& table = all->tiers->table();
  const uint64_t floor = experts::ExpertCache::FloorBytes(table);
  const uint64_t total = table.total_bytes();
  std::vector<Prompt> prompts;
  std::vector<Logits> expected;
  for (const uint32_t seed : {7, 8, 9}) {
    prompts.push_back(MakePrompt(kLongPrompt, seed));
    expected.push_back(RunAlone(prompts.back(), 2, 64));
  }
  for (const uint64_t cache_bytes :
       {floor, floor + (total - floor) / 4, total / 2, total}) {
    const auto tiered = Load({.cache_bytes = cache_bytes});
    ASSERT_NE(tiered, nullptr);
    ASSERT_NE(tiered->tiers, nullptr);
    for (size_t p = 0; p < prompts.size(); ++p) {
      for (const size_t chunk : {1, 64}) {
        ExpectSame(RunAlone(*tiered, prompts[p], 1 + p % 2, chunk), expected[p],
                   fmt::format("prompt {}, cache {} of {}, chunk {}", p,
                               cache_bytes, total, chunk));
      }
    }
    EXPECT_LE(tiered->tiers->cache().resident_bytes(), cache_bytes);
    EXPECT_GT(tiered->tiers->counters().fetched_experts, 0u);
  }
}

// Experts that come and go for other reasons than room.
TEST_P(IdentityTest, RulesOfTheHotTierChangeNoBit) {
  const auto all = Load({.cache_bytes = uint64_t{1} << 40});
  ASSERT_NE(all, nullptr);
  if (all->tiers == nullptr) GTEST_SKIP() << "a dense model has no experts";
  const experts::ExpertTable& table = all->tiers->table();
  const uint64_t total = table.total_bytes();
  const uint32_t layer = table.IdOf(0).layer;  // the first with experts
  const Prompt prompt = MakePrompt(kLongPrompt, 10);
  const Logits expected = RunAlone(prompt, 2, 64);
  for (const double idle_seconds : {0.0, 1e-9}) {
    const auto tiered =
        Load({.cache_bytes = experts::ExpertCache::FloorBytes(table) +
                             table.SizeBytes(0) + total / 4,
              .load_after = 3,
              .unload_idle_seconds = idle_seconds,
              .pin_experts = fmt::format("{}:0", layer),
              .never_keep = fmt::format("{}:1", layer)});
    ASSERT_NE(tiered, nullptr);
    for (const size_t chunk : {1, 64}) {
      ExpectSame(RunAlone(*tiered, prompt, 2, chunk), expected,
                 fmt::format("idle {}, chunk {}", idle_seconds, chunk));
    }
    EXPECT_EQ(tiered->tiers->cache().state(0),
              experts::ExpertCache::State::kResident);
    EXPECT_EQ(tiered->tiers->counters().idle_evictions > 0, idle_seconds > 0);
  }
}

TEST_P(IdentityTest, ExpertsThatAreReadAheadGiveTheSameBits) {
  const auto all = Load({.cache_bytes = uint64_t{1} << 40});
  ASSERT_NE(all, nullptr);
  if (all->tiers == nullptr) GTEST_SKIP() << "a dense model has no experts";
  const experts::ExpertTable& table = all->tiers->table();
  const uint64_t floor = experts::ExpertCache::FloorBytes(table);
  const Prompt prompt = MakePrompt(kLongPrompt, 11);
  const Logits expected = RunAlone(prompt, 2, 64);
  for (const uint64_t cache_bytes : {floor, table.total_bytes() / 2}) {
    for (const uint32_t layers_ahead : {0, 1, 3}) {
      const auto tiered = Load({.cache_bytes = cache_bytes});
      ASSERT_NE(tiered, nullptr);
      ExpectSame(
          RunAlone(*tiered, prompt, 2, 1, layers_ahead), expected,
          fmt::format("cache {}, {} layers ahead", cache_bytes, layers_ahead));
      const telemetry::TierCounters counters = tiered->tiers->counters();
      EXPECT_EQ(counters.called_experts > 0,
                HasRoutersWithin(tiered->config, layers_ahead));
      EXPECT_LE(counters.foreseen_experts, counters.called_experts);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllModels, IdentityTest,
                         ::testing::ValuesIn(AllModels()),
                         [](const auto& param) {
                           return AsTestName(param.param);
                         });

}  // namespace
}  // namespace muster
