// Texts in the notations of HTML, JSON and Python. What was given by a user
// stays marked; quotes and the like belong to the template.
#pragma once

#include "tokenizer/jinja/text.h"

namespace muster::jinja {

// &, <, >, ' and " as entities.
Text EscapeHtml(const Text& text);
// As repr() prints a string, quotes included.
void AppendStringRepr(const Text& text, Text* out);
// As json.dumps() writes a string, quotes included.
void AppendJsonString(const Text& text, bool ensure_ascii, Text* out);

}  // namespace muster::jinja
