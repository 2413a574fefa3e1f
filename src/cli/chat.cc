#include "cli/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/interrupt.h"

namespace muster::cli {
namespace {

using tokenizer::ChatMessage;

// One line of input; false at its end. Ctrl-C gives an empty line.
bool ReadLine(bool interactive, std::string& line) {
  if (interactive) fmt::print(stderr, "> ");
  std::fflush(stderr);
  line.clear();
  if (std::getline(std::cin, line)) return true;
  if (!InterruptGuard::Take()) return false;
  std::cin.clear();
  fmt::print(stderr, "\n(Ctrl-D ends)\n");
  return true;
}

// Control tokens are read from what the template wrote, never from what the
// user wrote (CASES K03).
Result<std::vector<int32_t>> EncodeConversation(
    const tokenizer::Tokenizer& tokenizer,
    const tokenizer::ChatTemplate& chat_template,
    std::span<const ChatMessage> messages) {
  tokenizer::ChatInput input;
  ASSIGN_OR_RETURN(input.messages, tokenizer::SimpleMessages(messages));
  input.now = std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
  if (tokenizer.bos() != tokenizer::kNoToken) {
    input.bos_token = std::string(tokenizer.TokenBytes(tokenizer.bos()));
  }
  if (tokenizer.eos() != tokenizer::kNoToken) {
    input.eos_token = std::string(tokenizer.TokenBytes(tokenizer.eos()));
  }
  ASSIGN_OR_RETURN(const auto rendered, chat_template.Render(input));
  std::vector<tokenizer::TextPiece> pieces;
  pieces.reserve(rendered.size());
  for (const auto& piece : rendered) {
    pieces.push_back({piece.text, piece.from_template});
  }
  return tokenizer.EncodePieces(pieces, true);
}

}  // namespace

Result<tokenizer::ChatTemplate> ChatTemplateOf(const formats::ModelFiles& files,
                                               bool quiet) {
  if (!files.chat_template_jinja.empty()) {
    return tokenizer::ChatTemplate::Parse(files.chat_template_jinja);
  }
  ASSIGN_OR_RETURN(auto found,
                   files.metadata.GetString("tokenizer.chat_template"));
  const auto config =
      nlohmann::json::parse(files.tokenizer_config_json, nullptr, false);
  if (!found && config.is_object()) {
    const auto it = config.find("chat_template");
    if (it != config.end() && it->is_string()) found = it->get<std::string>();
  }
  if (found) return tokenizer::ChatTemplate::Parse(*found);
  if (!quiet) {
    fmt::print(stderr,
               "note: the model has no chat template: ChatML is used\n");
  }
  return tokenizer::ChatTemplate::Parse(
      std::string(tokenizer::kChatMlTemplate));
}

Status Chat(runtime::Engine& engine, const tokenizer::Tokenizer& tokenizer,
            const tokenizer::ChatTemplate& chat_template,
            const ChatOptions& options) {
  const bool interactive = isatty(STDIN_FILENO) != 0 && !options.quiet;
  if (interactive) {
    fmt::print(stderr,
               "Type a message; Ctrl-C stops an answer, Ctrl-D ends.\n");
  }
  InterruptGuard guard;
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  std::vector<int32_t> in_engine;  // what the KV cache holds
  std::string line;
  while (ReadLine(interactive, line)) {
    if (line.empty()) continue;
    messages.push_back({"user", line});
    ASSIGN_OR_RETURN(const auto prompt,
                     EncodeConversation(tokenizer, chat_template, messages));
    // What the cache holds already need not run again; the last token must.
    size_t common = 0;
    while (common < in_engine.size() && common + 1 < prompt.size() &&
           in_engine[common] == prompt[common]) {
      ++common;
    }
    engine.Rewind(std::min(common, engine.position()));
    common = engine.position();
    const auto answer =
        Generate(engine, &tokenizer, std::span(prompt).subspan(common),
                 options.generation, [](const std::string& piece) {
                   fmt::print("{}", piece);
                   std::fflush(stdout);
                 });
    if (!answer.ok()) return answer.status();
    fmt::print("\n");
    messages.push_back({"assistant", answer->text});
    in_engine = prompt;
    in_engine.insert(in_engine.end(), answer->tokens.begin(),
                     answer->tokens.end());
    in_engine.resize(std::min(in_engine.size(), engine.position()));
    if (interactive) {
      fmt::print(stderr, "({} tokens, {:.1f}/s, {})\n", answer->tokens.size(),
                 static_cast<double>(answer->tokens.size()) /
                     std::max(1e-9, answer->speeds.generation_seconds),
                 answer->finish_reason);
    }
  }
  return {};
}

}  // namespace muster::cli
