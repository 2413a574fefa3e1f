#include "runtime/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/mutex.h"
#include "experts/packed_model.h"
#include "formats/expert_pack.h"
#include "io/file.h"
#include "io/remote_files.h"
#include "kernels/dequantize.h"
#include "kernels/pack_panels.h"
#include "kernels/scratch.h"
#include "runtime/kv_pages.h"
#include "runtime/plan_tiers.h"

namespace muster::runtime {
namespace {

using model::LayerRefs;
using model::MatrixRef;
using model::ScaleRef;

constexpr size_t kTensorAlignment = 64;  // bytes: a cache line, a vector
constexpr size_t kReadBytes = size_t{1} << 20;

size_t AlignUp(size_t n) {
  return (n + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

Status Damaged(const std::string& path, uint64_t size_bytes, uint64_t offset) {
  return Corrupt(fmt::format(
      "{}: the {} bytes at offset {} are damaged: their checksum does not fit. "
      "`muster verify` says what they belong to",
      path, size_bytes, offset));
}

size_t NumScales(const MatrixRef& ref) {
  const ScaleRef& s = *ref.scales;
  return ((ref.rows + s.tile_rows - 1) / s.tile_rows) *
         ((ref.cols + s.tile_cols - 1) / s.tile_cols);
}

// Plans where every weight goes, then reads. The same walk over the model does
// both, so that the plan cannot disagree with the reading.
class Loader {
 public:
  // kPinned: those that every token multiplies.
  enum class Which : uint8_t { kAll, kPinned };
  // `pack` is null unless the model is one; both must outlive the loader.
  Loader(const model::WeightIndex& index, const formats::ExpertPack* pack,
         Which which)
      : index_(index), pack_(pack), which_(which) {}

  // First pass: sizes. Second pass, with memory: views and the list of reads.
  void Walk(LoadedModel* loaded) {
    loaded_ = loaded;
    blocks_used_ = floats_used_ = experts_used_ = 0;
    model::ModelWeights weights;
    // Rows are looked up in the embedding; only as the output head is it
    // multiplied with.
    if (!index_.output.present()) {
      weights.token_embedding = Matrix(index_.token_embedding);
    } else if (which_ == Which::kAll ||
               !EmbeddingTable::CanStayOnDisk(index_.token_embedding)) {
      weights.token_embedding = MatrixInRows(index_.token_embedding);
    }
    weights.output_norm = Vector(index_.output_norm);
    weights.output = index_.output.present() ? Matrix(index_.output)
                                             : weights.token_embedding;
    for (size_t l = 0; l < index_.layers.size(); ++l) {
      weights.layers.push_back(Layer(l));
    }
    if (loaded_ != nullptr) loaded_->weights = std::move(weights);
  }

  size_t blocks_bytes() const { return blocks_used_; }
  size_t floats_bytes() const { return floats_used_; }
  size_t experts_bytes() const { return experts_used_; }
  size_t total_bytes() const {
    return blocks_used_ + floats_used_ + experts_used_;
  }

  Status Read(const std::vector<io::File>& files, ThreadPool& pool,
              LoadProgress* progress) {
    PrefetchRemote(files);
    Mutex mutex;
    Status first_error;
    pool.ForEach(reads_.size(), [&](size_t i) {
      const Status status = ReadOne(reads_[i], files);
      if (!status.ok()) {
        MutexLock lock(mutex);
        if (first_error.ok()) first_error = status;
      }
      if (progress != nullptr) progress->done_bytes += reads_[i].size_bytes;
    });
    return first_error;
  }

  uint64_t read_bytes() const {
    uint64_t total = 0;
    for (const ReadTask& read : reads_) total += read.size_bytes;
    return total;
  }

 private:
  // All at once: what few threads ask for, one piece after another, would leave
  // a network idle.
  void PrefetchRemote(const std::vector<io::File>& files) const {
    std::vector<io::RemoteRange> ranges;
    for (const ReadTask& read : reads_) {
      io::RemoteFile* file = files[read.file].remote();
      if (file == nullptr || read.size_bytes == 0) continue;
      ranges.push_back({file, read.offset, read.size_bytes});
    }
    if (!ranges.empty()) ranges.front().file->files().Prefetch(ranges);
  }

  struct ReadTask {
    uint32_t file = 0;
    uint64_t offset = 0;
    size_t size_bytes = 0;
    std::byte* dst = nullptr;
    enum class Then : uint8_t { kKeep, kDecode, kPack } then = Then::kKeep;
    DType type = DType::kF32;
    size_t rows = 0, cols = 0;  // of what was read, when it is not kept
    const Checksum* checksum = nullptr;  // of what is read; null: there is none
  };

  model::LayerWeights Layer(size_t l) {
    const LayerRefs& refs = index_.layers[l];
    model::LayerWeights layer;
    layer.attn_norm = Vector(refs.attn_norm);
    layer.ffn_norm = Vector(refs.ffn_norm);
    layer.q = Matrix(refs.q);
    layer.k = Matrix(refs.k);
    layer.v = Matrix(refs.v);
    layer.o = Matrix(refs.o);
    layer.q_bias = Vector(refs.q_bias);
    layer.k_bias = Vector(refs.k_bias);
    layer.v_bias = Vector(refs.v_bias);
    layer.q_norm = Vector(refs.q_norm);
    layer.k_norm = Vector(refs.k_norm);
    layer.router = FloatMatrix(refs.router);
    layer.shared_router = FloatMatrix(refs.shared_router);
    layer.shared = Expert(refs.shared);
    const bool routed = refs.router.present();
    if (routed && which_ == Which::kPinned) return layer;
    if (pack_ != nullptr && !pack_->layers[l].experts.empty()) {
      for (const formats::PackedExpert& expert : pack_->layers[l].experts) {
        layer.experts.push_back(Packed(pack_->layers[l].layout, expert));
      }
      return layer;
    }
    for (const model::ExpertRefs& expert : refs.experts) {
      layer.experts.push_back(Expert(expert));
    }
    return layer;
  }

  // Read straight into its place, where the kernels use it as it is.
  model::ExpertWeights Packed(const ExpertLayout& layout,
                              const formats::PackedExpert& expert) {
    const size_t at = experts_used_;
    experts_used_ += layout.size_bytes;
    if (loaded_ == nullptr) return {};
    std::byte* dst = loaded_->packed.data() + at;
    reads_.push_back({.file = NumDenseFiles() + expert.file,
                      .offset = expert.offset,
                      .size_bytes = layout.size_bytes,
                      .dst = dst,
                      .checksum = &expert.checksum});
    return {.gate = layout.gate.ViewIn(dst),
            .up = layout.up.ViewIn(dst),
            .down = layout.down.ViewIn(dst)};
  }

  // A pack's shards are numbered behind them.
  static uint32_t NumDenseFiles() { return 1; }

  // Of a dense tensor of a pack; else null.
  const Checksum* ChecksumAt(uint64_t offset) const {
    return pack_ == nullptr ? nullptr : pack_->DenseChecksum(offset);
  }

  model::ExpertWeights Expert(const model::ExpertRefs& refs) {
    return {.gate = Matrix(refs.gate),
            .up = Matrix(refs.up),
            .down = Matrix(refs.down)};
  }

  // In the layout that products read.
  WeightView Matrix(const MatrixRef& ref) {
    if (!ref.present()) return {};
    if (!HasPanels(ref.type)) return MatrixInRows(ref);
    WeightView view{.type = ref.type,
                    .layout = Layout::kPanels,
                    .rows = ref.rows,
                    .cols = ref.cols};
    std::byte* dst = TakeBlocks(view.size_bytes());
    view.data = dst;
    PlanPacking(ref, dst);
    return view;
  }

  // As the file has it.
  WeightView MatrixInRows(const MatrixRef& ref) {
    if (!ref.present()) return {};
    WeightView view{.type = ref.type, .rows = ref.rows, .cols = ref.cols};
    std::byte* dst = TakeBlocks(ref.size_bytes());
    view.data = dst;
    PlanRead(ref, dst);
    if (ref.scales) {
      view.scale_tile_rows = ref.scales->tile_rows;
      view.scale_tile_cols = ref.scales->tile_cols;
      view.scales = Floats(ref.scales->type, ref.scales->file,
                           ref.scales->offset, NumScales(ref));
    }
    return view;
  }

  const float* Vector(const MatrixRef& ref) {
    return ref.present()
               ? Floats(ref.type, ref.file, ref.offset, ref.num_elements())
               : nullptr;
  }

  WeightView FloatMatrix(const MatrixRef& ref) {
    if (!ref.present()) return {};
    return {.type = DType::kF32,
            .data = reinterpret_cast<const std::byte*>(Vector(ref)),
            .rows = ref.rows,
            .cols = ref.cols};
  }

  // Room in the float arena, filled by decoding `type`.
  const float* Floats(DType type, uint32_t file, uint64_t offset,
                      size_t num_elements) {
    const size_t at = floats_used_;
    floats_used_ += AlignUp(num_elements * sizeof(float));
    if (loaded_ == nullptr) return nullptr;
    std::byte* dst = loaded_->floats.data() + at;
    reads_.push_back({.file = file,
                      .offset = offset,
                      .size_bytes = SizeBytes(type, num_elements),
                      .dst = dst,
                      .then = ReadTask::Then::kDecode,
                      .type = type,
                      .rows = 1,
                      .cols = num_elements,
                      .checksum = ChecksumAt(offset)});
    return reinterpret_cast<const float*>(dst);
  }

  std::byte* TakeBlocks(size_t size_bytes) {
    const size_t at = blocks_used_;
    blocks_used_ += AlignUp(size_bytes);
    return loaded_ == nullptr ? nullptr : loaded_->blocks.data() + at;
  }

  // In pieces, so that all threads help with a large tensor; one that has a
  // checksum is read from front to back by one thread.
  void PlanRead(const MatrixRef& ref, std::byte* dst) {
    if (loaded_ == nullptr) return;
    CHECK(!ref.packed);
    const size_t total = ref.size_bytes();
    if (const Checksum* checksum = ChecksumAt(ref.offset)) {
      reads_.push_back({.file = ref.file,
                        .offset = ref.offset,
                        .size_bytes = total,
                        .dst = dst,
                        .checksum = checksum});
      return;
    }
    for (size_t done = 0; done < total; done += kReadBytes) {
      reads_.push_back({.file = ref.file,
                        .offset = ref.offset + done,
                        .size_bytes = std::min(kReadBytes, total - done),
                        .dst = dst + done});
    }
  }

  // Some panels a task.
  void PlanPacking(const MatrixRef& ref, std::byte* dst) {
    if (loaded_ == nullptr) return;
    CHECK(!ref.packed);
    const ReadTask whole = {.file = ref.file,
                            .offset = ref.offset,
                            .size_bytes = ref.size_bytes(),
                            .dst = dst,
                            .then = ReadTask::Then::kPack,
                            .type = ref.type,
                            .rows = ref.rows,
                            .cols = ref.cols,
                            .checksum = ChecksumAt(ref.offset)};
    if (whole.checksum != nullptr) {
      reads_.push_back(whole);
      return;
    }
    for (size_t row = 0; row < whole.rows; row += RowsOfPiece(whole)) {
      reads_.push_back(PieceAt(whole, row));
    }
  }

  // Whole panels.
  static size_t RowsOfPiece(const ReadTask& whole) {
    const size_t panel_bytes = kPanelRows * SizeBytes(whole.type, whole.cols);
    return kPanelRows * std::max<size_t>(1, kReadBytes / panel_bytes);
  }

  // The piece of a matrix to be packed that starts at `row`.
  static ReadTask PieceAt(const ReadTask& whole, size_t row) {
    const size_t row_bytes = SizeBytes(whole.type, whole.cols);
    ReadTask piece = whole;
    piece.rows = std::min(RowsOfPiece(whole), whole.rows - row);
    piece.offset += row * row_bytes;
    piece.size_bytes = piece.rows * row_bytes;
    piece.dst += row / kPanelRows * PanelBytes(whole.type, whole.cols);
    piece.checksum = nullptr;
    return piece;
  }

  static Status ReadOne(const ReadTask& read,
                        const std::vector<io::File>& files) {
    if (read.checksum == nullptr) return ReadPiece(read, files, nullptr);
    ChecksumStream checksum;
    if (read.then == ReadTask::Then::kPack) {
      for (size_t row = 0; row < read.rows; row += RowsOfPiece(read)) {
        RETURN_IF_ERROR(ReadPiece(PieceAt(read, row), files, &checksum));
      }
    } else {
      RETURN_IF_ERROR(ReadPiece(read, files, &checksum));
    }
    if (checksum.Get() == *read.checksum) return {};
    return Damaged(files[read.file].path(), read.size_bytes, read.offset);
  }

  // `checksum` may be null.
  static Status ReadPiece(const ReadTask& read,
                          const std::vector<io::File>& files,
                          ChecksumStream* checksum) {
    const io::File& file = files[read.file];
    if (read.then == ReadTask::Then::kKeep) {
      const std::span<std::byte> place(read.dst, read.size_bytes);
      RETURN_IF_ERROR(file.ReadAt(read.offset, place));
      if (checksum != nullptr) checksum->Update(place);
      return {};
    }
    const std::span<std::byte> blocks(
        kernels::ThreadScratch(kernels::Scratch::kLoad, read.size_bytes),
        read.size_bytes);
    RETURN_IF_ERROR(file.ReadAt(read.offset, blocks));
    if (checksum != nullptr) checksum->Update(blocks);
    if (read.then == ReadTask::Then::kPack) {
      kernels::PackPanels({.type = read.type,
                           .data = blocks.data(),
                           .rows = read.rows,
                           .cols = read.cols},
                          read.dst);
    } else {
      kernels::Dequantize(read.type, blocks.data(), read.cols,
                          reinterpret_cast<float*>(read.dst));
    }
    return {};
  }

  const model::WeightIndex& index_;
  const formats::ExpertPack* const pack_;
  Which which_;
  LoadedModel* loaded_ = nullptr;  // null in the first pass
  size_t blocks_used_ = 0;
  size_t floats_used_ = 0;
  size_t experts_used_ = 0;
  std::vector<ReadTask> reads_;
};

uint64_t MemoryBytes(const model::WeightIndex& index,
                     const formats::ExpertPack* pack, Loader::Which which) {
  Loader loader(index, pack, which);
  loader.Walk(nullptr);
  return loader.total_bytes();
}

// A tensor that stays on disk.
Status Verify(const io::File& file, const model::MatrixRef& ref,
              const Checksum& expected) {
  std::vector<std::byte> piece;
  ChecksumStream checksum;
  for (uint64_t done = 0; done < ref.size_bytes(); done += piece.size()) {
    piece.resize(std::min<uint64_t>(kReadBytes, ref.size_bytes() - done));
    RETURN_IF_ERROR(file.ReadAt(ref.offset + done, piece));
    checksum.Update(piece);
  }
  if (checksum.Get() == expected) return {};
  return Damaged(file.path(), ref.size_bytes(), ref.offset);
}

// Where rows are looked up: what the loader has left on disk, if so.
Status OpenEmbedding(const formats::ModelFiles& files,
                     const model::MatrixRef& ref, LoadedModel& loaded) {
  if (!loaded.weights.token_embedding.empty()) {
    loaded.embedding = EmbeddingTable(loaded.weights.token_embedding);
    return {};
  }
  ASSIGN_OR_RETURN(auto file, io::File::Open(files.paths[ref.file]));
  if (files.pack != nullptr) {
    const Checksum* checksum = files.pack->DenseChecksum(ref.offset);
    CHECK(checksum != nullptr);
    RETURN_IF_ERROR(Verify(file, ref, *checksum));
  }
  loaded.embedding = EmbeddingTable(std::move(file), ref);
  return {};
}

// GGUF keeps llama-3's scaling as a tensor of divisors: it belongs to the
// configuration.
Status ReadRopeFactors(const model::WeightIndex& index,
                       const formats::ExpertPack* pack,
                       const std::vector<io::File>& files,
                       model::ModelConfig& config) {
  const MatrixRef& ref = index.rope_freqs;
  if (!ref.present()) return {};
  std::vector<std::byte> blocks(ref.size_bytes());
  RETURN_IF_ERROR(files[ref.file].ReadAt(ref.offset, blocks));
  const Checksum* checksum =
      pack == nullptr ? nullptr : pack->DenseChecksum(ref.offset);
  if (checksum != nullptr && ChecksumOf(blocks) != *checksum) {
    return Corrupt(fmt::format("{}: rope_freqs at offset {} is damaged",
                               files[ref.file].path(), ref.offset));
  }
  config.rope.freq_factors.resize(ref.num_elements());
  kernels::Dequantize(ref.type, blocks.data(), ref.num_elements(),
                      config.rope.freq_factors.data());
  return Validate(config);
}

}  // namespace

uint64_t WeightMemoryBytes(const model::WeightIndex& index,
                           const formats::ExpertPack* pack) {
  return MemoryBytes(index, pack, Loader::Which::kAll);
}

Result<std::unique_ptr<LoadedModel>> LoadModel(const formats::ModelFiles& files,
                                               const EngineOptions& options,
                                               ThreadPool& pool,
                                               LoadProgress* progress) {
  ASSIGN_OR_RETURN(auto read, model::ReadConfig(files));
  ASSIGN_OR_RETURN(const auto index, model::BindWeights(files, read));
  RETURN_IF_ERROR(KvPages::CheckType(read.config, options.kv_type));
  const formats::ExpertPack* pack = files.pack.get();
  std::vector<std::string> paths = files.paths;
  if (pack != nullptr) {
    RETURN_IF_ERROR(
        experts::CheckPackFits(*pack, index, read.config, files.path));
    paths.insert(paths.end(), pack->paths.begin(), pack->paths.end());
  }
  std::vector<io::File> open_files;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(auto file, io::File::Open(path));
    open_files.push_back(std::move(file));
  }
  auto loaded = std::make_unique<LoadedModel>();
  loaded->config = std::move(read.config);
  loaded->assumptions = std::move(read.assumptions);
  loaded->parameters = model::CountParameters(loaded->config, index);
  RETURN_IF_ERROR(ReadRopeFactors(index, pack, open_files, loaded->config));

  RETURN_IF_ERROR(PlanTiers(
      files, index, options,
      {.pinned_bytes = MemoryBytes(index, pack, Loader::Which::kPinned),
       .all_bytes = MemoryBytes(index, pack, Loader::Which::kAll)},
      *loaded));
  Loader loader(
      index, pack,
      loaded->plan.tiered ? Loader::Which::kPinned : Loader::Which::kAll);
  loader.Walk(nullptr);
  loaded->blocks = AlignedBuffer(loader.blocks_bytes());
  loaded->floats = AlignedBuffer(loader.floats_bytes());
  loaded->packed = AlignedBuffer(loader.experts_bytes());
  loader.Walk(loaded.get());
  if (progress != nullptr) progress->total_bytes = loader.read_bytes();
  RETURN_IF_ERROR(loader.Read(open_files, pool, progress));
  RETURN_IF_ERROR(OpenEmbedding(files, index.token_embedding, *loaded));
  if (loaded->tiers != nullptr) {
    RETURN_IF_ERROR(loaded->tiers->LoadPinned(pool));
  }
  return loaded;
}

}  // namespace muster::runtime
