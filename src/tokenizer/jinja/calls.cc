// Calls of macros, functions, methods and recursive loops.
#include <fmt/format.h>

#include <optional>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operators.h"

namespace muster::jinja {

Result<Args> Interpreter::EvaluateArgs(const CallArgs& source) {
  Args args;
  for (const ExprPtr& arg : source.positional) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*arg));
    args.positional.push_back(std::move(value));
  }
  for (const auto& [name, arg] : source.named) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*arg));
    args.named.emplace_back(name, std::move(value));
  }
  if (source.star != nullptr) {
    ASSIGN_OR_RETURN(const Value star, Evaluate(*source.star));
    ASSIGN_OR_RETURN(const auto items, Iterate(limits_, star));
    args.positional.insert(args.positional.end(), items.begin(), items.end());
  }
  if (source.star_star != nullptr) {
    ASSIGN_OR_RETURN(const Value star, Evaluate(*source.star_star));
    if (!star.IsDict()) return InvalidArgument("'**' needs a dict");
    RETURN_IF_ERROR(limits_.AllocateItems(star.dict().size()));
    for (const auto& [key, value] : star.dict().entries()) {
      if (!key.IsString()) return InvalidArgument("'**' needs names as keys");
      args.named.emplace_back(key.text().bytes(), value);
    }
  }
  return args;
}

Result<Value> Interpreter::EvaluateCall(const Expr& expr, const Value* caller) {
  ASSIGN_OR_RETURN(const Value callee, Evaluate(*expr.items[0]));
  ASSIGN_OR_RETURN(Args args, EvaluateArgs(expr.args));
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  return CallValue(callee, args);
}

Result<Value> Interpreter::CallValue(const Value& callee, const Args& args) {
  RETURN_IF_ERROR(CheckDefined(callee));
  if (callee.Is(Kind::kMacro)) {
    return CallMacro(*static_cast<Macro*>(callee.object()), args);
  }
  if (callee.Is(Kind::kFunction)) {
    return static_cast<Function*>(callee.object())->call(*this, args);
  }
  if (callee.Is(Kind::kLoop)) {
    return CallLoop(static_cast<Loop*>(callee.object()), args);
  }
  if (callee.Is(Kind::kMethod)) {
    const Value& object = callee.list().items[0];
    const std::string& name = callee.list().label;
    if (!object.Is(Kind::kLoop)) return CallMethod(*this, object, name, args);
    return CallLoopMethod(static_cast<Loop*>(object.object()), name, args);
  }
  return InvalidArgument(
      fmt::format("'{}' object cannot be called", TypeName(callee)));
}

Result<Value> Interpreter::CallMacro(const Macro& macro, const Args& args) {
  const Scoped scoped(this, macro.scope);
  RETURN_IF_ERROR(BindParams(macro, args));
  Flow flow = Flow::kNormal;
  ASSIGN_OR_RETURN(Text text, Capture(macro.statement->body, &flow));
  return Value::String(std::move(text));
}

namespace {

// Takes the argument `name` out of `named`.
std::optional<Value> TakeNamed(
    std::vector<std::pair<std::string, Value>>* named, std::string_view name) {
  for (auto it = named->begin(); it != named->end(); ++it) {
    if (it->first != name) continue;
    Value value = std::move(it->second);
    named->erase(it);
    return value;
  }
  return std::nullopt;
}

}  // namespace

