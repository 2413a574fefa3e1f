// The alphabet of byte-level vocabularies: each byte as one printable
// character, "Ġ" for a space. Source: bytes_to_unicode() of GPT-2.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::tokenizer {

// The bytes that `written` stands for; nullopt where a character is not of the
// alphabet.
std::optional<std::string> FromByteAlphabet(std::string_view written);

std::string ToByteAlphabet(std::string_view bytes);

}  // namespace muster::tokenizer
