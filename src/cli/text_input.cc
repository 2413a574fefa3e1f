#include "cli/text_input.h"

#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "io/file.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 32;

}  // namespace

void AddTextFlags(CLI::App& command, const std::string& use, TextInput& input) {
  command.add_option("-p,--prompt", input.prompt, fmt::format("Text {}", use));
  command.add_option(
      "-f,--file", input.file,
      fmt::format("File with the text {}; -: standard input", use));
}

Result<std::string> ReadText(const TextInput& input) {
  if (input.prompt.has_value()) return *input.prompt;
  if (!input.file.empty() && input.file != "-") {
    return io::ReadTextFile(input.file, kMaxTextBytes);
  }
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

}  // namespace muster::cli
