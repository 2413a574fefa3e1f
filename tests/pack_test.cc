// Packs of every model in tests/goldens against the models themselves.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experts/pack_source.h"
#include "experts/pack_writer.h"
#include "formats/model_files.h"
#include "runtime/engine.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path& Root() {
  static const fs::path root = fs::path(MUSTER_SOURCE_DIR) / "tests/goldens";
  return root;
}

// "qwen3_moe:hf" for each form of each model.
std::vector<std::string> AllForms() {
  std::vector<std::string> forms;
  for (const auto& entry : fs::directory_iterator(Root())) {
    std::ifstream in(entry.path() / "golden.json");
    if (!in) continue;
    const json golden = json::parse(in);
    for (const auto& file : golden.at("files")) {
      forms.push_back(entry.path().filename().string() + ":" +
                      file.get<std::string>());
    }
  }
  std::sort(forms.begin(), forms.end());
  return forms;
}

std::string TestName(const std::string& form) {
  std::string name = form;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

struct Outcome {
  std::vector<float> logits;
  uint64_t parameters = 0;
  uint64_t active = 0;
};

class GoldenPackTest : public ::testing::TestWithParam<std::string> {
 protected:
  GoldenPackTest()
      : pack_(fs::path(::testing::TempDir()) /
              ("muster_pack_" + TestName(GetParam()))) {
    const size_t colon = GetParam().find(':');
    source_ =
        Root() / GetParam().substr(0, colon) / GetParam().substr(colon + 1);
    std::ifstream in(Root() / GetParam().substr(0, colon) / "golden.json");
    tokens_ = json::parse(in)
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

  Outcome RunModel(const std::string& path) {
    Outcome run;
    const auto files = formats::OpenModelFiles(path);
    EXPECT_TRUE(files.ok()) << files.status().message();
    if (!files.ok()) return run;
    const auto engine = runtime::Engine::Load(
        *files, {.num_threads = 2, .kv_type = kernels::KvType::kF16}, nullptr);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    if (!engine.ok()) return run;
    const auto logits = (*engine)->AppendForAllLogits(tokens_);
    EXPECT_TRUE(logits.ok());
    if (logits.ok()) run.logits.assign(logits->begin(), logits->end());
    run.parameters = (*engine)->model().parameters.total;
    run.active = (*engine)->model().parameters.active;
    return run;
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

INSTANTIATE_TEST_SUITE_P(AllFiles, GoldenPackTest,
                         ::testing::ValuesIn(AllForms()),
                         [](const auto& param) {
                           return TestName(param.param);
                         });

}  // namespace
}  // namespace muster
