// Runs a parsed template. Statements are in run_statements.cc, expressions in
// evaluate.cc, calls in calls.cc; filters, tests, methods and functions are
// tables of plain functions in files of their own.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/limits.h"
#include "tokenizer/jinja/objects.h"
#include "tokenizer/jinja/value.h"

namespace muster::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

// One rendering; one thread.
class Interpreter {
 public:
  // Borrows everything: it must outlive the interpreter.
  Interpreter(const Template& source, const Variables& variables,
              std::chrono::sys_seconds now);

  // Once per object. Errors name the line, but for what the template raised.
  Result<Text> Run();

  // For filters, tests, methods and functions.
  Limits& limits() { return limits_; }
  std::chrono::sys_seconds now() const { return now_; }
  Result<Value> GetAttribute(const Value& object, std::string_view name);
  Result<Value> GetItem(const Value& object, const Value& key);
  // A path such as "function.name" or "0.text", as `map(attribute=...)` has.
  Result<Value> GetPath(const Value& object, const Value& path);
  Result<Value> CallFilter(std::string_view name, const Value& value,
                           const Args& args);
  Result<bool> CallTest(std::string_view name, const Value& value,
                        const Args& args);
  Value NewNamespace(Dict attributes);
  // The error that ends the rendering with a message of the template's own.
  Status Raise(const Text& message);

 private:
  // How a body ended.
  enum class Flow { kNormal, kBreak, kContinue };

  // Counts a level of evaluation while it lives.
  class Nesting {
   public:
    explicit Nesting(int* depth) : depth_(depth) { ++*depth_; }
    ~Nesting() { --*depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    int* depth_;
  };

  // Makes a new scope current while it lives.
  class Scoped {
   public:
    Scoped(Interpreter* interpreter, Scope* parent);
    ~Scoped();
    Scoped(const Scoped&) = delete;
    Scoped& operator=(const Scoped&) = delete;

   private:
    Interpreter* interpreter_;
    Scope* outer_;
  };

  // Counts a step at a node and refuses to nest too deeply.
  Status Enter(int line);

  Result<Flow> Run(const Body& body);
  Result<Flow> Run(const Statement& statement);
  Status Write(const Text& text);
  Status RunPrint(const Statement& statement);
  Result<Flow> RunIf(const Statement& statement);
  Result<Flow> RunFor(const Statement& statement);
  // All rounds of a loop and what follows when there was none.
  Result<Flow> RunLoop(Loop* loop);
  Result<Loop*> NewLoop(const Statement& statement, Scope* scope,
                        const Value& iterable);
  Result<std::vector<Value>> SelectItems(const Statement& statement,
                                         std::vector<Value> items);
  Status RunSet(const Statement& statement);
  Result<Flow> RunSetBlock(const Statement& statement);
  Status RunMacro(const Statement& statement);
  Status RunCallBlock(const Statement& statement);
  Result<Flow> RunFilterBlock(const Statement& statement);
  Result<Flow> RunWith(const Statement& statement);
  // What `body` prints, in a new scope.
  Result<Text> Capture(const Body& body, Flow* flow);
  Status Assign(const Expr& target, const Value& value);
  Status AssignAttribute(const Expr& target, const Value& value);
  Status Define(std::string_view name, Value value);
  // Keeps the current scope, and those around it, until the rendering ends.
  void KeepScope();

  Result<Value> Evaluate(const Expr& expr);
  Result<Value> EvaluateOr(const ExprPtr& expr, const Value& otherwise);
  Result<Value> EvaluateUnary(const Expr& expr);
  Result<Value> EvaluateItems(const Expr& expr, Kind kind);
  Result<Value> EvaluateDict(const Expr& expr);
  Result<Value> EvaluateGetItem(const Expr& expr);
  Result<Value> EvaluateBinary(const Expr& expr);
  Result<Value> EvaluateConcat(const Expr& expr);
  Result<Value> EvaluateCompare(const Expr& expr);
  Result<Value> EvaluateLogic(const Expr& expr);
  Result<Value> EvaluateCondition(const Expr& expr);
  // `piped` is what a filter block hands to its first filter.
  Result<Value> EvaluateFilter(const Expr& expr, const Value* piped);
  Result<Value> EvaluateTest(const Expr& expr);
  Value Lookup(std::string_view name) const;

  Result<Args> EvaluateArgs(const CallArgs& args);
  Result<Value> EvaluateCall(const Expr& expr, const Value* caller);
  Result<Value> CallValue(const Value& callee, const Args& args);
  Result<Value> CallMacro(const Macro& macro, const Args& args);
  Status BindParams(const Macro& macro, const Args& args);
  // Arguments that no parameter takes.
  Status BindRest(const Macro& macro, Args rest);
  Result<Value> CallLoop(Loop* loop, const Args& args);
  Result<Text> RunNested(const Loop& loop, const Value& iterable);
  Result<Value> CallLoopMethod(Loop* loop, std::string_view name,
                               const Args& args);

  template <class T>
  T* NewObject() {
    objects_.push_back(std::make_unique<T>());
    return static_cast<T*>(objects_.back().get());
  }

  const Template& source_;
  const std::chrono::sys_seconds now_;
  Limits limits_;
  int line_ = 1;   // of the node that was entered last
  int depth_ = 0;  // of evaluation
  std::deque<Scope> scopes_;
  std::deque<std::unique_ptr<Object>> objects_;
  Scope* scope_ = nullptr;
  bool raised_ = false;
  Text output_;
  Text* out_ = &output_;
};

// What the template prints. Errors name the line, but for what the template
// itself raised.
Result<Text> Render(const Template& source, const Variables& variables,
                    std::chrono::sys_seconds now);

}  // namespace muster::jinja
