// y = W x for every weight type, in the shapes of Qwen3-30B-A3B's layers, with
// all threads. Copies of the matrix take turns, so that weights come from
// memory as they do when a model decodes.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "bench/rates.h"
#include "kernels/pack_panels.h"
#include "kernels/products.h"
#include "tensor/aligned_buffer.h"

namespace muster::bench {
namespace {

using kernels::ActivationView;

struct Shape {
  size_t rows;
  size_t cols;
};
constexpr Shape kShapes[] = {{768, 2048}, {2048, 768}, {4096, 2048}};
constexpr size_t kTokens[] = {1, 4, 32, 512};
// More than any last-level cache here keeps.
constexpr size_t kTotalBytes = size_t{128} << 20;

// Every type that a product accepts.
std::vector<DType> WeightTypes() {
  std::vector<DType> types;
  for (size_t i = 0; i < kNumDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    const bool floats =
        type == DType::kF32 || type == DType::kF16 || type == DType::kF8E4M3;
    if (floats || HasPanels(type)) types.push_back(type);
  }
  return types;
}

// Copies of one matrix, in the layout that products read. The values do not
// matter for the time: this byte makes small, normal numbers in every type.
class Matrices {
 public:
  Matrices(DType type, Shape shape) {
    AlignedBuffer rows(SizeBytes(type, shape.rows * shape.cols));
    std::memset(rows.data(), 0x2F, rows.size_bytes());
    WeightView view = {.type = type,
                       .data = rows.data(),
                       .rows = shape.rows,
                       .cols = shape.cols,
                       .scales = &kOne,
                       .scale_tile_rows = shape.rows,
                       .scale_tile_cols = shape.cols};
    WeightView stored = view;
    if (HasPanels(type)) stored.layout = Layout::kPanels;
    copy_bytes_ = stored.size_bytes();
    const size_t num_copies = kTotalBytes / copy_bytes_ + 1;
    bytes_ = AlignedBuffer(num_copies * copy_bytes_);
    for (size_t i = 0; i < num_copies; ++i) {
      std::byte* copy = bytes_.data() + i * copy_bytes_;
      if (HasPanels(type)) {
        kernels::PackPanels(view, copy);
      } else {
        std::memcpy(copy, rows.data(), copy_bytes_);
      }
      stored.data = copy;
      copies_.push_back(stored);
    }
  }

  const WeightView& Next() { return copies_[next_++ % copies_.size()]; }
  size_t copy_bytes() const { return copy_bytes_; }

 private:
  static constexpr float kOne = 1.0f;
  size_t copy_bytes_ = 0;
  size_t next_ = 0;
  AlignedBuffer bytes_;
  std::vector<WeightView> copies_;
};

void Multiply(benchmark::State& state, DType type, Shape shape,
              size_t num_tokens) {
  ThreadPool pool(DefaultNumThreads());
  Matrices matrices(type, shape);
  const std::vector<float> x(num_tokens * shape.cols, 0.5f);
  std::vector<float> out(num_tokens * shape.rows);
  std::vector<uint32_t> tokens(num_tokens);
  std::iota(tokens.begin(), tokens.end(), 0u);
  kernels::Activations activations;
  const ActivationView view = activations.Set(x.data(), num_tokens, shape.cols,
                                              kernels::FormRead(type), pool);
  kernels::ProductRunner runner;
  for (auto _ : state) {
    const kernels::Product product = {&matrices.Next(), &view, tokens,
                                      out.data(), shape.rows};
    runner.Run({&product, 1}, pool);
  }
  SetRates(state, static_cast<double>(matrices.copy_bytes()),
           2.0 * static_cast<double>(shape.rows * shape.cols * num_tokens));
}

const bool kRegistered = [] {
  for (const DType type : WeightTypes()) {
    for (const Shape shape : kShapes) {
      for (const size_t tokens : kTokens) {
        const std::string name = fmt::format("{}/{}x{}/tokens:{}", Name(type),
                                             shape.rows, shape.cols, tokens);
        benchmark::RegisterBenchmark(name.c_str(), Multiply, type, shape,
                                     tokens)
            ->UseRealTime();
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace muster::bench
