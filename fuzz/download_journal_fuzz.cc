// The journal of a download, any bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "io/object/download_journal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto journal = muster::io::ParseDownloadJournal(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (journal.ok()) {
    CHECK_EQ(journal->has_part.size(), journal->plan.NumParts());
  }
  return 0;
}
