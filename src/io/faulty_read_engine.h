// For tests: another engine whose disk is ill.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/read_engine.h"

namespace muster::io {

struct ReadFault {
  enum class Kind : uint8_t { kError, kShort, kFlipByte };
  Kind kind = Kind::kError;

  // Which reads it hits: all that match what is set.
  std::optional<uint64_t> nth = std::nullopt;  // since the start, from 0
  std::optional<int> fd = std::nullopt;
  std::optional<uint64_t> offset = std::nullopt;  // of a byte that it covers
  // It hits so many of them, then it is gone.
  size_t num_times = static_cast<size_t>(-1);

  int error = EIO;        // of kError
  size_t keep_bytes = 0;  // of kShort: that are read
  size_t flip_byte = 0;   // of kFlipByte: position in what was read
  std::byte flip_mask{1};
};

// In which order, and when, reads are returned.
enum class DoneOrder : uint8_t {
  kAsTheyEnd,
  kReversed,  // the last that was started first
  kShuffled   // by the seed
};

struct FaultyOptions {
  std::vector<ReadFault> faults;
  // Not kAsTheyEnd: each Wait first waits until all in flight have ended.
  DoneOrder order = DoneOrder::kAsTheyEnd;
  uint64_t seed = 1;
  // True: Wait returns min_done reads and no more, so that the slowest disk is
  // played: nothing comes before one has to wait for it.
  bool lazy = false;
};

// Bytes that a fault takes away are overwritten, so that nobody computes on
// them unseen.
class FaultyReadEngine final : public ReadEngine {
 public:
  FaultyReadEngine(std::unique_ptr<ReadEngine> engine, FaultyOptions options);

  std::string Name() const override;
  size_t Alignment() const override { return engine_->Alignment(); }
  size_t Submit(std::span<const ReadRequest> requests) override;
  size_t Wait(size_t min_done, std::span<ReadDone> done) override;
  size_t num_in_flight() const override {
    return engine_->num_in_flight() + ended_.size();
  }

  void AddFault(const ReadFault& fault) { options_.faults.push_back(fault); }
  size_t num_faults() const { return num_faults_; }  // that have struck

 private:
  // A read that the inner engine has under a tag of ours.
  struct Started {
    ReadRequest request;
    std::optional<ReadFault> fault;
  };

  std::optional<ReadFault> FaultOf(const ReadRequest& request);
  ReadDone End(const ReadDone& done);
  void Fetch(size_t min_done);

  std::unique_ptr<ReadEngine> engine_;
  FaultyOptions options_;
  std::mt19937_64 random_;
  std::unordered_map<uint64_t, Started> started_;  // by number
  struct EndedRead {
    uint64_t number = 0;
    ReadDone done;
  };
  std::vector<EndedRead> ended_;  // not returned yet
  uint64_t num_started_ = 0;
  size_t num_faults_ = 0;
};

}  // namespace muster::io
