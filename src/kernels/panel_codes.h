// Codes and scales of a panel's groups into registers: the step between the
// stored layout (tensor/panels.h) and the dot product.
#if defined(MUSTER_KERNELS_PANEL_CODES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_PANEL_CODES_H_
#undef MUSTER_KERNELS_PANEL_CODES_H_
#else
#define MUSTER_KERNELS_PANEL_CODES_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/panel_simd.h"
#include "tensor/panels.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

inline constexpr size_t kGroupQuads = kPanelGroup / kPanelQuad;

// What the dot product has to know of a type.
template <DType kType>
struct DotTraits {
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);
  // Those with format.values; with sanitizers GCC 12 does not take the
  // comparison of that address for a constant.
  static constexpr bool kHasBook = kType == DType::kIQ4_NL ||
                                   kType == DType::kIQ4_XS ||
                                   kType == DType::kMXFP4;
  // Of what UnpackGroup gives.
  static constexpr int kBits =
      kHasBook ? 8 : kFormat.low_bits + kFormat.high_bits;
  static constexpr bool kSigned = kBits == 8 && !kHasWideDot;
  // Unpacked integers are too large by 2^kOffsetLog2, or right where it is -1.
  static constexpr int kOffsetLog2 = kSigned    ? -1
                                     : kHasBook ? 7
                                                : kFormat.offset_log2;
  static constexpr bool kHasMins = kFormat.has_mins;
  static constexpr size_t kScaleGroup = kFormat.scale_group;
  static constexpr size_t kScalesPerGroup = kPanelGroup / kScaleGroup;
};

// Field i of a plane of kBits-wide fields.
template <int kBits, size_t kField>
HWY_INLINE Bytes PlaneField(Bytes plane) {
  constexpr auto kMask = static_cast<uint8_t>((1 << kBits) - 1);
  if constexpr (kField == 0) {
    return Mask(plane, kMask);
  } else {
    return Mask(ShiftRight<static_cast<int>(kField) * kBits>(plane), kMask);
  }
}

// base | (field kField of the plane) << kTo
template <int kBits, size_t kField, int kTo>
HWY_INLINE Bytes OrField(Bytes base, Bytes plane) {
  constexpr int kFrom = static_cast<int>(kField) * kBits;
  constexpr auto kMask = static_cast<uint8_t>(((1 << kBits) - 1) << kTo);
  if constexpr (kFrom == kTo) {
    return OrMasked(base, plane, kMask);
  } else if constexpr (kFrom > kTo) {
    return OrMasked(base, ShiftRight<kFrom - kTo>(plane), kMask);
  } else {
    return OrMasked(base, ShiftLeft<kTo - kFrom>(plane), kMask);
  }
}

template <DType kType>
HWY_INLINE Bytes Decode(Bytes code) {
  using Traits = DotTraits<kType>;
  if constexpr (Traits::kHasBook) {
    const Bytes value = LookUp(Traits::kFormat.values, code);
    return kHasWideDot ? FlipSigns(value) : value;
  } else if constexpr (Traits::kSigned) {
    return FlipSigns(code);
  } else {
    return code;
  }
}

// Quad kQuad of a group whose planes start at `planes` (of the part's rows).
template <DType kType, size_t kQuad>
HWY_INLINE Bytes UnpackQuad(const std::byte* planes) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  constexpr auto kLow = kFormat.low_bits;
  constexpr auto kHigh = kFormat.high_bits;
  constexpr size_t kPerVector = 8 / static_cast<size_t>(kLow);
  constexpr size_t kVector = kLow == 4 ? kQuad % 4 : kQuad / kPerVector;
  constexpr size_t kField = kLow == 4 ? kQuad / 4 : kQuad % kPerVector;
  const Bytes low = LoadBytes(planes + kVector * 64);
  Bytes code = low;
  if constexpr (kLow != 8) code = PlaneField<kLow, kField>(low);
  if constexpr (kHigh != 0) {
    constexpr size_t kHighPerVector = 8 / static_cast<size_t>(kHigh);
    const Bytes high = LoadBytes(planes + kFormat.low_plane_bytes() +
                                 kQuad / kHighPerVector * 64);
    code = OrField<kHigh, kQuad % kHighPerVector, kLow>(code, high);
  }
  return Decode<kType>(code);
}

// fn(std::integral_constant<size_t, i>()) for i in [0, kCount), unrolled.
template <size_t kCount, size_t kFirst = 0, class Fn>
HWY_INLINE void Unroll(const Fn& fn) {
  if constexpr (kFirst < kCount) {
    fn(std::integral_constant<size_t, kFirst>());
    Unroll<kCount, kFirst + 1>(fn);
  }
}

// All quads of a group.
template <DType kType>
HWY_INLINE void UnpackGroup(const std::byte* group, size_t part,
                            Bytes out[kGroupQuads]) {
  const std::byte* planes = group + PartAt(part, kPanelQuad);
  Unroll<kGroupQuads>(
      [&](auto quad) { out[quad] = UnpackQuad<kType, quad>(planes); });
}

// Scales of a block: the halves once, then a group's as floats.
template <DType kType>
struct BlockScaleReader {
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);
  static constexpr size_t kNum = kFormat.scales_per_block();
  static constexpr size_t kHalves = kPanelRows * 2;
  static constexpr bool kIsProduct = kFormat.scales != PanelScales::kHalf &&
                                     kFormat.scales != PanelScales::kBFloat16;

  const std::byte* block;
  size_t part;
  Floats d, d_min;

  HWY_INLINE BlockScaleReader(const std::byte* b, size_t p)
      : block(b), part(p) {
    if constexpr (kIsProduct) {
      d = LoadHalves(block + PartAt(part, 2));
      if constexpr (kFormat.has_mins) {
        d_min = LoadHalves(block + kHalves + PartAt(part, 2));
      }
    }
  }

  // Of scale group g of the block.
  HWY_INLINE Floats Scale(size_t g) const {
    const std::byte* halves = block + g * kHalves + PartAt(part, 2);
    if constexpr (kFormat.scales == PanelScales::kHalf) {
      return LoadHalves(halves);
    } else if constexpr (kFormat.scales == PanelScales::kBFloat16) {
      return LoadBFloats(halves);
    } else if constexpr (kFormat.scales == PanelScales::kHalfTimesInt8) {
      return Multiply(d, LoadSigned(Codes(g)));
    } else if constexpr (kFormat.scales == PanelScales::kHalfTimesUint8) {
      return Multiply(d, LoadUnsigned(Codes(g)));
    } else {
      return Multiply(d, LoadLowNibbles(Codes(g)));
    }
  }
  HWY_INLINE Floats Min(size_t g) const {
    if constexpr (kFormat.scales == PanelScales::kHalf) {
      return LoadHalves(block + (kNum + g) * kHalves + PartAt(part, 2));
    } else if constexpr (kFormat.scales == PanelScales::kHalfTimesUint8) {
      return Multiply(d_min, LoadUnsigned(Codes(kNum + g)));
    } else {
      return Multiply(d_min, LoadHighNibbles(Codes(g)));
    }
  }

 private:
  HWY_INLINE const std::byte* Codes(size_t g) const {
    return block + kHalves * (kFormat.has_mins ? 2 : 1) + g * kPanelRows +
           PartAt(part, 1);
  }
};

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
