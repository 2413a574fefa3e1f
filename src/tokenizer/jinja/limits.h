// What one rendering may use. A template that wants more ends with
// kResourceExhausted; no real one comes near.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "tokenizer/jinja/text.h"

namespace muster::jinja {

inline constexpr uint64_t kMaxSteps = 10'000'000;
// Bytes of all values that a rendering makes, also of those long gone.
inline constexpr uint64_t kMaxAllocatedBytes = uint64_t{256} << 20;
// Nested evaluation, macro calls included. Bounds the use of the stack.
inline constexpr int kMaxEvalDepth = 400;
inline constexpr int64_t kMaxRange = 100'000;

class Limits {
 public:
  // `n` steps of about equal cost: a node, a comparison, a list item.
  Status Step(uint64_t n = 1) {
    steps_ += n;
    if (steps_ <= kMaxSteps) return Status();
    return Exhausted("the template takes too many steps");
  }
  // The steps of looking at `bytes` of text once.
  Status Scan(size_t bytes) { return Step(1 + bytes / 64); }

  Status Allocate(size_t bytes) {
    allocated_ += bytes;
    if (allocated_ <= kMaxAllocatedBytes) return Status();
    return Exhausted("the template uses too much memory");
  }
  Status AllocateItems(size_t num_items) {
    return Allocate(num_items * kItemBytes);
  }
  // For a text about to be made.
  Status CheckText(size_t size) {
    if (size > kMaxTextBytes) {
      return Exhausted("the template makes a text that is too long");
    }
    return Allocate(size + kItemBytes);
  }

  static Status Exhausted(const char* what) {
    return Status(Code::kResourceExhausted, what);
  }

 private:
  // A Value with its share of a vector's growth and of shared_ptr's block.
  static constexpr size_t kItemBytes = 64;

  uint64_t steps_ = 0;
  uint64_t allocated_ = 0;
};

}  // namespace muster::jinja
