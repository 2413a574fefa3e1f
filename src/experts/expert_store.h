// Where experts' bytes are in the files of a model, and how those bytes become
// what a slot holds. An expert pack has them as slots do (pack_store.h); the
// model's own files have them in three tensors that must be converted
// (source_store.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::experts {

// Bytes of a file that an expert needs.
struct ExpertRead {
  uint32_t file = 0;  // index into paths()
  uint64_t offset = 0;
  size_t size_bytes = 0;
};

// Immutable: any thread may call it.
class ExpertStore {
 public:
  virtual ~ExpertStore() = default;

  // For people: "packed, one read an expert".
  virtual std::string Name() const = 0;
  virtual const std::vector<std::string>& paths() const = 0;

  // True: an expert is one read, aligned to kExpertAlignment, straight into its
  // slot. False: its reads land elsewhere, and Finish fills the slot.
  virtual bool reads_into_slot() const = 0;

  // What to read for an expert, in the order in which Finish wants it.
  virtual void Reads(uint32_t expert, std::vector<ExpertRead>* reads) const = 0;

  // How many tasks, of similar size, Finish is cut into for an expert.
  virtual size_t NumTasks(uint32_t expert) const = 0;

  // One task: converts or verifies. Tasks of an expert may run at once; when
  // all are ok the slot holds the expert. Fails with kCorrupt when the bytes
  // are not the expert's.
  //   landed: a pointer for each of Reads, to its size_bytes
  virtual Status Finish(uint32_t expert, size_t task,
                        std::span<const std::byte* const> landed,
                        std::byte* slot) const = 0;
};

}  // namespace muster::experts
