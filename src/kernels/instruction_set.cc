#include "kernels/instruction_set.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/instruction_set.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {
int64_t RunningTarget() { return HWY_TARGET; }
}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(RunningTarget);

namespace {

struct NamedTarget {
  const char* name;
  int64_t target;
  bool bfloat_products = false;
};

// Best last. Highway's other targets are folded into the nearest below.
constexpr NamedTarget kTargets[] = {
    {"baseline", HWY_STATIC_TARGET},
    {"avx2", HWY_AVX2},
    {"avx512", HWY_AVX3},
    {"avx512vnni", HWY_AVX3_DL},
    {"avx512bf16", HWY_AVX3_DL, true},
};

// What the CPU has, whatever is forced now.
int64_t DetectedTargets() {
  static const int64_t detected = hwy::SupportedTargets();
  return detected & HWY_TARGETS;
}

// Leaf 7, subleaf 1.
bool DetectsBFloatProducts() {
  unsigned int eax, ebx, ecx, edx;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax & bit_AVX512BF16) != 0;
}

bool IsSupported(const NamedTarget& t) {
  return (DetectedTargets() & t.target) != 0 &&
         (!t.bfloat_products || DetectsBFloatProducts());
}

// Changed by ForceInstructionSet alone.
bool& BFloatProducts() {
  static bool in_use = IsSupported(std::end(kTargets)[-1]);
  return in_use;
}

}  // namespace

bool UsesBFloatProducts() { return BFloatProducts(); }

std::vector<std::string> SupportedInstructionSets() {
  std::vector<std::string> names;
  for (const NamedTarget& t : kTargets) {
    if (IsSupported(t)) names.emplace_back(t.name);
  }
  return names;
}

std::string CurrentInstructionSet() {
  const int64_t running = HWY_DYNAMIC_DISPATCH(RunningTarget)();
  for (const NamedTarget& t : kTargets) {
    if (t.target == running && t.bfloat_products == UsesBFloatProducts()) {
      return t.name;
    }
  }
  return hwy::TargetName(running);
}

Status ForceInstructionSet(std::string_view name) {
  for (const NamedTarget& t : kTargets) {
    if (t.name != name) continue;
    if (!IsSupported(t)) break;
    hwy::SetSupportedTargetsForTest(t.target);
    hwy::GetChosenTarget().Update(t.target);
    BFloatProducts() = t.bfloat_products;
    return {};
  }
  return InvalidArgument(
      fmt::format("instruction set '{}' is not one of those that this CPU has: "
                  "{}",
                  name, fmt::join(SupportedInstructionSets(), ", ")));
}

// clang's __builtin_cpu_supports does not know it.
static bool HasF16C() {
  unsigned int eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

Status CheckCpu() {
  __builtin_cpu_init();
  std::string missing;
  if (!__builtin_cpu_supports("avx2")) missing += " AVX2";
  if (!__builtin_cpu_supports("fma")) missing += " FMA";
  if (!HasF16C()) missing += " F16C";
  if (missing.empty()) return {};
  return Unsupported(
      fmt::format("this CPU lacks{}: Muster needs an x86-64 processor with "
                  "AVX2, FMA and F16C (Intel since 2013, AMD since 2015)",
                  missing));
}

}  // namespace muster::kernels
#endif  // HWY_ONCE
