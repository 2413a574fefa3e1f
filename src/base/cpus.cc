#include "base/cpus.h"

#include <hwloc.h>

#include <algorithm>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap =
    std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

// null when the system does not say.
hwloc_topology_t Load(const char* synthetic) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  // Cores are all that is asked for; and reading must not bind the caller.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE,
                                 HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_flags(topology,
                           HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                               HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  if (synthetic != nullptr) {
    CHECK_EQ(hwloc_topology_set_synthetic(topology, synthetic), 0);
  }
  if (hwloc_topology_load(topology) == 0) return topology;
  hwloc_topology_destroy(topology);
  return nullptr;
}

}  // namespace

CpuTopology::CpuTopology() : topology_(Load(nullptr)) {}

CpuTopology::CpuTopology(const std::string& synthetic)
    : topology_(Load(synthetic.c_str())) {}

CpuTopology::~CpuTopology() {
  if (topology_ != nullptr) hwloc_topology_destroy(topology_);
}

const CpuTopology& CpuTopology::OfThisMachine() {
  static const CpuTopology topology;
  return topology;
}

unsigned CpuTopology::CoreOf(unsigned cpu) const {
  constexpr unsigned kUnknown = 1u << 31;
  if (topology_ == nullptr) return kUnknown + cpu;
  hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology_, cpu);
  if (pu == nullptr) return kUnknown + cpu;
  hwloc_obj_t core =
      hwloc_get_ancestor_obj_by_type(topology_, HWLOC_OBJ_CORE, pu);
  return core == nullptr ? kUnknown + cpu : core->logical_index;
}

CpuList CpuTopology::InPinningOrder(const CpuList& cpus) const {
  struct Place {
    unsigned num_before = 0;  // processors of the same core before this one
    unsigned core = 0;
    unsigned cpu = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): sees a null in <=>
    auto operator<=>(const Place&) const = default;
  };
  std::map<unsigned, unsigned> num_taken;  // of each core
  std::vector<Place> places;
  places.reserve(cpus.size());
  for (const unsigned cpu : cpus) {
    const unsigned core = CoreOf(cpu);
    places.push_back({num_taken[core]++, core, cpu});
  }
  std::sort(places.begin(), places.end());
  CpuList ordered;
  ordered.reserve(cpus.size());
  for (const Place& place : places) ordered.push_back(place.cpu);
  return ordered;
}

size_t CpuTopology::NumCores(const CpuList& cpus) const {
  std::vector<unsigned> cores;
  cores.reserve(cpus.size());
  for (const unsigned cpu : cpus) cores.push_back(CoreOf(cpu));
  std::sort(cores.begin(), cores.end());
  return static_cast<size_t>(std::unique(cores.begin(), cores.end()) -
                             cores.begin());
}

CpuList AllowedCpus() {
  hwloc_topology_t topology = CpuTopology::OfThisMachine().topology_;
  const Bitmap bitmap(hwloc_bitmap_alloc());
  CpuList cpus;
  if (topology == nullptr ||
      hwloc_get_cpubind(topology, bitmap.get(), HWLOC_CPUBIND_THREAD) != 0) {
    return cpus;
  }
  for (int cpu = hwloc_bitmap_first(bitmap.get()); cpu >= 0;
       cpu = hwloc_bitmap_next(bitmap.get(), cpu)) {
    cpus.push_back(static_cast<unsigned>(cpu));
  }
  return cpus;
}

bool BindThisThread(const CpuList& cpus) {
  hwloc_topology_t topology = CpuTopology::OfThisMachine().topology_;
  if (topology == nullptr || cpus.empty()) return false;
  const Bitmap bitmap(hwloc_bitmap_alloc());
  for (const unsigned cpu : cpus) hwloc_bitmap_set(bitmap.get(), cpu);
  return hwloc_set_cpubind(topology, bitmap.get(), HWLOC_CPUBIND_THREAD) == 0;
}

}  // namespace muster
