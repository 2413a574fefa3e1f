// A remote object's local file: as long as the object, with holes where nothing
// is staged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/object/object_client.h"
#include "io/object/presence_map.h"
#include "io/remote_files.h"

namespace muster::io {

// What is given up at once when room is needed.
inline constexpr uint64_t kExtentBlocks = 16;

// Blocks [begin, end).
struct BlockRun {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Guarded by its stage, but for what RemoteFile has and for Write and
// FlushData, which belong to the stage's thread.
class StagedFile final : public RemoteFile {
 public:
  enum class State : uint8_t { kAbsent, kComing, kPresent };

  // In `folder`, which is made. Fails as PresenceMap::Open and as making files.
  static Result<std::unique_ptr<StagedFile>> Open(
      RemoteFiles& files, const std::string& folder, ObjectId object,
      const StagedIdentity& identity);
  ~StagedFile() override;

  ObjectId object() const { return object_; }
  static BlockRun BlocksOf(uint64_t offset, uint64_t size_bytes) {
    return {offset / kStagedBlockBytes, NumStagedBlocks(offset + size_bytes)};
  }
  uint64_t BytesOf(BlockRun run) const;

  State state(uint64_t block) const { return states_[block]; }
  void SetComing(BlockRun run);
  // In memory; WriteMap tells the disk.
  void SetAbsent(BlockRun run);
  // They were written; NameInMap tells the disk.
  void SetPresent(BlockRun run);
  bool IsPresent(BlockRun run) const;
  uint64_t present_bytes() const { return present_blocks_ * kStagedBlockBytes; }

  // Held runs are not given up. `now`: for the order of use.
  void Hold(BlockRun run, uint64_t now);
  void Release(BlockRun run);
  uint64_t num_extents() const { return extents_.size(); }
  bool CanGiveUp(uint64_t extent) const;
  uint64_t LastUse(uint64_t extent) const { return extents_[extent].last_use; }
  // They are absent, and may be punched once the map was written and synced.
  std::vector<BlockRun> GiveUp(uint64_t extent);

  Status Write(BlockRun run, std::span<const std::byte> bytes);
  Status FlushData();
  Status Punch(BlockRun run);
  void AddFetched(uint64_t size_bytes) { fetched_bytes_ += size_bytes; }

  // Blocks that may be named in the map after the next FlushData.
  std::vector<uint64_t> TakeUnsynced();
  // Those blocks are named, unless they were dropped meanwhile.
  Status NameInMap(std::span<const uint64_t> blocks);
  Status WriteMap() { return map_->Write(); }
  Status SyncMap() { return map_->Sync(); }

 private:
  struct Extent {
    uint64_t last_use = 0;
    uint32_t num_holds = 0;
  };

  StagedFile(RemoteFiles& files, const std::string& path, ObjectId object,
             const StagedIdentity& identity, std::unique_ptr<PresenceMap> map);
  Status OpenData(bool clear);
  Status Error(const char* what) const;

  const ObjectId object_;
  std::unique_ptr<PresenceMap> map_;
  int fd_ = -1;
  std::vector<State> states_;  // [blocks]
  std::vector<Extent> extents_;
  std::vector<uint64_t> unsynced_;  // present, not in the map
  uint64_t present_blocks_ = 0;
};

}  // namespace muster::io
