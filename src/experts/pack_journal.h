// What a pack in the making has finished: lets an interrupted `muster pack` go
// on where it stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/status.h"
#include "io/output_file.h"

namespace muster::experts {

// One thread at a time.
class PackJournal {
 public:
  static constexpr const char* kName = "journal";

  struct Done {
    std::vector<std::optional<Checksum>> units;  // [num_units]
    std::vector<std::string> sha256;  // [num_source_files]; empty: not yet
  };

  // Opens the journal of `folder` or begins one. `plan` tells whether what
  // stands there belongs to this work: if not, or if it is torn, what is of no
  // use is dropped. `resumed` says whether there was one of this plan. Fails
  // with kUnavailable when another process has it open.
  static Result<PackJournal> Open(const std::string& folder,
                                  const Checksum& plan, size_t num_units,
                                  size_t num_source_files);

  const Done& done() const { return done_; }
  bool resumed() const { return resumed_; }

  // Forgets all that was done.
  Status Restart();

  // Record; Sync makes records last. What they are about must last before.
  void AddUnit(size_t unit, const Checksum& checksum);
  void AddSha256(size_t source_file, const std::string& sha256);
  Status Sync();

 private:
  PackJournal(io::OutputFile file, std::string first_line, size_t num_units,
              size_t num_source_files);
  void Parse(const std::string& text);
  bool ParseLine(const std::string& line);

  io::OutputFile file_;
  std::string first_line_;
  Done done_;
  bool resumed_ = false;
  uint64_t end_ = 0;     // of the records in the file
  std::string pending_;  // records to write
};

}  // namespace muster::experts
