#include "tokenizer/chat_template.h"

#include <algorithm>
#include <array>

#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/parser.h"

namespace muster::tokenizer {
namespace {

using jinja::Dict;
using jinja::Kind;
using jinja::Value;

// Names of roles are the template's own words even when a user sends them:
// they are a closed list, and templates build control tokens around them.
constexpr std::array<std::string_view, 6> kRoles = {
    "system", "developer", "user", "assistant", "tool", "function"};

// The names under which reasoning is passed, the first being the usual one.
constexpr std::array<std::string_view, 3> kReasoningNames = {
    "reasoning_content", "thinking", "reasoning"};

Value TrustRole(const Value& role) {
  if (!role.IsString()) return role;
  const std::string& name = role.text().bytes();
  const bool known =
      std::find(kRoles.begin(), kRoles.end(), name) != kRoles.end();
  return known ? Value::String(name) : role;
}

const Value* FindReasoning(const Dict& message) {
  for (const std::string_view name : kReasoningNames) {
    const Value* value = message.Find(name);
    if (value != nullptr && !value->IsNone()) return value;
  }
  return nullptr;
}

Result<Value> NormalizeMessage(const Value& message) {
  if (!message.IsDict()) {
    return InvalidArgument("each message must be an object");
  }
  Dict normalized;
  const Value* reasoning = FindReasoning(message.dict());
  if (reasoning != nullptr) normalized.Set("thinking", *reasoning);
  for (const auto& [key, value] : message.dict().entries()) {
    if (value.IsNone()) continue;
    const bool is_role = key.IsString() && key.text().view() == "role";
    RETURN_IF_ERROR(normalized.Set(key, is_role ? TrustRole(value) : value));
  }
  if (reasoning != nullptr) normalized.Set("reasoning_content", *reasoning);
  return jinja::MakeDict(std::move(normalized));
}

}  // namespace

Result<Value> MessagesFromJson(std::string_view json) {
  ASSIGN_OR_RETURN(const Value given,
                   jinja::ValueFromJson(json, jinja::Origin::kInput));
  if (!given.Is(Kind::kList)) {
    return InvalidArgument("messages must be an array");
  }
  std::vector<Value> messages;
  for (const Value& message : given.list().items) {
    ASSIGN_OR_RETURN(Value normalized, NormalizeMessage(message));
    messages.push_back(std::move(normalized));
  }
  return jinja::MakeList(Kind::kList, std::move(messages));
}

Result<Value> SimpleMessages(std::span<const ChatMessage> messages) {
  const auto from_user = [](const std::string& text) {
    return Value::String(jinja::Text::FromInput(text));
  };
  std::vector<Value> values;
  for (const ChatMessage& message : messages) {
    Dict dict;
    dict.Set("role", TrustRole(from_user(message.role)));
    dict.Set("content", from_user(message.content));
    ASSIGN_OR_RETURN(Value value, jinja::MakeDict(std::move(dict)));
    values.push_back(std::move(value));
  }
  return jinja::MakeList(Kind::kList, std::move(values));
}

std::string JoinPieces(std::span<const RenderedPiece> pieces) {
  std::string joined;
  for (const RenderedPiece& piece : pieces) joined += piece.text;
  return joined;
}

Result<ChatTemplate> ChatTemplate::Parse(std::string source) {
  ASSIGN_OR_RETURN(jinja::Template parsed, jinja::ParseTemplate(source));
  return ChatTemplate(
      std::move(source),
      std::make_shared<const jinja::Template>(std::move(parsed)));
}

bool ChatTemplate::Mentions(std::string_view name) const {
  return parsed_->names.contains(name);
}

namespace {

jinja::Variables VariablesOf(const ChatInput& input) {
  jinja::Variables variables = {
      {"messages", input.messages},
      {"tools", input.tools},
      {"documents", Value::None()},
      {"add_generation_prompt", Value::Bool(input.add_generation_prompt)},
  };
  if (input.bos_token) {
    variables.emplace_back("bos_token", Value::String(*input.bos_token));
  }
  if (input.eos_token) {
    variables.emplace_back("eos_token", Value::String(*input.eos_token));
  }
  variables.insert(variables.end(), input.extra.begin(), input.extra.end());
  return variables;
}

std::vector<RenderedPiece> CutPieces(const jinja::Text& text) {
  std::vector<RenderedPiece> pieces;
  size_t pos = 0;
  const auto cut = [&](size_t end, bool from_template) {
    if (end == pos) return;
    pieces.push_back({text.bytes().substr(pos, end - pos), from_template});
    pos = end;
  };
  for (const jinja::ByteRange& range : text.input_ranges()) {
    cut(range.begin, true);
    cut(range.end, false);
  }
  cut(text.size(), true);
  return pieces;
}

}  // namespace

Result<std::vector<RenderedPiece>> ChatTemplate::Render(
    const ChatInput& input) const {
  const jinja::Variables variables = VariablesOf(input);
  ASSIGN_OR_RETURN(const jinja::Text text,
                   jinja::Render(*parsed_, variables, input.now));
  return CutPieces(text);
}

}  // namespace muster::tokenizer
