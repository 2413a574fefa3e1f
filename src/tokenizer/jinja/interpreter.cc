#include "tokenizer/jinja/interpreter.h"

#include <fmt/format.h>

#include "tokenizer/jinja/builtins.h"

namespace muster::jinja {

Interpreter::Scoped::Scoped(Interpreter* interpreter, Scope* parent)
    : interpreter_(interpreter), outer_(interpreter->scope_) {
  interpreter->scopes_.emplace_back();
  interpreter->scope_ = &interpreter->scopes_.back();
  interpreter->scope_->parent = parent;
  // Too much is noticed by whatever is allocated next.
  static_cast<void>(interpreter->limits_.Allocate(sizeof(Scope)));
}

// Scopes end in the opposite order of their start. One that is kept keeps
// those around it as well, so that only the last one is ever taken away.
Interpreter::Scoped::~Scoped() {
  auto& scopes = interpreter_->scopes_;
  const bool is_last = &scopes.back() == interpreter_->scope_;
  if (is_last && !scopes.back().kept) scopes.pop_back();
  interpreter_->scope_ = outer_;
}

void Interpreter::KeepScope() {
  for (Scope* s = scope_; s != nullptr && !s->kept; s = s->parent) {
    s->kept = true;
  }
}

Interpreter::Interpreter(const Template& source, const Variables& variables,
                         std::chrono::sys_seconds now)
    : source_(source), now_(now) {
  scopes_.emplace_back();  // what the template is given
  Scope& given = scopes_.back();
  for (const NamedFunction& function : Functions()) {
    auto* object = NewObject<Function>();
    object->call = function.call;
    given.variables[function.name] = Value::FromObject(Kind::kFunction, object);
  }
  for (const auto& [name, value] : variables) given.variables[name] = value;
  scopes_.emplace_back();  // what it sets itself
  scope_ = &scopes_.back();
  scope_->parent = &given;
}

Result<Text> Interpreter::Run() {
  const auto flow = Run(source_.body);
  if (flow.ok()) return std::move(output_);
  const Status status = flow.status();
  if (raised_) return status;
  return Status(status.code(), fmt::format("chat template line {}: {}", line_,
                                           status.message()));
}

Status Interpreter::Raise(const Text& message) {
  raised_ = true;
  return InvalidArgument(message.bytes());
}

Status Interpreter::Enter(int line) {
  line_ = line;
  if (depth_ > kMaxEvalDepth) {
    return Limits::Exhausted("the template calls itself too deeply");
  }
  return limits_.Step();
}

Value Interpreter::NewNamespace(Dict attributes) {
  auto* space = NewObject<Namespace>();
  space->attributes = std::move(attributes);
  return Value::FromObject(Kind::kNamespace, space);
}

Value Interpreter::Lookup(std::string_view name) const {
  for (const Scope* s = scope_; s != nullptr; s = s->parent) {
    const auto found = s->variables.find(name);
    if (found != s->variables.end()) return found->second;
  }
  return Value::Undefined(fmt::format("'{}' is undefined", name));
}

Status Interpreter::Define(std::string_view name, Value value) {
  RETURN_IF_ERROR(limits_.AllocateItems(2));
  scope_->variables[name] = std::move(value);
  return Status();
}

Result<Text> Render(const Template& source, const Variables& variables,
                    std::chrono::sys_seconds now) {
  return Interpreter(source, variables, now).Run();
}

}  // namespace muster::jinja
