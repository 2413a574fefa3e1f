#include "tokenizer/jinja/escaping.h"

#include <fmt/format.h>

#include "tokenizer/jinja/convert.h"

namespace muster::jinja {
namespace {

void ConvertHtml(char32_t code, std::string_view bytes, std::string* out) {
  switch (code) {
    case '&':
      *out += "&amp;";
      break;
    case '<':
      *out += "&lt;";
      break;
    case '>':
      *out += "&gt;";
      break;
    case '\'':
      *out += "&#39;";
      break;
    case '"':
      *out += "&#34;";
      break;
    default:
      *out += bytes;
  }
}

void ConvertJson(char32_t code, std::string_view bytes, bool ensure_ascii,
                 std::string* out) {
  switch (code) {
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '\b':
      *out += "\\b";
      return;
    case '\f':
      *out += "\\f";
      return;
    default:
      break;
  }
  const auto unit = [&](uint32_t value) {
    *out += fmt::format("\\u{:04x}", value);
  };
  if (code < 0x20 || (ensure_ascii && code > 0x7E && code < 0x10000)) {
    unit(code);
  } else if (ensure_ascii && code >= 0x10000) {
    unit(0xD800 + ((code - 0x10000) >> 10));
    unit(0xDC00 + ((code - 0x10000) & 0x3FF));
  } else {
    *out += bytes;
  }
}

void ConvertRepr(char32_t code, std::string_view bytes, char quote,
                 std::string* out) {
  if (code == '\n') {
    *out += "\\n";
  } else if (code == '\r') {
    *out += "\\r";
  } else if (code == '\t') {
    *out += "\\t";
  } else if (code == '\\' || code == static_cast<char32_t>(quote)) {
    *out += '\\';
    *out += bytes;
  } else if (IsPrintable(code)) {
    *out += bytes;
  } else if (code < 0x100) {
    *out += fmt::format("\\x{:02x}", static_cast<uint32_t>(code));
  } else if (code < 0x10000) {
    *out += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
  } else {
    *out += fmt::format("\\U{:08x}", static_cast<uint32_t>(code));
  }
}

}  // namespace

Text EscapeHtml(const Text& text) {
  Text out;
  AppendConverted(text, ConvertHtml, &out);
  return out;
}

void AppendStringRepr(const Text& text, Text* out) {
  const bool has_single = text.view().find('\'') != std::string_view::npos;
  const bool has_double = text.view().find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  const std::string_view mark(&quote, 1);
  out->Append(mark);
  AppendConverted(
      text,
      [quote](char32_t code, std::string_view bytes, std::string* to) {
        ConvertRepr(code, bytes, quote, to);
      },
      out);
  out->Append(mark);
}

void AppendJsonString(const Text& text, bool ensure_ascii, Text* out) {
  out->Append("\"");
  AppendConverted(
      text,
      [ensure_ascii](char32_t code, std::string_view bytes, std::string* to) {
        ConvertJson(code, bytes, ensure_ascii, to);
      },
      out);
  out->Append("\"");
}

}  // namespace muster::jinja
