// The reader of lists of experts on any bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "experts/expert_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::experts;  // NOLINT: one small file
  const ExpertTable table(
      {{.num_experts = 3, .top_k = 2}, {}, {.num_experts = 40, .top_k = 1}});
  const auto list = ParseExpertList(std::string(data, data + size), table);
  if (!list.ok()) return 0;
  CHECK(std::is_sorted(list->begin(), list->end()));
  for (const uint32_t expert : *list) CHECK_LT(expert, table.num_experts());
  return 0;
}
