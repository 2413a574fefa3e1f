// Outcome of an operation that can fail for reasons outside the program:
// files, network, arguments, model data. Bugs are CHECKs, not a Status.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace muster {

enum class Code {
  kOk,
  kNotFound,
  kInvalidArgument,
  kCorrupt,      // bytes that are not what their format promises
  kUnsupported,  // well-formed, but nothing this build can do
  kIoError,
  kUnavailable,
  kResourceExhausted,
  kCancelled,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Shorthands for the codes that are returned most.
inline Status InvalidArgument(std::string message) {
  return Status(Code::kInvalidArgument, std::move(message));
}
inline Status Corrupt(std::string message) {
  return Status(Code::kCorrupt, std::move(message));
}
inline Status Unsupported(std::string message) {
  return Status(Code::kUnsupported, std::move(message));
}
inline Status NotFound(std::string message) {
  return Status(Code::kNotFound, std::move(message));
}
inline Status IoError(std::string message) {
  return Status(Code::kIoError, std::move(message));
}

// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit by design
  Result(Status status) : state_(std::move(status)) {}  // NOLINT
  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  std::variant<Status, T> state_;
};

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

// Returns the Status of `expr` from this function unless it is ok.
#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    if (::muster::Status muster_status = (expr); !muster_status.ok()) \
      return muster_status;                                           \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F()): the value of F(), or return its Status.
#define ASSIGN_OR_RETURN(lhs, expr) \
  MUSTER_ASSIGN_OR_RETURN(MUSTER_CONCAT(muster_result_, __LINE__), lhs, expr)
#define MUSTER_ASSIGN_OR_RETURN(result, lhs, expr) \
  auto result = (expr);                            \
  if (!result.ok()) return result.status();        \
  lhs = std::move(result).value()
