#include <fmt/format.h>

#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/printing.h"

namespace muster::jinja {

Result<Interpreter::Flow> Interpreter::Run(const Body& body) {
  for (const Statement& statement : body) {
    ASSIGN_OR_RETURN(const Flow flow, Run(statement));
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Result<Interpreter::Flow> Interpreter::Run(const Statement& statement) {
  const Nesting nesting(&depth_);
  RETURN_IF_ERROR(Enter(statement.line));
  Status status;
  switch (statement.kind) {
    case StatementKind::kText:
      status = Write(statement.text.text());
      break;
    case StatementKind::kPrint:
      status = RunPrint(statement);
      break;
    case StatementKind::kIf:
      return RunIf(statement);
    case StatementKind::kFor:
      return RunFor(statement);
    case StatementKind::kSet:
      status = RunSet(statement);
      break;
    case StatementKind::kSetBlock:
      return RunSetBlock(statement);
    case StatementKind::kMacro:
      status = RunMacro(statement);
      break;
    case StatementKind::kCall:
      status = RunCallBlock(statement);
      break;
    case StatementKind::kFilterBlock:
      return RunFilterBlock(statement);
    case StatementKind::kWith:
      return RunWith(statement);
    case StatementKind::kGeneration: {
      const Scoped scoped(this, scope_);
      return Run(statement.body);
    }
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  if (!status.ok()) return status;
  return Flow::kNormal;
}

Status Interpreter::Write(const Text& text) {
  RETURN_IF_ERROR(limits_.Allocate(text.size()));
  if (out_->size() + text.size() > kMaxTextBytes) {
    return Limits::Exhausted("the template prints too much");
  }
  out_->Append(text);
  return Status();
}

Status Interpreter::RunPrint(const Statement& statement) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expr));
  if (value.IsString()) return Write(value.text());
  ASSIGN_OR_RETURN(const Text text, ToText(limits_, value));
  return Write(text);
}

Result<Interpreter::Flow> Interpreter::RunIf(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition != nullptr) {
      ASSIGN_OR_RETURN(const Value condition, Evaluate(*branch.condition));
      if (!Truthy(condition)) continue;
    }
    return Run(branch.body);
  }
  return Flow::kNormal;
}

Result<Loop*> Interpreter::NewLoop(const Statement& statement, Scope* scope,
                                   const Value& iterable) {
  ASSIGN_OR_RETURN(auto items, Iterate(limits_, iterable));
  if (statement.condition != nullptr) {
    ASSIGN_OR_RETURN(items, SelectItems(statement, std::move(items)));
  }
  RETURN_IF_ERROR(limits_.Allocate(sizeof(Loop)));
  Loop* loop = NewObject<Loop>();
  loop->statement = &statement;
  loop->scope = scope;
  loop->length = items.size();
  loop->items = std::move(items);
  return loop;
}

Result<std::vector<Value>> Interpreter::SelectItems(const Statement& statement,
                                                    std::vector<Value> items) {
  std::vector<Value> selected;
  for (Value& item : items) {
    const Scoped scoped(this, scope_);
    RETURN_IF_ERROR(Assign(*statement.target, item));
    ASSIGN_OR_RETURN(const Value condition, Evaluate(*statement.condition));
    if (Truthy(condition)) selected.push_back(std::move(item));
  }
  return selected;
}

Result<Interpreter::Flow> Interpreter::RunFor(const Statement& statement) {
  ASSIGN_OR_RETURN(const Value iterable, Evaluate(*statement.expr));
  ASSIGN_OR_RETURN(Loop* const loop, NewLoop(statement, scope_, iterable));
  if (statement.recursive) KeepScope();
  return RunLoop(loop);
}

Result<Interpreter::Flow> Interpreter::RunLoop(Loop* loop) {
  const Statement& statement = *loop->statement;
  const Value self = Value::FromObject(Kind::kLoop, loop);
  // As in Jinja2, a round that ends early does not keep `else` away.
  bool completed_round = false;
  for (; loop->index < loop->length; ++loop->index) {
    const Scoped round(this, loop->scope);
    RETURN_IF_ERROR(limits_.Step());
    RETURN_IF_ERROR(Define("loop", self));
    RETURN_IF_ERROR(Assign(*statement.target, loop->items[loop->index]));
    ASSIGN_OR_RETURN(const Flow flow, Run(statement.body));
    if (flow == Flow::kBreak) break;
    completed_round = completed_round || flow == Flow::kNormal;
  }
  loop->items.clear();
  if (completed_round) return Flow::kNormal;
  const Scoped scoped(this, loop->scope);
  return Run(statement.else_body);
}

