#include "tokenizer/jinja/to_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/jinja/escaping.h"
#include "tokenizer/jinja/printing.h"

namespace muster::jinja {
namespace {

class Writer {
 public:
  Writer(Limits& limits, const JsonStyle& style)
      : limits_(limits), style_(style) {}

  Status Write(const Value& value, int level);
  Text TakeText() { return std::move(out_); }

 private:
  Status WriteList(const List& list, int level);
  Status WriteDict(const Dict& dict, int level);
  Status WriteKey(const Value& key);
  Status WriteString(const Text& text);
  void WriteFloat(double value);
  void StartItem(bool first, int level);
  void EndItems(int level);

  Limits& limits_;
  const JsonStyle& style_;
  Text out_;
};

void Writer::WriteFloat(double value) {
  if (std::isnan(value)) return out_.Append("NaN");
  if (std::isinf(value)) {
    return out_.Append(value < 0 ? "-Infinity" : "Infinity");
  }
  out_.Append(FloatRepr(value));
}

Status Writer::WriteString(const Text& text) {
  RETURN_IF_ERROR(limits_.Scan(text.size()));
  AppendJsonString(text, style_.ensure_ascii, &out_);
  return Status();
}

void Writer::StartItem(bool first, int level) {
  if (!first) out_.Append(style_.item_separator);
  EndItems(level);
}

void Writer::EndItems(int level) {
  if (!style_.indent) return;
  out_.Append("\n");
  for (int i = 0; i < level; ++i) out_.Append(*style_.indent);
}

Status Writer::WriteList(const List& list, int level) {
  out_.Append("[");
  bool first = true;
  for (const Value& item : list.items) {
    StartItem(first, level + 1);
    first = false;
    RETURN_IF_ERROR(Write(item, level + 1));
  }
  if (!first) EndItems(level);
  out_.Append("]");
  return Status();
}

Status Writer::WriteKey(const Value& key) {
  if (key.IsString()) return WriteString(key.text());
  out_.Append("\"");
  RETURN_IF_ERROR(Write(key, 0));  // keys are scalars
  out_.Append("\"");
  return Status();
}

Status Writer::WriteDict(const Dict& dict, int level) {
  std::vector<const Dict::Entry*> entries;
  for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
  if (style_.sort_keys) {
    for (const Dict::Entry* entry : entries) {
      if (!entry->first.IsString()) {
        return InvalidArgument("only keys that are strings can be sorted");
      }
    }
    RETURN_IF_ERROR(limits_.Step(16 * entries.size()));
    std::sort(entries.begin(), entries.end(), [](auto* a, auto* b) {
      return a->first.text().view() < b->first.text().view();
    });
  }
  out_.Append("{");
  bool first = true;
  for (const Dict::Entry* entry : entries) {
    StartItem(first, level + 1);
    first = false;
    RETURN_IF_ERROR(WriteKey(entry->first));
    out_.Append(style_.key_separator);
    RETURN_IF_ERROR(Write(entry->second, level + 1));
  }
  if (!first) EndItems(level);
  out_.Append("}");
  return Status();
}

Status Writer::Write(const Value& value, int level) {
  RETURN_IF_ERROR(limits_.Step());
  if (out_.size() > kMaxTextBytes) {
    return Limits::Exhausted("the template makes a text that is too long");
  }
  switch (value.kind()) {
    case Kind::kNone:
      out_.Append("null");
      return Status();
    case Kind::kBool:
      out_.Append(value.boolean() ? "true" : "false");
      return Status();
    case Kind::kInt:
      out_.Append(fmt::to_string(value.integer()));
      return Status();
    case Kind::kFloat:
      WriteFloat(value.number());
      return Status();
    case Kind::kString:
      return WriteString(value.text());
    case Kind::kList:
    case Kind::kTuple:
      return WriteList(value.list(), level);
    case Kind::kDict:
      return WriteDict(value.dict(), level);
    case Kind::kUndefined:
    case Kind::kRange:
    case Kind::kView:
    case Kind::kGenerator:
    case Kind::kNamespace:
    case Kind::kMacro:
    case Kind::kLoop:
    case Kind::kFunction:
    case Kind::kMethod:
      break;
  }
  return InvalidArgument(
      fmt::format("a value of type {} has no JSON form", TypeName(value)));
}

}  // namespace

Result<Text> ToJson(Limits& limits, const Value& value,
                    const JsonStyle& style) {
  Writer writer(limits, style);
  RETURN_IF_ERROR(writer.Write(value, 0));
  Text text = writer.TakeText();
  RETURN_IF_ERROR(limits.CheckText(text.size()));
  return text;
}

}  // namespace muster::jinja
