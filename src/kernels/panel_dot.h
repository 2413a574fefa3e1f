// Dot products of a panel's 16 rows with quantised activations. For each row,
// in order over groups of 32 columns:
//   dot   = sum of integers (exact)
//   one scale a group:    sum = fma(dot, scale * x_scale, sum)
//   two scales a group:   t = dot_0 * scale_0; t = fma(dot_1, scale_1, t);
//                         sum = fma(t, x_scale, sum)
//   then for each scale:  sum = fma(-min, x_scale * (sum of x's integers), sum)
// Both ways below, one token from the stored panel or several from an unpacked
// one, do exactly this: their results are the same bits.
#if defined(MUSTER_KERNELS_PANEL_DOT_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_PANEL_DOT_H_
#undef MUSTER_KERNELS_PANEL_DOT_H_
#else
#define MUSTER_KERNELS_PANEL_DOT_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/activations.h"
#include "kernels/panel_codes.h"

// Kept as a function of its own, whose callers know nothing of its inside: GCC
// 12 takes UnpackPanel<Q2_K> for one without effects when it is compiled for
// AVX-512, and removes its calls.
#undef MUSTER_KERNELS_OPAQUE
#if defined(__GNUC__) && !defined(__clang__)
#define MUSTER_KERNELS_OPAQUE __attribute__((noipa))
#else
#define MUSTER_KERNELS_OPAQUE HWY_NOINLINE
#endif

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

HWY_INLINE void Prefetch(const void* p, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; i += 64) {
    __builtin_prefetch(static_cast<const char*>(p) + i);
  }
}

// ---- One token, straight from the stored panel: bound by reading it. ----

// Bytes ahead of the group in hand to fetch: the latency of memory at the rate
// that a core reads.
inline constexpr size_t kReadAheadBytes = 4096;

template <DType kType, size_t kHalf, size_t kNumQuads>
HWY_INLINE Ints DotQuads(const Bytes* w, const ActivationGroup& x) {
  using Traits = DotTraits<kType>;
  Ints first = ZeroInts();
  if constexpr (Traits::kOffsetLog2 >= 0) {
    const int32_t* minus_sum =
        kNumQuads == kGroupQuads ? &x.minus_sum : &x.minus_half_sums[kHalf];
    first = ShiftLeftInts<Traits::kOffsetLog2>(BroadcastInt(minus_sum));
  }
  // Two sums, so that one does not wait for the other; exact, so any order.
  QuadSum<Traits::kBits, kNumQuads / 2> even, odd;
  even.Start(first);
  odd.Start(ZeroInts());
  const int8_t* q = x.q + kHalf * 16;
  Unroll<kNumQuads / 2>([&](auto i) {
    even.template Add<i>(w[2 * i], BroadcastQuad(q + 8 * i));
    odd.template Add<i>(w[2 * i + 1], BroadcastQuad(q + 8 * i + 4));
  });
  return AddInts(even.Finish(), odd.Finish());
}

// sum + the products of group g of a block.
template <DType kType>
HWY_INLINE Floats DotGroup(const BlockScaleReader<kType>& scales, size_t g,
                           const Bytes* w, const ActivationGroup& x,
                           Floats sum) {
  using Traits = DotTraits<kType>;
  if constexpr (Traits::kScalesPerGroup == 1) {
    const Ints dot = DotQuads<kType, 0, kGroupQuads>(w, x);
    sum = MulAdd(ToFloats(dot),
                 Multiply(scales.Scale(g), BroadcastFloat(&x.scale)), sum);
    if constexpr (Traits::kHasMins) {
      sum = NegMulAdd(scales.Min(g), BroadcastFloat(&x.scaled_sum), sum);
    }
  } else {
    const Ints dot_0 = DotQuads<kType, 0, kGroupQuads / 2>(w, x);
    const Ints dot_1 = DotQuads<kType, 1, kGroupQuads / 2>(w + 4, x);
    Floats t = Multiply(ToFloats(dot_0), scales.Scale(2 * g));
    t = MulAdd(ToFloats(dot_1), scales.Scale(2 * g + 1), t);
    sum = MulAdd(t, BroadcastFloat(&x.scale), sum);
    if constexpr (Traits::kHasMins) {
      sum = NegMulAdd(scales.Min(2 * g), BroadcastFloat(&x.half_scaled_sums[0]),
                      sum);
      sum = NegMulAdd(scales.Min(2 * g + 1),
                      BroadcastFloat(&x.half_scaled_sums[1]), sum);
    }
  }
  return sum;
}

