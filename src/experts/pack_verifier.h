// Finds damage in packs, and repairs it from the model that they were made
// from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "experts/pack_source.h"
#include "experts/pack_writer.h"

namespace muster::experts {

// A part of a pack that is not as it was written.
struct PackDamage {
  std::string file;  // name in the pack's folder
  std::string part;  // "layer 3, expert 17", "tensor 'x'", "the file"
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  std::string what;  // "its checksum does not fit"
};

struct PackCheck {
  std::vector<PackDamage> damages;  // in the order of files and offsets
  uint64_t checked_bytes = 0;
  size_t num_experts = 0;
};

// Reads every byte of a pack. Blocks. Missing, short and long files are damage;
// so is a bit anywhere. Fails when the manifest itself cannot be read or is
// damaged: then nothing can be said. `progress` may be null.
Result<PackCheck> VerifyPack(const std::string& folder, size_t num_threads,
                             PackProgress* progress);

// Writes the damaged parts again, from `source`: a part is written only when
// what the source gives has the manifest's checksum. Blocks. Fails with
// kInvalidArgument on another model. Verify again afterwards.
Status RepairPack(const std::string& folder, const PackCheck& check,
                  const PackSource& source);

}  // namespace muster::experts
