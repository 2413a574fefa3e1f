// Memory for keys and values, in pages that sequences share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/attention.h"
#include "kernels/kv_tiles.h"
#include "model/config.h"
#include "tensor/aligned_buffer.h"

namespace muster::runtime {

// A page has the keys and values of all layers and heads for as many positions
// as attention takes in one block, so that a block lies in one page.
inline constexpr size_t kKvPagePositions = kernels::kAttentionBlock;

class KvPages;

// A share of a page: the page is free again when its last share goes. What is
// stored in it through one share is seen through all.
class KvPage {
 public:
  KvPage(const KvPage& other);
  KvPage(KvPage&& other) noexcept;
  KvPage& operator=(KvPage other) noexcept;
  ~KvPage();

  bool is_shared() const;  // there is another share of this page
  friend bool operator==(const KvPage& a, const KvPage& b) {
    return a.pages_ == b.pages_ && a.index_ == b.index_;
  }

 private:
  friend class KvPages;
  KvPage(KvPages* pages, size_t index);

  KvPages* pages_;  // null: moved from
  size_t index_;
};

// One thread at a time, but for Tiles, which any may read and those who share
// no tile may write at once.
class KvPages {
 public:
  // Fails with kInvalidArgument when the model's heads do not fit the type.
  static Status CheckType(const model::ModelConfig& config,
                          kernels::KvType type);

  // Takes the address space at once; memory as positions are stored.
  // REQUIRES: CheckType is ok.
  KvPages(const model::ModelConfig& config, kernels::KvType type,
          size_t num_pages);
  ~KvPages();  // REQUIRES: no page is taken
  KvPages(const KvPages&) = delete;
  KvPages& operator=(const KvPages&) = delete;

  static size_t PagesFor(size_t positions) {
    return (positions + kKvPagePositions - 1) / kKvPagePositions;
  }
  static uint64_t PageBytes(const model::ModelConfig& config,
                            kernels::KvType type);
  static size_t BytesPerPosition(const model::ModelConfig& config,
                                 kernels::KvType type);

  size_t num_pages() const { return shares_.size(); }
  size_t num_free() const { return free_.size(); }
  size_t size_bytes() const { return buffer_.size_bytes(); }
  kernels::KvType type() const { return type_; }
  size_t num_kv_heads() const { return num_kv_heads_; }
  size_t head_dim() const { return head_dim_; }
  size_t tile_bytes() const { return tile_bytes_; }

  // A page that nobody has; what it holds is undefined. None is left: nothing.
  std::optional<KvPage> Take();

  // The tiles of a head's keys and values in a page.
  struct Tiles {
    std::byte* keys;
    std::byte* values;
  };
  Tiles TilesOf(const KvPage& page, size_t layer, size_t kv_head);

  // Copies the first `num_positions` of each head and layer.
  // REQUIRES: num_positions is a multiple of a tile's, at most a page's.
  void CopyPositions(const KvPage& from, size_t num_positions,
                     const KvPage& to);

 private:
  friend class KvPage;

  size_t num_layers_;
  size_t num_kv_heads_;
  size_t head_dim_;
  kernels::KvType type_;
  size_t tile_bytes_;
  size_t head_bytes_;  // of the keys or the values of a head in a page
  size_t page_bytes_;
  AlignedBuffer buffer_;          // [page][layer][key or value][head] tiles
  std::vector<uint32_t> shares_;  // [pages]
  std::vector<size_t> free_;      // the next to take is the last
};

}  // namespace muster::runtime