Status Interpreter::RunSet(const Statement& statement) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expr));
  return Assign(*statement.target, value);
}

Result<Text> Interpreter::Capture(const Body& body, Flow* flow) {
  const Scoped scoped(this, scope_);
  Text captured;
  Text* const outer = std::exchange(out_, &captured);
  const auto ended = Run(body);
  out_ = outer;
  if (!ended.ok()) return ended.status();
  *flow = *ended;
  return captured;
}

Result<Interpreter::Flow> Interpreter::RunSetBlock(const Statement& statement) {
  Flow flow = Flow::kNormal;
  ASSIGN_OR_RETURN(Text text, Capture(statement.body, &flow));
  if (flow != Flow::kNormal) return flow;
  Value value = Value::String(std::move(text));
  if (statement.expr != nullptr) {
    ASSIGN_OR_RETURN(value, EvaluateFilter(*statement.expr, &value));
  }
  RETURN_IF_ERROR(Assign(*statement.target, value));
  return Flow::kNormal;
}

Result<Interpreter::Flow> Interpreter::RunFilterBlock(
    const Statement& statement) {
  Flow flow = Flow::kNormal;
  ASSIGN_OR_RETURN(Text text, Capture(statement.body, &flow));
  if (flow != Flow::kNormal) return flow;
  const Value body = Value::String(std::move(text));
  ASSIGN_OR_RETURN(const Value value, EvaluateFilter(*statement.expr, &body));
  ASSIGN_OR_RETURN(const Text printed, ToText(limits_, value));
  RETURN_IF_ERROR(Write(printed));
  return Flow::kNormal;
}

Result<Interpreter::Flow> Interpreter::RunWith(const Statement& statement) {
  std::vector<Value> values;
  for (const Param& param : statement.params) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*param.value));
    values.push_back(std::move(value));
  }
  const Scoped scoped(this, scope_);
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(Define(statement.params[i].name, std::move(values[i])));
  }
  return Run(statement.body);
}

Status Interpreter::RunMacro(const Statement& statement) {
  RETURN_IF_ERROR(limits_.Allocate(sizeof(Macro) + sizeof(Scope)));
  KeepScope();
  auto* macro = NewObject<Macro>();
  macro->statement = &statement;
  macro->scope = scope_;
  return Define(statement.name, Value::FromObject(Kind::kMacro, macro));
}

Status Interpreter::RunCallBlock(const Statement& statement) {
  RETURN_IF_ERROR(limits_.Allocate(sizeof(Macro) + sizeof(Scope)));
  KeepScope();
  auto* body = NewObject<Macro>();
  body->statement = &statement;
  body->scope = scope_;
  const Value caller = Value::FromObject(Kind::kMacro, body);
  ASSIGN_OR_RETURN(const Value value, EvaluateCall(*statement.expr, &caller));
  ASSIGN_OR_RETURN(const Text text, ToText(limits_, value));
  return Write(text);
}

Status Interpreter::Assign(const Expr& target, const Value& value) {
  if (target.kind == ExprKind::kName) return Define(target.name, value);
  if (target.kind == ExprKind::kNamespaceRef) {
    return AssignAttribute(target, value);
  }
  ASSIGN_OR_RETURN(const auto items, Iterate(limits_, value));
  if (items.size() != target.items.size()) {
    return InvalidArgument(fmt::format("found {} values to unpack, expected {}",
                                       items.size(), target.items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) {
    RETURN_IF_ERROR(Assign(*target.items[i], items[i]));
  }
  return Status();
}

Status Interpreter::AssignAttribute(const Expr& target, const Value& value) {
  const Value space = Lookup(target.name);
  if (!space.Is(Kind::kNamespace)) {
    return InvalidArgument(fmt::format(
        "'{}' is no namespace: its attribute cannot be set", target.name));
  }
  if (target.attribute.starts_with('_')) {
    return InvalidArgument("a namespace cannot hold names that start with _");
  }
  RETURN_IF_ERROR(limits_.AllocateItems(2));
  static_cast<Namespace*>(space.object())
      ->attributes.Set(target.attribute, value);
  return Status();
}

}  // namespace muster::jinja
