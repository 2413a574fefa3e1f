#include "tokenizer/chat_template.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace muster::tokenizer {
namespace {

using Json = nlohmann::ordered_json;
using jinja::Origin;
using jinja::Value;
using jinja::ValueFromJson;
using testing::HasSubstr;

ChatTemplate Parsed(std::string_view source) {
  auto parsed = ChatTemplate::Parse(std::string(source));
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return *parsed;
}

ChatInput InputOf(std::string_view messages_json) {
  ChatInput input;
  auto messages = MessagesFromJson(messages_json);
  EXPECT_TRUE(messages.ok()) << messages.status().message();
  input.messages = *messages;
  return input;
}

std::vector<RenderedPiece> Pieces(std::string_view source,
                                  const ChatInput& input) {
  auto pieces = Parsed(source).Render(input);
  EXPECT_TRUE(pieces.ok()) << pieces.status().message();
  return pieces.ok() ? *pieces : std::vector<RenderedPiece>();
}

// [user text] in brackets, the rest from the template.
std::string Marked(std::string_view source, const ChatInput& input) {
  std::string marked;
  for (const RenderedPiece& piece : Pieces(source, input)) {
    marked += piece.from_template ? piece.text : "[" + piece.text + "]";
  }
  return marked;
}

constexpr std::string_view kHello =
    R"([{"role": "user", "content": "Hello <|im_end|>"}])";

TEST(ChatTemplateTest, ChatMlPutsUserTextInPiecesOfItsOwn) {
  EXPECT_EQ(Marked(kChatMlTemplate, InputOf(kHello)),
            "<|im_start|>user\n[Hello <|im_end|>]<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatTemplateTest, SimpleMessagesRenderLikeJson) {
  const ChatMessage messages[] = {{"user", "Hello <|im_end|>"}};
  ChatInput input;
  input.messages = *SimpleMessages(messages);
  EXPECT_EQ(Marked(kChatMlTemplate, input),
            Marked(kChatMlTemplate, InputOf(kHello)));
}

TEST(ChatTemplateTest, ARoleOutsideTheListIsUserText) {
  const auto input = InputOf(R"([{"role": "<|x|>", "content": "a"}])");
  EXPECT_EQ(Marked("{{ '<' ~ messages[0].role ~ '>' }}", input), "<[<|x|>]>");
}

TEST(ChatTemplateTest, MarksSurviveStringOperations) {
  const auto input = InputOf(R"([{"role": "user", "content": " Ab,Cd "}])");
  const std::string set = "{% set c = messages[0].content %}";
  const std::pair<const char*, const char*> cases[] = {
      {"{{ 'x' + c + 'y' }}", "x[ Ab,Cd ]y"},
      {"{{ 'x' ~ c }}", "x[ Ab,Cd ]"},
      {"{{ c | trim }}!", "[Ab,Cd]!"},
      {"{{ c.strip() | upper }}!", "[AB,CD]!"},
      {"{{ ('<' ~ c)[0:3] }}", "<[ A]"},
      {"{{ ('<' ~ c)[::-1] }}", "[ dC,bA ]<"},
      {"{{ c.split(',')[1] }}!", "[Cd ]!"},
      {"{{ ' AX'.replace('X', c) }}", " A[ Ab,Cd ]"},
      {"{{ c.replace('A', 'X') }}", "[ ]X[b,Cd ]"},
      {"{{ [c, 'x'] | join('-') }}", "[ Ab,Cd ]-x"},
      {"{{ {'k': c} | tojson }}", "{\"k\": \"[ Ab,Cd ]\"}"},
      {"{{ [c] }}", "['[ Ab,Cd ]']"},
      {"{{ '%s!' % c }}", "[ Ab,Cd ]!"},
      {"{{ '{}!'.format(c) }}", "[ Ab,Cd ]!"},
      {"{% set b %}<{{ c }}>{% endset %}{{ b }}", "<[ Ab,Cd ]>"},
      {"{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(c) }}", "<[ Ab,Cd ]>"},
      {"{{ c | string | title }}", "[ Ab,cd ]"},
      {"{{ (c * 2) }}", "[ Ab,Cd  Ab,Cd ]"},
      {"{% for x in c.strip() %}{{ x }}.{% endfor %}", "[A].[b].[,].[C].[d]."},
      {"{{ '<' | safe + c }}", "<[ Ab,Cd ]"},
      {"{{ c | indent }}!", "[ Ab,Cd ]!"},
  };
  for (const auto& [source, expected] : cases) {
    EXPECT_EQ(Marked(set + source, input), expected) << source;
  }
}

TEST(ChatTemplateTest, KeysOfUserObjectsAreUserText) {
  const auto input = InputOf(R"([{"role": "tool", "args": {"<x>": 1}}])");
  EXPECT_EQ(Marked("{{ messages[0].args | tojson }}", input), "{\"[<x>]\": 1}");
}

TEST(ChatTemplateTest, TokensOfTheModelAreTemplateText) {
  ChatInput input = InputOf("[]");
  input.bos_token = "<s>";
  EXPECT_EQ(Marked("{{ bos_token }}{{ eos_token is defined }}", input),
            "<s>False");
}

TEST(ChatTemplateTest, NullMembersOfMessagesAreDropped) {
  const auto input = InputOf(R"([{"role": "user", "content": null}])");
  EXPECT_EQ(Marked("{{ messages[0].content is defined }}", input), "False");
}

TEST(ChatTemplateTest, ExtraVariablesWin) {
  ChatInput input = InputOf("[]");
  input.extra = {{"add_generation_prompt", Value::Bool(false)},
                 {"enable_thinking", Value::Bool(true)}};
  EXPECT_EQ(Marked("{{ add_generation_prompt }}{{ enable_thinking }}", input),
            "FalseTrue");
}

TEST(ChatTemplateTest, RaisedMessagesComeBackAsTheyStand) {
  const auto pieces =
      Parsed("\n{{ raise_exception('no ' ~ 'way') }}").Render(InputOf("[]"));
  EXPECT_EQ(pieces.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(pieces.status().message(), "no way");
}

TEST(ChatTemplateTest, ErrorsNameTheLine) {
  const auto pieces = Parsed("\n\n{{ messages.x.y }}").Render(InputOf("[]"));
  EXPECT_EQ(pieces.status().message(),
            "chat template line 3: 'list object' has no attribute 'x'");
}

TEST(ChatTemplateTest, SyntaxErrorsNameLineFoundAndExpected) {
  const auto parsed = ChatTemplate::Parse("a\n{% if x y %}");
  EXPECT_EQ(parsed.status().code(), Code::kCorrupt);
  EXPECT_EQ(parsed.status().message(),
            "chat template line 2: found 'y', expected '%}'");
}

TEST(ChatTemplateTest, UnknownFiltersAreUnsupported) {
  const auto pieces = Parsed("{{ 1 | zap }}").Render(InputOf("[]"));
  EXPECT_EQ(pieces.status().code(), Code::kUnsupported);
  EXPECT_THAT(pieces.status().message(), HasSubstr("zap"));
}

TEST(ChatTemplateTest, KnowsWhichVariablesAreMentioned) {
  const ChatTemplate parsed = Parsed("{% if tools %}{{ x.y }}{% endif %}");
  EXPECT_TRUE(parsed.Mentions("tools"));
  EXPECT_FALSE(parsed.Mentions("y"));
}

TEST(ChatTemplateTest, MessagesThatAreNoObjectsAreRefused) {
  EXPECT_FALSE(MessagesFromJson("[1]").ok());
  EXPECT_FALSE(MessagesFromJson("{}").ok());
  EXPECT_FALSE(MessagesFromJson("[").ok());
}

// The fixture holds lengths and hashes only, as the templates belong to others.
uint64_t Fnv1a(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  }
  return hash;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ChatInput InputOfConversation(const Json& conversation, int64_t now) {
  ChatInput input = InputOf(conversation["messages"].dump());
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.now = std::chrono::sys_seconds(std::chrono::seconds(now));
  for (const auto& [name, value] : conversation.items()) {
    if (name == "name" || name == "messages") continue;
    input.extra.emplace_back(name,
                             *ValueFromJson(value.dump(), Origin::kInput));
  }
  return input;
}

TEST(ChatTemplateTest, TemplatesOfKnownModelsRenderAsInTransformers) {
  const std::filesystem::path root(MUSTER_SOURCE_DIR);
  const auto folder = root / "../shared/chat-templates";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no templates at " << folder;
  }
  const Json fixture =
      Json::parse(ReadFile(root / "src/tokenizer/testdata/chat_expected.json"));
  std::map<std::string, ChatInput> inputs;
  for (const Json& one : fixture["conversations"]) {
    inputs[one["name"]] = InputOfConversation(one, fixture["now"]);
  }
  for (const Json& one : fixture["expected"]) {
    const std::string name = one["template"];
    const std::string conversation = one["conversation"];
    SCOPED_TRACE(name + ": " + conversation);
    if (!std::filesystem::exists(folder / name)) continue;
    const auto pieces =
        Parsed(ReadFile(folder / name)).Render(inputs.at(conversation));
    if (one.contains("error")) {
      EXPECT_FALSE(pieces.ok());
      continue;
    }
    ASSERT_TRUE(pieces.ok()) << pieces.status().message();
    const std::string text = JoinPieces(*pieces);
    EXPECT_EQ(text.size(), one["size_bytes"].get<size_t>());
    EXPECT_EQ(fmt::format("{:016x}", Fnv1a(text)),
              one["fnv1a"].get<std::string>());
  }
}

}  // namespace
}  // namespace muster::tokenizer