// out[r] = row r of the panel . x, for all 16 rows.
template <DType kType>
HWY_INLINE void DotPanel(const std::byte* panel, size_t num_blocks,
                         const ActivationGroup* x, float* out) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  Floats sums[kNumParts];
  for (Floats& sum : sums) sum = ZeroFloats();
  for (size_t b = 0; b < num_blocks; ++b, panel += kFormat.block_bytes()) {
    Prefetch(panel + kReadAheadBytes, kFormat.scale_bytes());
    const std::byte* group = panel + kFormat.scale_bytes();
    for (size_t part = 0; part < kNumParts; ++part) {
      const BlockScaleReader<kType> scales(panel, part);
      for (size_t g = 0; g < kFormat.groups_per_block(); ++g) {
        const std::byte* codes = group + g * kFormat.group_bytes();
        if (part == 0) {
          Prefetch(codes + kReadAheadBytes, kFormat.group_bytes());
        }
        Bytes w[kGroupQuads];
        UnpackGroup<kType>(codes, part, w);
        sums[part] = DotGroup<kType>(scales, g, w, x[g], sums[part]);
      }
    }
    x += kFormat.groups_per_block();
  }
  for (size_t part = 0; part < kNumParts; ++part) {
    StoreFloats(sums[part], out + part * kPartRows);
  }
}

// ---- Several tokens, from an unpacked panel: bound by computing. ----

template <size_t kScales>
struct GroupMins {
  alignas(64) float mins[kScales][kPanelRows];
};
struct NoMins {};

// One group of a panel with its scales as floats.
template <size_t kScales, bool kHasMins>
struct UnpackedGroup
    : std::conditional_t<kHasMins, GroupMins<kScales>, NoMins> {
  alignas(64) float scales[kScales][kPanelRows];
  alignas(64) std::byte codes[kGroupQuads][kPanelRows * kPanelQuad];
};
template <DType kType>
using UnpackedGroupOf = UnpackedGroup<DotTraits<kType>::kScalesPerGroup,
                                      DotTraits<kType>::kHasMins>;

// out: [num_blocks * groups a block]
template <DType kType>
MUSTER_KERNELS_OPAQUE void UnpackPanel(const std::byte* panel,
                                       size_t num_blocks,
                                       UnpackedGroupOf<kType>* out) {
  using Traits = DotTraits<kType>;
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  for (size_t b = 0; b < num_blocks; ++b, panel += kFormat.block_bytes()) {
    for (size_t part = 0; part < kNumParts; ++part) {
      const BlockScaleReader<kType> scales(panel, part);
      for (size_t g = 0; g < kFormat.groups_per_block(); ++g) {
        UnpackedGroupOf<kType>& group = out[g];
        const std::byte* codes =
            panel + kFormat.scale_bytes() + g * kFormat.group_bytes();
        Bytes w[kGroupQuads];
        UnpackGroup<kType>(codes, part, w);
        for (size_t quad = 0; quad < kGroupQuads; ++quad) {
          StoreBytes(w[quad], group.codes[quad] + PartAt(part, kPanelQuad));
        }
        for (size_t s = 0; s < Traits::kScalesPerGroup; ++s) {
          const size_t at = g * Traits::kScalesPerGroup + s;
          StoreFloats(scales.Scale(at), group.scales[s] + part * kPartRows);
          if constexpr (Traits::kHasMins) {
            StoreFloats(scales.Min(at), group.mins[s] + part * kPartRows);
          }
        }
      }
    }
    out += kFormat.groups_per_block();
  }
}

// The same group of several tokens side by side. What the offset of the
// weights' integers adds to each sum is taken away in `first`.
template <size_t kTokens, size_t kScales>
struct TokenGroup {
  int8_t q[kTokens][kPanelGroup];
  float scale[kTokens];
  float scaled_sums[kScales][kTokens];
  int32_t first[kScales][kTokens];
};

