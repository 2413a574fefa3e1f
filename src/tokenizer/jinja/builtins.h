// The tables of what a template can call by name, and help to read arguments.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/jinja/interpreter.h"

namespace muster::jinja {

struct Filter {
  std::string_view name;
  Result<Value> (*call)(Interpreter&, const Value&, const Args&);
};

struct Test {
  std::string_view name;
  Result<bool> (*call)(Interpreter&, const Value&, const Args&);
};

struct NamedFunction {
  std::string_view name;
  Function::Call call;
};

std::span<const Filter> TextFilters();       // filters_text.cc
std::span<const Filter> ListFilters();       // filters_list.cc
std::span<const Filter> SelectFilters();     // filters_select.cc
std::span<const Filter> NumberFilters();     // filters_number.cc
std::span<const Test> Tests();               // is_tests.cc
std::span<const NamedFunction> Functions();  // functions.cc

const Filter* FindFilter(std::string_view name);
const Test* FindTest(std::string_view name);

// Whether Python's type of `object` has a method `name` that a template may
// call, and whether it has one that is forbidden since it changes the object
// or leads into the interpreter of Python.
bool HasMethod(const Value& object, std::string_view name);
bool IsForbidden(const Value& object, std::string_view name);
Result<Value> CallMethod(Interpreter& interpreter, const Value& object,
                         std::string_view name, const Args& args);

using TextMethod = Result<Value> (*)(Interpreter&, const Text&, const Args&);
struct NamedTextMethod {
  std::string_view name;
  TextMethod call;
};
std::span<const NamedTextMethod> TextMakingMethods();  // methods_text.cc
std::span<const NamedTextMethod> TextSearchMethods();  // methods_search.cc
// nullptr: strings have no such method.
TextMethod FindTextMethod(std::string_view name);

// Arguments in the order of `names`; nullptr where one is not given. Fails on
// unknown names, too many arguments and fewer than `num_required`.
Result<std::vector<const Value*>> Bind(
    const Args& args, std::initializer_list<std::string_view> names,
    size_t num_required = 0);

// *value, or `otherwise` when there is none.
Result<int64_t> IntOr(const Value* value, int64_t otherwise);
bool BoolOr(const Value* value, bool otherwise);
// The string in *value. Fails when it is something else.
Result<Text> TextArg(const Value* value);

}  // namespace muster::jinja
