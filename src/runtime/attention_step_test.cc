#include "runtime/attention_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace muster::runtime {
namespace {

constexpr size_t kB = kernels::kAttentionBlock;
constexpr size_t kContext = 2 * kB + 64;
constexpr kernels::KvType kTypes[] = {
    kernels::KvType::kF32, kernels::KvType::kF16, kernels::KvType::kQ8};

model::ModelConfig Config(size_t window) {
  model::ModelConfig config;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 32;
  config.context_length = kContext;
  config.rms_eps = 1e-6f;
  config.qk_norm = model::QkNorm::kPerHead;
  config.rope.dim = 32;
  config.layers.resize(2);
  config.layers[1].sliding_window = window;
  return config;
}

std::vector<float> NormalFloats(size_t size, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& v : values) v = normal(rng);
  return values;
}

// The projections of a sequence, as a model would have made them.
struct Sequence {
  Sequence(const model::ModelConfig& config, size_t length, uint32_t seed)
      : q(NormalFloats(length * config.q_dim(), seed)),
        k(NormalFloats(length * config.kv_dim(), seed + 1)),
        v(NormalFloats(length * config.kv_dim(), seed + 2)) {}
  std::vector<float> q, k, v;
};

// Runs layer 1 over rows of sequences, each with its own cache.
class Runner {
 public:
  Runner(const model::ModelConfig& config, kernels::KvType type,
         size_t num_threads, size_t num_sequences)
      : config_(config),
        pool_(num_threads),
        step_(config_, pool_, kContext),
        norm_(NormalFloats(config.head_dim, 99)),
        pages_(config_, type, num_sequences * KvPages::PagesFor(kContext)) {
    // Pages in turns: those of a sequence do not follow each other.
    caches_.resize(num_sequences, KvCache(&pages_));
    for (size_t end = kB; end < kContext + kB; end += kB) {
      for (KvCache& cache : caches_) EXPECT_TRUE(cache.Reserve(end));
    }
  }

  struct Part {  // positions [begin, end) of a sequence
    size_t sequence, begin, end;
  };
  // The parts' results, one behind the other: [rows, q_dim].
  std::vector<float> Run(std::span<const Sequence> sequences,
                         std::span<const Part> parts) {
    std::vector<BatchRow> batch;
    q_.clear();
    std::vector<float> k, v;
    const auto append = [](std::vector<float>* to,
                           const std::vector<float>& from, size_t dim,
                           const Part& part) {
      to->insert(to->end(), from.begin() + part.begin * dim,
                 from.begin() + part.end * dim);
    };
    for (const Part& part : parts) {
      for (size_t p = part.begin; p < part.end; ++p) {
        batch.push_back({.position = p, .kv = &caches_[part.sequence]});
      }
      const Sequence& from = sequences[part.sequence];
      append(&q_, from.q, config_.q_dim(), part);
      append(&k, from.k, config_.kv_dim(), part);
      append(&v, from.v, config_.kv_dim(), part);
    }
    std::vector<float> out(q_.size());
    step_.Run(1, batch,
              {.q_norm = norm_.data(),
               .k_norm = norm_.data(),
               .q = q_.data(),
               .k = k.data(),
               .v = v.data(),
               .out = out.data()});
    return out;
  }

  const KvCache& cache() const { return caches_[0]; }
  const std::vector<float>& turned_q() const { return q_; }  // of the last run

 private:
  model::ModelConfig config_;
  ThreadPool pool_;
  AttentionStep step_;
  std::vector<float> norm_;
  KvPages pages_;
  std::vector<KvCache> caches_;
  std::vector<float> q_;
};

