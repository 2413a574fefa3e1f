// What has identity while a template is rendered. The Interpreter owns all of
// it until the rendering ends.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/value.h"

namespace muster::jinja {

// The variables of a loop round, a macro call or a block. Names point into the
// template.
struct Scope {
  Scope* parent = nullptr;
  bool kept = false;  // a macro may come back to it
  std::unordered_map<std::string_view, Value> variables;
};

struct Namespace : Object {
  Dict attributes;
};

// A macro, or the body of a call block.
struct Macro : Object {
  const Statement* statement = nullptr;
  Scope* scope = nullptr;  // where it was defined
  const std::string& name() const { return statement->name; }
};

struct Loop : Object {
  const Statement* statement = nullptr;
  Scope* scope = nullptr;  // around the loop
  std::vector<Value> items;
  size_t length = 0;  // also when `items` are gone, after the loop
  size_t index = 0;
  int64_t depth = 1;   // of a recursive loop
  Value last_changed;  // what changed() saw last, a tuple
};

// Positional and named arguments of a call, evaluated.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Interpreter;

// A global function.
struct Function : Object {
  using Call = Result<Value> (*)(Interpreter&, const Args&);
  Call call = nullptr;
};

}  // namespace muster::jinja
