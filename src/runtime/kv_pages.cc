#include "runtime/kv_pages.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/check.h"

namespace muster::runtime {

using kernels::kKvTilePositions;

namespace {

constexpr size_t kTilesOfPage = kKvPagePositions / kKvTilePositions;

}  // namespace

KvPage::KvPage(KvPages* pages, size_t index) : pages_(pages), index_(index) {
  ++pages_->shares_[index_];
}

KvPage::KvPage(const KvPage& other)
    : pages_(other.pages_), index_(other.index_) {
  if (pages_ != nullptr) ++pages_->shares_[index_];
}

KvPage::KvPage(KvPage&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)), index_(other.index_) {}

KvPage& KvPage::operator=(KvPage other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(index_, other.index_);
  return *this;
}

KvPage::~KvPage() {
  if (pages_ == nullptr || --pages_->shares_[index_] != 0) return;
  pages_->free_.push_back(index_);  // its capacity is there: no throw
}

bool KvPage::is_shared() const { return pages_->shares_[index_] > 1; }

Status KvPages::CheckType(const model::ModelConfig& config,
                          kernels::KvType type) {
  if (type != kernels::KvType::kQ8 || config.head_dim % 32 == 0) return {};
  return InvalidArgument(fmt::format(
      "a Q8 cache needs heads of a multiple of 32, this model's have {}",
      config.head_dim));
}

uint64_t KvPages::PageBytes(const model::ModelConfig& config,
                            kernels::KvType type) {
  return uint64_t{config.layers.size()} * 2 * config.num_kv_heads *
         kTilesOfPage * kernels::KvTileBytes(type, config.head_dim);
}

size_t KvPages::BytesPerPosition(const model::ModelConfig& config,
                                 kernels::KvType type) {
  return config.layers.size() * 2 * config.num_kv_heads *
         kernels::KvVectorBytes(type, config.head_dim);
}

KvPages::KvPages(const model::ModelConfig& config, kernels::KvType type,
                 size_t num_pages)
    : num_layers_(config.layers.size()),
      num_kv_heads_(config.num_kv_heads),
      head_dim_(config.head_dim),
      type_(type),
      tile_bytes_(kernels::KvTileBytes(type, config.head_dim)),
      head_bytes_(kTilesOfPage * tile_bytes_),
      page_bytes_(num_layers_ * 2 * num_kv_heads_ * head_bytes_),
      buffer_(num_pages * page_bytes_),
      shares_(num_pages) {
  free_.reserve(num_pages);
  for (size_t page = num_pages; page > 0; --page) free_.push_back(page - 1);
}

KvPages::~KvPages() { CHECK_EQ(num_free(), num_pages()); }

std::optional<KvPage> KvPages::Take() {
  if (free_.empty()) return {};
  const size_t index = free_.back();
  free_.pop_back();
  return KvPage(this, index);
}

KvPages::Tiles KvPages::TilesOf(const KvPage& page, size_t layer,
                                size_t kv_head) {
  std::byte* of_layer = buffer_.data() + page.index_ * page_bytes_ +
                        layer * 2 * num_kv_heads_ * head_bytes_;
  return {.keys = of_layer + kv_head * head_bytes_,
          .values = of_layer + (num_kv_heads_ + kv_head) * head_bytes_};
}

void KvPages::CopyPositions(const KvPage& from, size_t num_positions,
                            const KvPage& to) {
  CHECK_EQ(num_positions % kKvTilePositions, 0u);
  CHECK_LE(num_positions, kKvPagePositions);
  const size_t bytes = num_positions / kKvTilePositions * tile_bytes_;
  for (size_t layer = 0; layer < num_layers_; ++layer) {
    for (size_t head = 0; head < num_kv_heads_; ++head) {
      const Tiles source = TilesOf(from, layer, head);
      const Tiles target = TilesOf(to, layer, head);
      std::memcpy(target.keys, source.keys, bytes);
      std::memcpy(target.values, source.values, bytes);
    }
  }
}

}  // namespace muster::runtime
