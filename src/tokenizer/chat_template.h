// Conversations to prompts, by the chat template that a model file carries.
// The template is hostile input: it is interpreted by jinja/ under limits and
// reaches nothing but the values given here.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tokenizer/jinja/value.h"

namespace muster::jinja {
struct Template;
}

namespace muster::tokenizer {

// For models that carry no template. Who falls back to it says so.
inline constexpr std::string_view kChatMlTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// What a template may read.
struct ChatInput {
  // A list of dicts: MessagesFromJson or SimpleMessages.
  jinja::Value messages;
  // A list of dicts from jinja::ValueFromJson(json, Origin::kInput), or none.
  jinja::Value tools = jinja::Value::None();
  bool add_generation_prompt = true;
  // nullopt: the model has no such token, and the template sees it undefined.
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  // Further variables, such as enable_thinking; they win over those above.
  std::vector<std::pair<std::string, jinja::Value>> extra;
  // What strftime_now formats, in UTC so that a prompt does not depend on the
  // machine's time zone.
  std::chrono::sys_seconds now{};
};

// A stretch of the prompt. Control tokens are to be read only from pieces that
// the template made; other text goes through the vocabulary as plain text.
// Pieces are cut between characters, also inside a word: the tokenizer joins
// the plain text of neighbours before it splits words.
struct RenderedPiece {
  std::string text;  // never empty
  bool from_template = true;
};

struct ChatMessage {
  std::string role;
  std::string content;
};

// Both mark all strings as given by the user, but for roles that are one of
// system, developer, user, assistant, tool, function. Like transformers, they
// drop members that are null and give reasoning under both names that
// templates read (reasoning_content, thinking).
Result<jinja::Value> MessagesFromJson(std::string_view json);
Result<jinja::Value> SimpleMessages(std::span<const ChatMessage> messages);

// The pieces as one string.
std::string JoinPieces(std::span<const RenderedPiece> pieces);

// Immutable, cheap to copy, thread-safe.
class ChatTemplate {
 public:
  // Fails with kCorrupt (line, found, expected) on a syntax error.
  static Result<ChatTemplate> Parse(std::string source);

  // Neighbouring pieces differ in from_template. Fails with kInvalidArgument
  // when the template raises an exception (its message, as it stands) or
  // misuses a value, kUnsupported for a filter that is not known,
  // kResourceExhausted past a limit.
  Result<std::vector<RenderedPiece>> Render(const ChatInput& input) const;

  const std::string& source() const { return source_; }
  // Whether the template mentions a variable, e.g. "tools".
  bool Mentions(std::string_view name) const;

 private:
  ChatTemplate(std::string source,
               std::shared_ptr<const jinja::Template> parsed)
      : source_(std::move(source)), parsed_(std::move(parsed)) {}

  std::string source_;
  std::shared_ptr<const jinja::Template> parsed_;
};

}  // namespace muster::tokenizer
