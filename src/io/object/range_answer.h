// Whether a response is the range that was asked for: no byte of it is taken
// before its head was judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "io/object/response_head.h"

namespace muster::io {

// What tells one state of an object from another. Empty: the server said none.
struct Validators {
  std::string etag;
  std::string last_modified;
};

struct WantedRange {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  // What the object was when it was opened; none: this is what opens it.
  std::optional<uint64_t> object_bytes;
  Validators validators;

  bool IsFirstLook() const { return !object_bytes.has_value(); }
};

enum class Verdict : uint8_t {
  kTake,      // the body is the range (of a first look: the head is enough)
  kRedirect,  // ask at head.location
  kRetry,     // it may go better in a while
  kFail,
};

struct Judgement {
  Verdict verdict = Verdict::kFail;
  Status status;  // why, of kRetry and kFail; without the object's name
};

Judgement Judge(const WantedRange& wanted, const ResponseHead& head);

// What a first look that was taken says about the object.
struct FirstLook {
  uint64_t size_bytes = 0;
  Validators validators;
  bool accepts_ranges = false;
};
// Fails with kUnsupported when the server does not say how large it is.
Result<FirstLook> ReadFirstLook(const ResponseHead& head);

// The header that makes a server refuse when the object changed; none for weak
// or absent ETags, whose comparison is left to Judge.
std::optional<std::string> IfMatch(const Validators& validators);

}  // namespace muster::io
