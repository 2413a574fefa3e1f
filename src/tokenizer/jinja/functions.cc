// Functions that every template can call.
#include <fmt/format.h>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/printing.h"
#include "tokenizer/jinja/strftime.h"

namespace muster::jinja {
namespace {

std::string RangeLabel(int64_t start, int64_t stop, int64_t step) {
  if (step == 1) return fmt::format("range({}, {})", start, stop);
  return fmt::format("range({}, {}, {})", start, stop, step);
}

Result<Value> CallRange(Interpreter& in, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"start", "stop", "step"}, 1));
  if (!args.named.empty()) return InvalidArgument("range: takes no names");
  int64_t start = 0;
  ASSIGN_OR_RETURN(int64_t stop, IntegerArg(*bound[0], "range"));
  if (bound[1] != nullptr) {
    start = stop;
    ASSIGN_OR_RETURN(stop, IntegerArg(*bound[1], "range"));
  }
  ASSIGN_OR_RETURN(const int64_t step, IntOr(bound[2], 1));
  if (step == 0) return InvalidArgument("range: the step is zero");
  // Unsigned, so that no difference overflows.
  const bool forward = step > 0;
  const bool empty = forward ? start >= stop : start <= stop;
  const uint64_t span =
      empty     ? 0
      : forward ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride =
      forward ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = span == 0 ? 0 : (span - 1) / stride + 1;
  if (count > static_cast<uint64_t>(kMaxRange)) {
    return Limits::Exhausted("range: more than 100000 items");
  }
  RETURN_IF_ERROR(in.limits().AllocateItems(count));
  std::vector<Value> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t item =
        static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step);
    items.push_back(Value::Int(static_cast<int64_t>(item)));
  }
  return MakeList(Kind::kRange, std::move(items),
                  RangeLabel(start, stop, step));
}

// The dict that dict(...) and namespace(...) start from.
Result<Dict> DictOf(Interpreter& in, const Args& args) {
  if (args.positional.size() > 1) {
    return InvalidArgument("expected at most one positional argument");
  }
  Dict dict;
  if (args.positional.size() == 1 && args.positional[0].IsDict()) {
    dict = args.positional[0].dict();
    RETURN_IF_ERROR(in.limits().AllocateItems(4 * dict.size()));
  } else if (args.positional.size() == 1) {
    ASSIGN_OR_RETURN(const auto pairs,
                     Iterate(in.limits(), args.positional[0]));
    for (const Value& pair : pairs) {
      ASSIGN_OR_RETURN(const auto parts, Iterate(in.limits(), pair));
      if (parts.size() != 2) return InvalidArgument("expected pairs");
      RETURN_IF_ERROR(dict.Set(parts[0], parts[1]));
    }
  }
  RETURN_IF_ERROR(in.limits().AllocateItems(4 * args.named.size()));
  for (const auto& [name, value] : args.named) dict.Set(name, value);
  return dict;
}

Result<Value> CallDict(Interpreter& in, const Args& args) {
  ASSIGN_OR_RETURN(Dict dict, DictOf(in, args));
  return MakeDict(std::move(dict));
}

Result<Value> CallNamespace(Interpreter& in, const Args& args) {
  ASSIGN_OR_RETURN(Dict dict, DictOf(in, args));
  for (const auto& [key, value] : dict.entries()) {
    if (key.IsString() && key.text().view().starts_with('_')) {
      return InvalidArgument("a namespace cannot hold names that start with _");
    }
  }
  RETURN_IF_ERROR(in.limits().Allocate(sizeof(Namespace)));
  return in.NewNamespace(std::move(dict));
}

Result<Value> CallRaiseException(Interpreter& in, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"message"}, 1));
  ASSIGN_OR_RETURN(const Text message, ToText(in.limits(), *bound[0]));
  return in.Raise(message);
}

Result<Value> CallStrftimeNow(Interpreter& in, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"format"}, 1));
  ASSIGN_OR_RETURN(const Text format, TextArg(bound[0]));
  ASSIGN_OR_RETURN(std::string text, FormatTime(format.view(), in.now()));
  RETURN_IF_ERROR(in.limits().CheckText(text.size()));
  return Value::String(std::move(text));
}

constexpr NamedFunction kFunctions[] = {
    {"dict", CallDict},
    {"namespace", CallNamespace},
    {"raise_exception", CallRaiseException},
    {"range", CallRange},
    {"strftime_now", CallStrftimeNow},
};

}  // namespace

std::span<const NamedFunction> Functions() { return kFunctions; }

}  // namespace muster::jinja
