// On the demo model. What a sequence answers is compared to an Engine that runs
// it alone.
#include "runtime/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "formats/model_files.h"
#include "runtime/engine.h"

namespace muster::runtime {
namespace {

using ::testing::HasSubstr;
using Tokens = std::vector<int32_t>;

std::shared_ptr<const LoadedModel> DemoModel(const EngineOptions& options) {
  const auto files = formats::OpenModelFiles(std::string(MUSTER_SOURCE_DIR) +
                                             "/models/demo/demo-moe-q8_0.gguf");
  EXPECT_TRUE(files.ok()) << files.status().message();
  ThreadPool pool(2);
  auto model = LoadModel(*files, options, pool, nullptr);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

std::shared_ptr<const LoadedModel> DemoModel() {
  static const auto& model =
      *new std::shared_ptr<const LoadedModel>(DemoModel({}));
  return model;
}

// Any tokens, the same for the same seed.
Tokens MakeTokens(size_t size, uint32_t seed) {
  Tokens tokens;
  for (size_t i = 0; i < size; ++i) {
    seed = seed * 1664525 + 1013904223;  // Numerical Recipes' generator
    tokens.push_back(static_cast<int32_t>((seed >> 8) % 8192));
  }
  return tokens;
}

Tokens Join(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

SequenceRequest Ask(Tokens prompt, size_t max_tokens, uint64_t seed = 0) {
  SequenceRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = seed == 0 ? 0.0f : 0.9f;
  request.sampling.seed = seed;
  return request;
}

// Hears and keeps everything.
struct Ear : SequenceListener {
  void OnPromptChances(size_t position, const TokenChances& c) override {
    EXPECT_EQ(position, prompt_chances.size() + 1);
    EXPECT_TRUE(tokens.empty());
    prompt_chances.push_back(c);
  }
  bool OnToken(int32_t token, const TokenChances* c) override {
    EXPECT_FALSE(finish.has_value());
    tokens.push_back(token);
    if (c != nullptr) chances.push_back(*c);
    return tokens.size() != stop_after;
  }
  void OnFinish(const Finish& f) override {
    EXPECT_FALSE(finish.has_value());
    finish = f;
  }
  FinishReason reason() const { return finish.value().reason; }

  size_t stop_after = 0;  // 0: never
  Tokens tokens;
  std::vector<TokenChances> chances;
  std::vector<TokenChances> prompt_chances;
  std::optional<Finish> finish;
};

// What the request is answered with by an engine alone.
Tokens Alone(const SequenceRequest& request) {
  auto engine =
      Engine::Create(DemoModel(), {.num_threads = 1, .context_length = 2048});
  Sampler sampler(request.sampling);
  for (const int32_t token : request.prompt) sampler.Accept(token);
  Tokens answer;
  std::span<float> logits = *(*engine)->Append(request.prompt);
  while (true) {
    answer.push_back(sampler.Sample(logits));
    sampler.Accept(answer.back());
    if (answer.size() == request.max_tokens) return answer;
    logits = *(*engine)->Append({&answer.back(), 1});
  }
}

class SchedulerTest : public ::testing::Test {
 protected:
  void Make(SchedulerOptions options = {}) {
    options.engine.num_threads = 2;
    if (options.engine.logit_rows == 1) options.engine.logit_rows = 64;
    auto made = Scheduler::Create(DemoModel(), options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    scheduler_ = std::move(made).value();
  }
  SequenceId Submit(SequenceRequest request, SequenceListener* listener) {
    const auto id = scheduler_->Submit(std::move(request), listener);
    EXPECT_TRUE(id.ok()) << id.status().message();
    return *id;
  }
  void RunToEnd() {
    for (int steps = 0; !scheduler_->idle(); ++steps) {
      ASSERT_LT(steps, 5000);
      scheduler_->Step();
    }
  }
  // All pages but those of cached prefixes are free.
  void ExpectNoPageInUse() {
    const SchedulerStats stats = scheduler_->stats();
    EXPECT_EQ(stats.kv_pages_in_use, stats.kv_pages_cached);
    EXPECT_EQ(stats.running + stats.waiting, 0u);
  }

  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, OneSequenceIsAnsweredAsByAnEngine) {
  Make();
  const SequenceRequest request = Ask(MakeTokens(20, 1), 24);
  Ear ear;
  Submit(request, &ear);
  RunToEnd();
  EXPECT_EQ(ear.tokens, Alone(request));
  EXPECT_EQ(ear.reason(), FinishReason::kLength);
  EXPECT_EQ(ear.finish->usage.prompt_tokens, 20u);
  EXPECT_EQ(ear.finish->usage.generated_tokens, 24u);
  ExpectNoPageInUse();
}

TEST_F(SchedulerTest, AnswersDoNotDependOnTheCompany) {
  Make({.engine = {.chunk_tokens = 64}, .prompt_tokens_beside_answers = 24});
  std::vector<SequenceRequest> requests;
  std::vector<Ear> ears(9);
  for (uint32_t i = 0; i < ears.size(); ++i) {
    requests.push_back(
        Ask(MakeTokens(1 + 37 * i % 330, i + 1), 5 + 7 * i % 30, i % 3));
  }
  // They come while others are under way.
  for (size_t i = 0; i < ears.size(); ++i) {
    Submit(requests[i], &ears[i]);
    for (size_t steps = 0; steps < i % 4; ++steps) scheduler_->Step();
  }
  RunToEnd();
  for (size_t i = 0; i < ears.size(); ++i) {
    EXPECT_EQ(ears[i].tokens, Alone(requests[i])) << i;
  }
  ExpectNoPageInUse();
}

TEST_F(SchedulerTest, CachedPrefixesChangeNothingAndAreTold) {
  Make();
  const Tokens common = MakeTokens(300, 7);
  Ear first, second, third;
  Submit(Ask(Join(common, {1, 2, 3}), 4), &first);
  RunToEnd();
  EXPECT_EQ(first.finish->usage.cached_tokens, 0u);
  const SequenceRequest request = Ask(Join(common, {9, 8, 7, 6}), 12);
  Submit(request, &second);
  RunToEnd();
  EXPECT_EQ(second.finish->usage.cached_tokens, 288u);
  EXPECT_EQ(second.tokens, Alone(request));
  SequenceRequest without = request;
  without.may_use_cached_prefix = false;
  Submit(without, &third);
  RunToEnd();
  EXPECT_EQ(third.finish->usage.cached_tokens, 0u);
  EXPECT_EQ(third.tokens, second.tokens);
  EXPECT_EQ(scheduler_->stats().cached_tokens, 288u);
}

// A conversation: the next prompt begins with the last one and its answer.
TEST_F(SchedulerTest, AnswersAreCachedToo) {
  Make();
  Ear first, second;
  const Tokens prompt = MakeTokens(10, 3);
  Submit(Ask(prompt, 60), &first);
  RunToEnd();
  ASSERT_EQ(first.tokens.size(), 60u);
  const SequenceRequest request = Ask(Join(prompt, first.tokens), 3);
  Submit(request, &second);
  RunToEnd();
  EXPECT_EQ(second.finish->usage.cached_tokens, 64u);
  EXPECT_EQ(second.tokens, Alone(request));
}

TEST_F(SchedulerTest, EqualPromptsAreComputedOnce) {
  Make();
  const Tokens prompt = MakeTokens(400, 5);
  std::vector<Ear> ears(4);
  for (size_t i = 0; i < ears.size(); ++i) {
    Submit(Ask(prompt, 5, i + 1), &ears[i]);
  }
  RunToEnd();
  for (size_t i = 0; i < ears.size(); ++i) {
    EXPECT_EQ(ears[i].finish->usage.cached_tokens, i == 0 ? 0u : 384u);
    EXPECT_EQ(ears[i].tokens, Alone(Ask(prompt, 5, i + 1)));
  }
  EXPECT_LT(scheduler_->stats().step_tokens, 500u);
}

// Room for one context: two that grow beyond half of it take turns.
TEST_F(SchedulerTest, WhoGivesWayGoesOnWhereItWas) {
  Make({.engine = {.context_length = 768, .kv_positions = 768}});
  const SequenceRequest a = Ask(MakeTokens(240, 1), 200, 5);
  const SequenceRequest b = Ask(MakeTokens(250, 2), 200, 6);
  Ear ear_a, ear_b;
  Submit(a, &ear_a);
  Submit(b, &ear_b);
  RunToEnd();
  EXPECT_GT(scheduler_->stats().preemptions, 0u);
  EXPECT_EQ(ear_a.finish->usage.preemptions, 0u) << "the older one stays";
  EXPECT_GT(ear_b.finish->usage.preemptions, 0u);
  EXPECT_EQ(ear_a.tokens, Alone(a));
  EXPECT_EQ(ear_b.tokens, Alone(b));
  ExpectNoPageInUse();
}

TEST_F(SchedulerTest, CachedPrefixesMakeRoomForSequences) {
  Make({.engine = {.context_length = 512, .kv_positions = 512}});
  for (uint32_t i = 0; i < 5; ++i) {
    Ear ear;
    const SequenceRequest request = Ask(MakeTokens(300, i + 1), 3);
    Submit(request, &ear);
    RunToEnd();
    EXPECT_EQ(ear.tokens, Alone(request));
  }
  EXPECT_EQ(scheduler_->stats().preemptions, 0u);
}

TEST_F(SchedulerTest, AHigherPriorityGoesFirst) {
  Make({.max_running = 1});
  Ear low, high;
  SequenceRequest request = Ask(MakeTokens(5, 1), 3);
  Submit(request, &low);
  request.priority = 1;
  Submit(request, &high);
  while (!high.finish) scheduler_->Step();
  EXPECT_FALSE(low.finish.has_value());
  RunToEnd();
  EXPECT_EQ(low.tokens, high.tokens);
}

TEST_F(SchedulerTest, AHigherPriorityTakesThePlaceOfALowerOne) {
  Make({.max_running = 1});
  Ear low, high;
  const SequenceRequest patient = Ask(MakeTokens(50, 1), 20);
  Submit(patient, &low);
  for (int i = 0; i < 5; ++i) scheduler_->Step();
  SequenceRequest urgent = Ask(MakeTokens(5, 2), 3);
  urgent.priority = 1;
  Submit(urgent, &high);
  while (!high.finish) scheduler_->Step();
  EXPECT_FALSE(low.finish.has_value());
  RunToEnd();
  EXPECT_EQ(low.finish->usage.preemptions, 1u);
  EXPECT_EQ(low.tokens, Alone(patient));
}

// One client's many requests do not hold up another's only one.
TEST_F(SchedulerTest, ClientsTakeTurns) {
  Make({.max_running = 1});
  std::vector<Ear> many(4);
  for (uint32_t i = 0; i < many.size(); ++i) {
    SequenceRequest request = Ask(MakeTokens(30, i + 1), 5);
    request.client = "many";
    Submit(request, &many[i]);
  }
  scheduler_->Step();
  Ear one;
  SequenceRequest request = Ask(MakeTokens(30, 9), 5);
  request.client = "one";
  Submit(request, &one);
  while (!one.finish) scheduler_->Step();
  EXPECT_FALSE(many[2].finish.has_value());
  RunToEnd();
}

TEST_F(SchedulerTest, StopTokensEndASequenceAndAreNotTold) {
  Make();
  SequenceRequest request = Ask(MakeTokens(20, 1), 24);
  const Tokens answer = Alone(request);
  const auto first = std::ranges::find(answer, answer[6]);
  request.stop_tokens = {-1, answer[6]};
  Ear ear;
  Submit(request, &ear);
  RunToEnd();
  EXPECT_EQ(ear.tokens, Tokens(answer.begin(), first));
  EXPECT_EQ(ear.reason(), FinishReason::kStop);
}

TEST_F(SchedulerTest, AListenerMayStopIt) {
  Make();
  Ear ear;
  ear.stop_after = 3;
  Submit(Ask(MakeTokens(20, 1), 24), &ear);
  RunToEnd();
  EXPECT_EQ(ear.tokens.size(), 3u);
  EXPECT_EQ(ear.reason(), FinishReason::kStop);
}

TEST_F(SchedulerTest, TheContextEndsASequence) {
  Make({.engine = {.context_length = 40}});
  Ear ear;
  Submit(Ask(MakeTokens(30, 1), 100), &ear);
  RunToEnd();
  EXPECT_EQ(ear.tokens.size(), 11u) << "the last one needs no place";
  EXPECT_EQ(ear.reason(), FinishReason::kLength);
}

TEST_F(SchedulerTest, CancellingTouchesNoOther) {
  Make({.engine = {.chunk_tokens = 64}, .max_running = 2});
  const SequenceRequest kept = Ask(MakeTokens(30, 1), 20);
  Ear a, in_prompt, waiting, answering;
  Submit(kept, &a);
  const SequenceId prompt_id = Submit(Ask(MakeTokens(300, 2), 5), &in_prompt);
  const SequenceId waiting_id = Submit(Ask(MakeTokens(30, 3), 5), &waiting);
  scheduler_->Step();
  scheduler_->Cancel(prompt_id);
  EXPECT_EQ(in_prompt.reason(), FinishReason::kCancelled);
  scheduler_->Cancel(waiting_id);
  EXPECT_EQ(waiting.reason(), FinishReason::kCancelled);
  const SequenceId answering_id =
      Submit(Ask(MakeTokens(30, 4), 50), &answering);
  while (answering.tokens.size() < 2) scheduler_->Step();
  scheduler_->Cancel(answering_id);
  EXPECT_EQ(answering.reason(), FinishReason::kCancelled);
  EXPECT_EQ(answering.finish->usage.generated_tokens, 2u);
  scheduler_->Cancel(answering_id);  // of no effect
  scheduler_->Cancel(12345);
  RunToEnd();
  EXPECT_EQ(a.tokens, Alone(kept));
  ExpectNoPageInUse();
}

TEST_F(SchedulerTest, ADeadlineEndsASequenceWhereverItIs) {
  Make({.max_running = 1});
  Ear running, waiting, kept;
  SequenceRequest late = Ask(MakeTokens(30, 1), 1000);
  late.deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  Submit(late, &running);
  late.deadline = std::chrono::steady_clock::now();
  Submit(late, &waiting);
  Submit(Ask(MakeTokens(30, 2), 3), &kept);
  RunToEnd();
  EXPECT_EQ(running.reason(), FinishReason::kDeadline);
  EXPECT_EQ(waiting.reason(), FinishReason::kDeadline);
  EXPECT_TRUE(waiting.tokens.empty());
  EXPECT_EQ(kept.reason(), FinishReason::kLength);
}

TEST_F(SchedulerTest, ChancesAreThoseOfTheRawLogits) {
  Make();
  SequenceRequest request = Ask(MakeTokens(70, 1), 4, 3);
  request.sampling.repetition_penalty = 1.5f;
  request.sampling.penalty_window = 1000;
  request.top_chances = 2;
  request.prompt_chances = 1;
  Ear ear;
  Submit(request, &ear);
  Ear other;
  Submit(Ask(MakeTokens(40, 2), 10), &other);
  RunToEnd();
  ASSERT_EQ(ear.prompt_chances.size(), 69u);
  ASSERT_EQ(ear.chances.size(), 4u);
  auto engine =
      Engine::Create(DemoModel(), {.num_threads = 1, .context_length = 128});
  const Tokens all = Join(request.prompt, ear.tokens);
  const std::span<float> logits = *(*engine)->AppendForAllLogits(all);
  for (size_t p = 0; p + 1 < all.size(); ++p) {
    const bool in_prompt = p < 69;
    const TokenChances expected = ChancesOf(logits.subspan(p * 8192, 8192),
                                            all[p + 1], in_prompt ? 1 : 2);
    const TokenChances& got =
        in_prompt ? ear.prompt_chances[p] : ear.chances[p - 69];
    EXPECT_EQ(got.chosen.token, all[p + 1]);
    EXPECT_EQ(got.chosen.log_probability, expected.chosen.log_probability);
    ASSERT_EQ(got.top.size(), expected.top.size());
    for (size_t i = 0; i < got.top.size(); ++i) {
      EXPECT_EQ(got.top[i].token, expected.top[i].token);
      EXPECT_EQ(got.top[i].log_probability, expected.top[i].log_probability);
    }
  }
}

TEST_F(SchedulerTest, WithoutATokenToGenerateThePromptIsComputed) {
  Make();
  SequenceRequest request = Ask(MakeTokens(50, 1), 0);
  request.prompt_chances = 0;
  Ear ear;
  Submit(request, &ear);
  RunToEnd();
  EXPECT_EQ(ear.prompt_chances.size(), 49u);
  EXPECT_TRUE(ear.tokens.empty());
  EXPECT_EQ(ear.reason(), FinishReason::kLength);
}

TEST_F(SchedulerTest, WhatCannotRunIsRefusedAtOnce) {
  Make({.engine = {.context_length = 64}, .max_waiting = 2});
  Ear ear;
  const auto refused = [&](SequenceRequest request) {
    return scheduler_->Submit(std::move(request), &ear).status();
  };
  EXPECT_THAT(refused(Ask({}, 1)).message(), HasSubstr("empty"));
  EXPECT_THAT(refused(Ask({1, 8192}, 1)).message(), HasSubstr("8192"));
  EXPECT_THAT(refused(Ask(MakeTokens(65, 1), 1)).message(),
              HasSubstr("context of 64"));
  SequenceRequest hot = Ask({1}, 1);
  hot.sampling.temperature = -1;
  EXPECT_EQ(refused(hot).code(), Code::kInvalidArgument);
  Submit(Ask({1}, 1), &ear);
  Ear second;
  Submit(Ask({1}, 1), &second);
  EXPECT_EQ(refused(Ask({1}, 1)).code(), Code::kResourceExhausted);
  EXPECT_FALSE(ear.finish.has_value());
  RunToEnd();
}

TEST_F(SchedulerTest, OptionsThatDoNotFitAreRefused) {
  const auto status = [](SchedulerOptions options) {
    return Scheduler::Create(DemoModel(), options).status();
  };
  EXPECT_EQ(status({.engine = {.logit_rows = 8}, .max_running = 9}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(status({.engine = {.chunk_tokens = 8, .logit_rows = 16},
                    .max_running = 9})
                .code(),
            Code::kInvalidArgument);
  EXPECT_EQ(status({.max_running = 0}).code(), Code::kInvalidArgument);
}

// CASES S01: only real tokens are counted, top_k for each in every MoE layer.
TEST_F(SchedulerTest, CountsAreTokensTimesTopK) {
  Make({.engine = {.chunk_tokens = 64}});
  std::vector<Ear> ears(3);
  for (uint32_t i = 0; i < ears.size(); ++i) {
    Submit(Ask(MakeTokens(100 * i + 3, i), 4), &ears[i]);
  }
  RunToEnd();
  const SchedulerStats stats = scheduler_->stats();
  EXPECT_EQ(stats.prompt_tokens, 309u);
  EXPECT_EQ(stats.generated_tokens, 12u);
  EXPECT_EQ(stats.step_tokens, 309u + 3 * 3);
  for (size_t layer = 0; layer < 8; ++layer) {
    EXPECT_EQ(scheduler_->routing().tokens(layer), stats.step_tokens);
  }
  const model::ParameterCounts& counts = scheduler_->model().parameters;
  EXPECT_EQ(stats.routed_parameters,
            stats.step_tokens * (counts.active - counts.always_on));
}

// Experts in tiers, with less and more memory while sequences run.
TEST_F(SchedulerTest, TheBudgetOfExpertsMayChangeWhileItRuns) {
  const EngineOptions options = {
      .num_threads = 2, .logit_rows = 64, .tiers = {.cache_bytes = 6 << 20}};
  const auto model = DemoModel(options);
  ASSERT_NE(model->tiers, nullptr);
  auto made = Scheduler::Create(model, {.engine = options});
  ASSERT_TRUE(made.ok()) << made.status().message();
  scheduler_ = std::move(made).value();
  const SequenceRequest a = Ask(MakeTokens(30, 1), 30);
  const SequenceRequest b = Ask(MakeTokens(20, 2), 30, 4);
  Ear ear_a, ear_b;
  Submit(a, &ear_a);
  Submit(b, &ear_b);
  for (int i = 0; i < 5; ++i) scheduler_->Step();
  const uint64_t floor = model->plan.demand.floor_bytes;
  ASSERT_TRUE(scheduler_->SetExpertBudget(floor).ok());
  for (int i = 0; i < 5; ++i) scheduler_->Step();
  ASSERT_TRUE(scheduler_->SetExpertBudget(12 << 20).ok());
  RunToEnd();
  EXPECT_EQ(ear_a.tokens, Alone(a));
  EXPECT_EQ(ear_b.tokens, Alone(b));
  EXPECT_FALSE(scheduler_->SetExpertBudget(1).ok());
}

TEST_F(SchedulerTest, WithoutTiersThereIsNoBudgetToChange) {
  Make();
  EXPECT_EQ(scheduler_->SetExpertBudget(1 << 20).code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace muster::runtime
