// The reader of kept uses on any bytes; what it takes is written as it was. An
// input whose checksum does not fit is tried again with one that does, so that
// what lies behind the check is reached.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "experts/use_counts.h"

namespace {

using namespace muster;           // NOLINT: one small file
using namespace muster::experts;  // NOLINT: likewise

void Try(const std::string& text) {
  const ExpertTable table(
      {{.num_experts = 3, .top_k = 2}, {}, {.num_experts = 2, .top_k = 1}});
  const Checksum model = {.high = 1, .low = 2};
  const auto uses = ParseUses(text, model, table);
  if (!uses.ok()) return;
  CHECK_EQ(uses->size(), 5u);
  const auto again = ParseUses(WriteUses(model, table, *uses), model, table);
  CHECK(again.ok() && *again == *uses);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(data, data + size);
  Try(text);
  text.resize(std::min(text.size(), text.rfind("checksum ")));
  const std::string checksum = ToHex(ChecksumOf(text));
  Try(text + "checksum " + checksum + "\n");
  return 0;
}