Status Interpreter::BindParams(const Macro& macro, const Args& args) {
  const Statement& statement = *macro.statement;
  Args rest{.positional = {}, .named = args.named};
  bool has_caller = false;
  for (size_t i = 0; i < statement.params.size(); ++i) {
    const Param& param = statement.params[i];
    has_caller = has_caller || param.name == "caller";
    std::optional<Value> value;
    if (i < args.positional.size()) {
      value = args.positional[i];
    } else {
      value = TakeNamed(&rest.named, param.name);
    }
    if (!value) {
      ASSIGN_OR_RETURN(value,
                       EvaluateOr(param.value, Value::Undefined(fmt::format(
                                                   "parameter '{}' was not "
                                                   "provided",
                                                   param.name))));
    }
    RETURN_IF_ERROR(Define(param.name, std::move(*value)));
  }
  if (statement.uses_caller && !has_caller) {
    const auto caller = TakeNamed(&rest.named, "caller");
    RETURN_IF_ERROR(Define(
        "caller", caller.value_or(Value::Undefined("no caller is defined"))));
  }
  for (size_t i = statement.params.size(); i < args.positional.size(); ++i) {
    rest.positional.push_back(args.positional[i]);
  }
  return BindRest(macro, std::move(rest));
}

Status Interpreter::BindRest(const Macro& macro, Args rest) {
  const Statement& statement = *macro.statement;
  if (!statement.uses_kwargs && !rest.named.empty()) {
    return InvalidArgument(fmt::format("macro '{}' takes no argument '{}'",
                                       macro.name(), rest.named[0].first));
  }
  if (!statement.uses_varargs && !rest.positional.empty()) {
    return InvalidArgument(fmt::format("macro '{}' takes at most {} arguments",
                                       macro.name(), statement.params.size()));
  }
  if (statement.uses_kwargs) {
    Dict dict;
    for (auto& [name, value] : rest.named) dict.Set(name, std::move(value));
    ASSIGN_OR_RETURN(Value kwargs, MakeDict(std::move(dict)));
    RETURN_IF_ERROR(Define("kwargs", std::move(kwargs)));
  }
  if (!statement.uses_varargs) return Status();
  ASSIGN_OR_RETURN(Value varargs,
                   MakeList(Kind::kTuple, std::move(rest.positional)));
  return Define("varargs", std::move(varargs));
}

Result<Value> Interpreter::CallLoop(Loop* loop, const Args& args) {
  if (!loop->statement->recursive) {
    return InvalidArgument("only a loop marked 'recursive' can be called");
  }
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"iterable"}, 1));
  Scope* const outer = std::exchange(scope_, loop->scope);
  auto text = RunNested(*loop, *bound[0]);
  scope_ = outer;
  if (!text.ok()) return text.status();
  return Value::String(std::move(text).value());
}

Result<Text> Interpreter::RunNested(const Loop& loop, const Value& iterable) {
  ASSIGN_OR_RETURN(Loop* const inner,
                   NewLoop(*loop.statement, loop.scope, iterable));
  inner->depth = loop.depth + 1;
  Text captured;
  Text* const outer = std::exchange(out_, &captured);
  const auto flow = RunLoop(inner);
  out_ = outer;
  if (!flow.ok()) return flow.status();
  return captured;
}

Result<Value> Interpreter::CallLoopMethod(Loop* loop, std::string_view name,
                                          const Args& args) {
  if (name == "cycle") {
    if (args.positional.empty()) {
      return InvalidArgument("loop.cycle needs arguments");
    }
    return args.positional[loop->index % args.positional.size()];
  }
  ASSIGN_OR_RETURN(Value value, MakeList(Kind::kTuple, args.positional));
  ASSIGN_OR_RETURN(const bool same, Equals(limits_, value, loop->last_changed));
  loop->last_changed = std::move(value);
  return Value::Bool(!same);
}

Result<Value> Interpreter::CallFilter(std::string_view name, const Value& value,
                                      const Args& args) {
  const Nesting nesting(&depth_);
  RETURN_IF_ERROR(Enter(line_));
  const Filter* filter = FindFilter(name);
  if (filter == nullptr) {
    return Unsupported(fmt::format("no filter named '{}'", name));
  }
  return filter->call(*this, value, args);
}

Result<bool> Interpreter::CallTest(std::string_view name, const Value& value,
                                   const Args& args) {
  RETURN_IF_ERROR(limits_.Step());
  const Test* test = FindTest(name);
  if (test == nullptr) {
    return Unsupported(fmt::format("no test named '{}'", name));
  }
  return test->call(*this, value, args);
}

}  // namespace muster::jinja