template <size_t kTokens, size_t kScales>
MUSTER_KERNELS_OPAQUE void PackTokens(const ActivationGroup* const* rows,
                                      size_t num_groups, int offset_log2,
                                      TokenGroup<kTokens, kScales>* out) {
  const int32_t offset = offset_log2 < 0 ? 0 : 1 << offset_log2;
  for (size_t g = 0; g < num_groups; ++g, ++out) {
    for (size_t t = 0; t < kTokens; ++t) {
      const ActivationGroup& x = rows[t][g];
      std::memcpy(out->q[t], x.q, kPanelGroup);
      out->scale[t] = x.scale;
      for (size_t s = 0; s < kScales; ++s) {
        const bool whole = kScales == 1;
        out->scaled_sums[s][t] = whole ? x.scaled_sum : x.half_scaled_sums[s];
        out->first[s][t] =
            offset * (whole ? x.minus_sum : x.minus_half_sums[s]);
      }
    }
  }
}

template <int kBits, size_t kTokens, size_t kScale, size_t kScales,
          bool kHasMins>
HWY_INLINE void DotTokens(const UnpackedGroup<kScales, kHasMins>& w,
                          size_t part, const TokenGroup<kTokens, kScales>& x,
                          Ints dots[kTokens]) {
  constexpr size_t kNumQuads = kGroupQuads / kScales;
  QuadSum<kBits, kNumQuads> sums[kTokens];
  Unroll<kTokens>(
      [&](auto t) { sums[t].Start(BroadcastInt(&x.first[kScale][t])); });
  Unroll<kNumQuads>([&](auto quad) {
    constexpr size_t kAt = kScale * kNumQuads + quad;
    const Bytes codes = LoadBytes(w.codes[kAt] + PartAt(part, kPanelQuad));
    Unroll<kTokens>([&](auto t) {
      sums[t].template Add<quad>(codes,
                                 BroadcastQuad(x.q[t] + kAt * kPanelQuad));
    });
  });
  Unroll<kTokens>([&](auto t) { dots[t] = sums[t].Finish(); });
}

// sums[t * kPanelRows + r] += row r of the panel . token t over these groups,
// for a part's rows. Not inlined: it depends on what a type is made of, and
// types share it.
template <int kBits, size_t kTokens, size_t kScales, bool kHasMins>
MUSTER_KERNELS_OPAQUE void DotUnpackedPart(
    const UnpackedGroup<kScales, kHasMins>* w, size_t num_groups, size_t part,
    const TokenGroup<kTokens, kScales>* x, float* all_sums) {
  Floats sums[kTokens];
  const size_t row = part * kPartRows;
  Unroll<kTokens>(
      [&](auto t) { sums[t] = LoadFloats(all_sums + t * kPanelRows + row); });
  for (size_t g = 0; g < num_groups; ++g, ++w, ++x) {
    Prefetch(x + 2, sizeof(*x));
    Ints dots[kTokens];
    DotTokens<kBits, kTokens, 0>(*w, part, *x, dots);
    const Floats scale_0 = LoadFloats(w->scales[0] + row);
    if constexpr (kScales == 1) {
      Unroll<kTokens>([&](auto t) {
        sums[t] =
            MulAdd(ToFloats(dots[t]),
                   Multiply(scale_0, BroadcastFloat(&x->scale[t])), sums[t]);
      });
    } else {
      Floats products[kTokens];
      Unroll<kTokens>(
          [&](auto t) { products[t] = Multiply(ToFloats(dots[t]), scale_0); });
      DotTokens<kBits, kTokens, 1>(*w, part, *x, dots);
      const Floats scale_1 = LoadFloats(w->scales[1] + row);
      Unroll<kTokens>([&](auto t) {
        products[t] = MulAdd(ToFloats(dots[t]), scale_1, products[t]);
        sums[t] = MulAdd(products[t], BroadcastFloat(&x->scale[t]), sums[t]);
      });
    }
    if constexpr (kHasMins) {
      Unroll<kScales>([&](auto s) {
        const Floats min = LoadFloats(w->mins[s] + row);
        Unroll<kTokens>([&](auto t) {
          sums[t] =
              NegMulAdd(min, BroadcastFloat(&x->scaled_sums[s][t]), sums[t]);
        });
      });
    }
  }
  Unroll<kTokens>(
      [&](auto t) { StoreFloats(sums[t], all_sums + t * kPanelRows + row); });
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
