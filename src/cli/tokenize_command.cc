// muster tokenize: how a model cuts a text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/demo_model.h"
#include "cli/print_json.h"
#include "cli/remote_flags.h"
#include "cli/text_input.h"
#include "formats/model_files.h"
#include "tokenizer/tokenizer.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct TokenizeOptions {
  std::string model;
  TextInput text;
  std::vector<int32_t> decode;
  bool json = false;
  bool ids_only = false;
  bool special = false;
  bool no_bos = false;
};

void PrintTokens(const TokenizeOptions& options,
                 const tokenizer::Tokenizer& tokenizer,
                 const std::vector<int32_t>& ids) {
  if (options.json) {
    ordered_json pieces = ordered_json::array();
    for (const int32_t id : ids) {
      pieces.push_back(std::string(tokenizer.TokenBytes(id)));
    }
    PrintJson({{"count", ids.size()}, {"ids", ids}, {"pieces", pieces}});
  } else if (options.ids_only) {
    fmt::print("{}\n", fmt::join(ids, " "));
  } else {
    for (const int32_t id : ids) {
      const ordered_json piece = std::string(tokenizer.TokenBytes(id));
      fmt::print(
          "{:>7}  {}\n", id,
          piece.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
  }
}

Status Tokenize(const TokenizeOptions& options) {
  ASSIGN_OR_RETURN(const std::string path, ModelOrDemo(options.model));
  ASSIGN_OR_RETURN(const auto remote, OpenRemoteFor(path, {}));
  ASSIGN_OR_RETURN(const auto files, formats::OpenModelFiles(path));
  ASSIGN_OR_RETURN(const auto tokenizer, tokenizer::LoadTokenizer(files));
  for (const std::string& warning : tokenizer->warnings()) {
    fmt::print(stderr, "note: {}\n", warning);
  }
  if (!options.decode.empty()) {
    fmt::print("{}\n", tokenizer->Decode(options.decode));
    return {};
  }
  ASSIGN_OR_RETURN(const std::string text, ReadText(options.text));
  PrintTokens(options, *tokenizer,
              tokenizer->Encode(text, {.add_bos_eos = !options.no_bos,
                                       .parse_special = options.special}));
  return {};
}

}  // namespace

void AddTokenizeCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command =
      app.add_subcommand("tokenize", "Cut a text into a model's tokens");
  command->add_option("model", options->model,
                      "A .gguf file or a folder with tokenizer.json; none: the "
                      "demo model");
  AddTextFlags(*command, "to cut", options->text);
  command
      ->add_option("--decode", options->decode,
                   "Turn these ids into text instead")
      ->delimiter(',');
  command->add_flag("--ids", options->ids_only, "Print ids on one line");
  command->add_flag("--special", options->special,
                    "Read control tokens, such as <|im_start|>, in the text");
  command->add_flag("--no-bos", options->no_bos,
                    "Leave out the token that begins a text");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  muster tokenize model.gguf -p 'Hello world'\n"
      "  muster tokenize model.gguf --ids < novel.txt | wc -w\n"
      "  muster tokenize model.gguf --decode 17,301,5");
  command->callback([options, &outcome] {
    const Status status = Tokenize(*options);
    if (!status.ok()) outcome.exit_code = Fail(status);
  });
}

}  // namespace muster::cli