// The tiles of all blocks of a head, one behind the other.
struct WholeHead {
  WholeHead(const KvCache& cache, size_t layer, size_t kv_head) {
    for (size_t block = 0; block < cache.pages().size(); ++block) {
      view = cache.Block(layer, kv_head, block);
      const size_t bytes = kB / kernels::kKvTilePositions *
                           kernels::KvTileBytes(view.type, view.head_dim);
      keys.insert(keys.end(), view.keys, view.keys + bytes);
      values.insert(values.end(), view.values, view.values + bytes);
    }
    view.keys = keys.data();
    view.values = values.data();
  }
  std::vector<std::byte> keys, values;
  kernels::KvHeadView view;
};

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// A prompt cut into chunks gives what it gives as one batch.
void ExpectSameAsWhole(size_t window, kernels::KvType type, size_t length,
                       size_t num_threads, size_t chunk) {
  const model::ModelConfig config = Config(window);
  const Sequence sequence(config, length, 1);
  Runner whole(config, type, 1, 1), cut(config, type, num_threads, 1);
  const std::vector<float> expected =
      whole.Run({&sequence, 1}, {{{0, 0, length}}});
  std::vector<float> out;
  for (size_t begin = 0; begin < length; begin += chunk) {
    const std::vector<float> part = cut.Run(
        {&sequence, 1}, {{{0, begin, std::min(length, begin + chunk)}}});
    out.insert(out.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(SameBits(out, expected)) << "window " << window << " threads "
                                       << num_threads << " chunk " << chunk;
}

TEST(AttentionStepTest, BitsDoNotDependOnChunksThreadsOrTheCacheType) {
  for (const kernels::KvType type : kTypes) {
    for (const size_t window : {size_t{0}, size_t{50}, kB}) {
      ExpectSameAsWhole(window, type, kContext, 1, 1);
      ExpectSameAsWhole(window, type, kContext, 2, 7);
      ExpectSameAsWhole(window, type, kContext, 3, 64);
      ExpectSameAsWhole(window, type, kContext, 4, kB + 1);
      ExpectSameAsWhole(window, type, kContext, 4, kContext);
    }
  }
}

TEST(AttentionStepTest, BitsDoNotDependOnTheSequencesInTheBatch) {
  const model::ModelConfig config = Config(40);
  const Sequence sequences[] = {{config, kContext, 1}, {config, kContext, 5}};
  for (const size_t threads : {1, 2, 4}) {
    Runner both(config, kernels::KvType::kF16, threads, 2);
    Runner alone(config, kernels::KvType::kF16, 1, 2);
    both.Run(sequences, {{{0, 0, kB}, {1, 0, 30}}});
    alone.Run(sequences, {{{0, 0, kB}}});
    alone.Run(sequences, {{{1, 0, 30}}});
    std::vector<float> expected = alone.Run(sequences, {{{1, 30, 50}}});
    const std::vector<float> second = alone.Run(sequences, {{{0, kB, kB + 1}}});
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_TRUE(SameBits(both.Run(sequences, {{{1, 30, 50}, {0, kB, kB + 1}}}),
                         expected));
  }
}

// The queries as the step turned them and the keys as it stored them, through
// the definition.
TEST(AttentionStepTest, EachHeadAttendsToItsKvHeadWithinItsWindow) {
  for (const size_t window : {size_t{0}, size_t{1}, size_t{30}}) {
    const model::ModelConfig config = Config(window);
    const size_t length = kB + 40;
    const Sequence sequence(config, length, 1);
    Runner runner(config, kernels::KvType::kF32, 2, 1);
    const std::vector<float> out =
        runner.Run({&sequence, 1}, {{{0, 0, length}}});
    const WholeHead heads[] = {{runner.cache(), 1, 0}, {runner.cache(), 1, 1}};
    for (const size_t row : {size_t{0}, size_t{1}, size_t{29}, size_t{30},
                             size_t{31}, kB - 1, kB, length - 1}) {
      for (size_t head = 0; head < config.num_heads; ++head) {
        const size_t at = row * config.q_dim() + head * config.head_dim;
        std::vector<float> expected(config.head_dim);
        const size_t end = row + 1;
        kernels::AttentionReference(
            runner.turned_q().data() + at, heads[head / 3].view,
            {.begin = window == 0 ? 0 : end - std::min(end, window),
             .end = end},
            1.0f / std::sqrt(32.0f), expected.data());
        for (size_t i = 0; i < config.head_dim; ++i) {
          // Scores and values stay below 8: some 2 * 8 * 64 roundings of a
          // weight and two a position (see kernels/attention_test.cc).
          EXPECT_NEAR(out[at + i], expected[i],
                      0x1p-24 * 8 * (1024 + 2.0 * static_cast<double>(end)));
        }
      }
    }
  }
}

TEST(AttentionStepTest, LayersDoNotShareTheirCache) {
  const model::ModelConfig config = Config(0);
  const Sequence sequence(config, 1, 1);
  Runner runner(config, kernels::KvType::kF32, 1, 1);
  runner.Run({&sequence, 1}, {{{0, 0, 1}}});
  std::vector<float> value(config.head_dim);
  kernels::LoadValue(kernels::KvType::kF32,
                     runner.cache().Block(1, 1, 0).values, config.head_dim, 0,
                     value.data());
  EXPECT_TRUE(
      std::ranges::equal(value, std::span(sequence.v).last(config.head_dim)));
  EXPECT_GE(runner.cache().Block(1, 0, 0).keys,
            runner.cache().Block(0, 1, 0).values +
                kB / kernels::kKvTilePositions *
                    kernels::KvTileBytes(kernels::KvType::kF32, 32));
}

}  // namespace
}  // namespace muster::runtime
