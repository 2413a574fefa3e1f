#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tokenizer/jinja/value.h"

namespace muster::jinja {
namespace {

// Builds values as the parser walks the text: nesting is bounded before it is
// built, and recursion plays no part.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(Origin origin) : origin_(origin) {}

  const Status& status() const { return status_; }
  Value TakeResult() { return std::move(result_); }

  bool null() override { return Add(Value::None()); }
  bool boolean(bool value) override { return Add(Value::Bool(value)); }
  bool number_integer(number_integer_t value) override {
    return Add(Value::Int(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kMax = std::numeric_limits<int64_t>::max();
    if (value > static_cast<uint64_t>(kMax)) {
      return Fail(fmt::format("integer {} does not fit 64 bits", value));
    }
    return Add(Value::Int(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    if (digits.find_first_of(".eE") == std::string::npos) {
      return Fail(fmt::format("integer {} does not fit 64 bits", digits));
    }
    return Add(Value::Float(value));
  }
  bool string(string_t& value) override { return Add(Str(value)); }
  bool binary(binary_t&) override { return Fail("binary value"); }

  bool start_object(std::size_t) override { return Open(true); }
  bool start_array(std::size_t) override { return Open(false); }
  bool key(string_t& name) override {
    open_.back().key = Str(name);
    return true;
  }
  bool end_object() override {
    return Close(MakeDict(std::move(open_.back().dict)));
  }
  bool end_array() override {
    return Close(MakeList(Kind::kList, std::move(open_.back().items)));
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    return Fail(fmt::format("at byte {}: {}", position, error.what()));
  }

 private:
  struct Container {
    bool is_object = false;
    Dict dict;
    std::vector<Value> items;
    Value key;
  };

  Value Str(std::string& bytes) const {
    return Value::String(origin_ == Origin::kInput
                             ? Text::FromInput(std::move(bytes))
                             : Text(std::move(bytes)));
  }

  bool Open(bool is_object) {
    if (open_.size() >= static_cast<size_t>(kMaxValueDepth)) {
      return Fail(fmt::format("nested deeper than {}", kMaxValueDepth));
    }
    open_.push_back(
        {.is_object = is_object, .dict = {}, .items = {}, .key = {}});
    return true;
  }

  bool Close(Result<Value> value) {
    open_.pop_back();
    if (!value.ok()) return Fail(value.status().message());
    return Add(std::move(value).value());
  }

  bool Add(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
      return true;
    }
    Container& top = open_.back();
    if (!top.is_object) {
      top.items.push_back(std::move(value));
      return true;
    }
    const Status set = top.dict.Set(top.key, std::move(value));
    return set.ok() || Fail(set.message());
  }

  bool Fail(std::string_view why) {
    status_ = InvalidArgument(fmt::format("JSON: {}", why));
    return false;
  }

  const Origin origin_;
  std::vector<Container> open_;
  Value result_;
  Status status_;
};

}  // namespace

Result<Value> ValueFromJson(std::string_view json, Origin origin) {
  Builder builder(origin);
  if (!nlohmann::json::sax_parse(json, &builder)) return builder.status();
  return builder.TakeResult();
}

}  // namespace muster::jinja
