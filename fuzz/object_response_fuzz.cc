// The head of a response, any bytes: a verdict, never an abort; and nothing is
// taken as a range but 206 with exactly that range, or 200 with the whole.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "io/object/range_answer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::io;  // NOLINT
  std::string_view text(reinterpret_cast<const char*>(data), size);
  ResponseHead head;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    AddHeaderLine(text.substr(0, end + 1), &head);
    text.remove_prefix(end + 1);
  }
  const WantedRange look = {.size_bytes = 1};
  if (Judge(look, head).verdict == Verdict::kTake) {
    static_cast<void>(ReadFirstLook(head));
  }
  const WantedRange part = {.offset = 100,
                            .size_bytes = 50,
                            .object_bytes = 1000,
                            .validators = {"\"v1\"", ""}};
  if (Judge(part, head).verdict == Verdict::kTake) {
    CHECK_EQ(head.status, 206);
    CHECK_EQ(head.etag, "\"v1\"");
    CHECK_EQ(*head.content_range->first, 100u);
    CHECK_EQ(*head.content_range->last, 149u);
  }
  return 0;
}
