// Length, iteration, indexes and slices.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

Status NotIterable(const Value& value) {
  return InvalidArgument(fmt::format(
      "expected something to iterate over, found {}", TypeName(value)));
}

Result<std::vector<Value>> Characters(Limits& limits, const Text& text) {
  const size_t count = CountCharacters(text.view());
  RETURN_IF_ERROR(limits.Step(count));
  RETURN_IF_ERROR(limits.AllocateItems(2 * count));
  std::vector<Value> items;
  items.reserve(count);
  for (size_t pos = 0; pos < text.size();) {
    const size_t size = CharacterAt(text.view(), pos).size;
    items.push_back(Value::String(text.Part(pos, pos + size)));
    pos += size;
  }
  return items;
}

}  // namespace

Result<int64_t> IntegerArg(const Value& value, std::string_view what) {
  if (value.IsIntegral()) return value.integer();
  return InvalidArgument(
      fmt::format("{}: expected an integer, found {}", what, TypeName(value)));
}

Result<int64_t> Length(Limits& limits, const Value& value) {
  if (value.IsUndefined()) return int64_t{0};
  if (value.IsString()) {
    RETURN_IF_ERROR(limits.Scan(value.text().size()));
    return static_cast<int64_t>(CountCharacters(value.text().view()));
  }
  if (value.IsDict()) return static_cast<int64_t>(value.dict().size());
  const bool has_length = value.Is(Kind::kList) || value.Is(Kind::kTuple) ||
                          value.Is(Kind::kRange) || value.Is(Kind::kView);
  if (has_length) return static_cast<int64_t>(value.list().items.size());
  return InvalidArgument(fmt::format("a {} has no length", TypeName(value)));
}

Result<std::vector<Value>> Iterate(Limits& limits, const Value& value) {
  if (value.IsUndefined()) return std::vector<Value>();
  if (value.IsString()) return Characters(limits, value.text());
  if (value.IsDict()) {
    RETURN_IF_ERROR(limits.AllocateItems(value.dict().size()));
    std::vector<Value> keys;
    keys.reserve(value.dict().size());
    for (const auto& [key, unused] : value.dict().entries()) {
      keys.push_back(key);
    }
    return keys;
  }
  if (!value.IsListLike() || value.Is(Kind::kMethod)) {
    return NotIterable(value);
  }
  const List& list = value.list();
  if (value.Is(Kind::kGenerator) && std::exchange(list.consumed, true)) {
    return std::vector<Value>();
  }
  RETURN_IF_ERROR(limits.AllocateItems(list.items.size()));
  return list.items;
}

namespace {

struct SliceBounds {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// As PySlice_AdjustIndices of Python does it.
Result<SliceBounds> Adjust(int64_t length, const Value& start,
                           const Value& stop, const Value& step) {
  SliceBounds bounds;
  if (!step.IsNone()) {
    ASSIGN_OR_RETURN(bounds.step, IntegerArg(step, "step of a slice"));
  }
  if (bounds.step == 0) return InvalidArgument("the step of a slice is zero");
  bounds.step = std::clamp<int64_t>(bounds.step, -length - 1, length + 1);
  const bool backward = bounds.step < 0;
  const int64_t lowest = backward ? -1 : 0;
  const int64_t highest = backward ? length - 1 : length;
  const auto adjust = [&](const Value& bound,
                          int64_t otherwise) -> Result<int64_t> {
    if (bound.IsNone()) return otherwise;
    ASSIGN_OR_RETURN(int64_t index, IntegerArg(bound, "bound of a slice"));
    if (index < 0) index += length;
    return std::clamp(index, lowest, highest);
  };
  ASSIGN_OR_RETURN(bounds.start, adjust(start, backward ? highest : lowest));
  ASSIGN_OR_RETURN(const int64_t end,
                   adjust(stop, backward ? lowest : highest));
  const int64_t span = backward ? bounds.start - end : end - bounds.start;
  const int64_t stride = backward ? -bounds.step : bounds.step;
  if (span > 0) bounds.count = (span - 1) / stride + 1;
  return bounds;
}

Result<Value> SliceText(Limits& limits, const Text& text,
                        const SliceBounds& bounds) {
  RETURN_IF_ERROR(limits.CheckText(text.size()));
  if (bounds.step == 1) {
    const auto first = static_cast<size_t>(bounds.start);
    const auto last = static_cast<size_t>(bounds.start + bounds.count);
    return Value::String(text.Part(ByteOffset(text.view(), first),
                                   ByteOffset(text.view(), last)));
  }
  ASSIGN_OR_RETURN(const auto characters, Characters(limits, text));
  Text out;
  for (int64_t i = 0; i < bounds.count; ++i) {
    const int64_t at = bounds.start + i * bounds.step;
    out.Append(characters[static_cast<size_t>(at)].text());
  }
  return Value::String(std::move(out));
}

}  // namespace

Result<Value> Slice(Limits& limits, const Value& value, const Value& start,
                    const Value& stop, const Value& step) {
  RETURN_IF_ERROR(CheckDefined(value));
  const bool sliceable = value.IsString() || value.Is(Kind::kList) ||
                         value.Is(Kind::kTuple) || value.Is(Kind::kRange);
  if (!sliceable) {
    return InvalidArgument(
        fmt::format("a {} cannot be sliced", TypeName(value)));
  }
  ASSIGN_OR_RETURN(const int64_t length, Length(limits, value));
  ASSIGN_OR_RETURN(const SliceBounds bounds, Adjust(length, start, stop, step));
  if (value.IsString()) return SliceText(limits, value.text(), bounds);
  RETURN_IF_ERROR(limits.AllocateItems(static_cast<size_t>(bounds.count)));
  std::vector<Value> items;
  for (int64_t i = 0; i < bounds.count; ++i) {
    const int64_t at = bounds.start + i * bounds.step;
    items.push_back(value.list().items[static_cast<size_t>(at)]);
  }
  const Kind kind = value.Is(Kind::kTuple) ? Kind::kTuple : Kind::kList;
  return MakeList(kind, std::move(items));
}

Result<Value> ItemAt(Limits& limits, const Value& value, int64_t index) {
  const bool indexable = value.IsString() || value.Is(Kind::kList) ||
                         value.Is(Kind::kTuple) || value.Is(Kind::kRange);
  if (indexable) {
    ASSIGN_OR_RETURN(const int64_t length, Length(limits, value));
    const int64_t at = index < 0 ? index + length : index;
    if (at >= 0 && at < length) {
      const auto place = static_cast<size_t>(at);
      if (!value.IsString()) return value.list().items[place];
      const Text& text = value.text();
      const size_t begin = ByteOffset(text.view(), place);
      const size_t size = CharacterAt(text.view(), begin).size;
      return Value::String(text.Part(begin, begin + size));
    }
  }
  return Value::Undefined(
      fmt::format("{} has no element {}", TypeName(value), index));
}

}  // namespace muster::jinja
