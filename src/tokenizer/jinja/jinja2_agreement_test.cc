// Each snippet of testdata/jinja_cases.json gives what Jinja2 gives.
// The fixture is made by tools/oracles/chat_template_oracle.py.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/parser.h"

namespace muster::jinja {
namespace {

using Json = nlohmann::ordered_json;

Json ReadFixture() {
  std::ifstream file(std::string(MUSTER_SOURCE_DIR) +
                     "/src/tokenizer/testdata/jinja_cases.json");
  return Json::parse(file);
}

Variables VariablesOf(const Json& object) {
  Variables variables;
  for (const auto& [name, value] : object.items()) {
    auto converted = ValueFromJson(value.dump(), Origin::kInput);
    EXPECT_TRUE(converted.ok()) << converted.status().message();
    variables.emplace_back(name, *converted);
  }
  return variables;
}

Result<Text> RenderSource(const std::string& source,
                          const Variables& variables) {
  ASSIGN_OR_RETURN(const Template parsed, ParseTemplate(source));
  const std::chrono::sys_seconds now{std::chrono::seconds(1751981445)};
  return Render(parsed, variables, now);
}

TEST(Jinja2AgreementTest, SnippetsPrintWhatJinja2Prints) {
  const Json fixture = ReadFixture();
  const Variables variables = VariablesOf(fixture["variables"]);
  ASSERT_GT(fixture["cases"].size(), 300u);
  for (const Json& one : fixture["cases"]) {
    const std::string source = one["template"];
    SCOPED_TRACE(source);
    const auto text = RenderSource(source, variables);
    if (one.contains("error")) {
      EXPECT_FALSE(text.ok()) << "printed: " << text->bytes();
    } else if (!text.ok()) {
      ADD_FAILURE() << text.status().message();
    } else {
      EXPECT_EQ(text->bytes(), one["text"].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace muster::jinja
