// Which processors this process may use, and binding threads to them. Linux,
// through hwloc. A processor ("cpu") is what the system schedules on: a core,
// or one of its hardware threads. All calls are thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

struct hwloc_topology;

namespace muster {

using CpuList = std::vector<unsigned>;  // the system's numbers

// Where the calling thread may run: its affinity mask, which is within the
// cpuset of the control group. Ascending. Empty when the system will not say.
CpuList AllowedCpus();

// Lets the calling thread run on `cpus` only. False when the system refuses;
// nothing has changed then.
bool BindThisThread(const CpuList& cpus);

// Which processors share a core.
class CpuTopology {
 public:
  // This machine; read at the first call, which takes some milliseconds.
  static const CpuTopology& OfThisMachine();

  // A made-up machine in hwloc's notation: "pack:2 core:4 pu:2".
  explicit CpuTopology(const std::string& synthetic);
  ~CpuTopology();
  CpuTopology(const CpuTopology&) = delete;
  CpuTopology& operator=(const CpuTopology&) = delete;

  // `cpus` such that the first n are the best n to pin threads to: one of each
  // physical core, neighbours together, then the second of each core, ...
  CpuList InPinningOrder(const CpuList& cpus) const;

  // Physical cores among `cpus`.
  size_t NumCores(const CpuList& cpus) const;

 private:
  friend CpuList AllowedCpus();
  friend bool BindThisThread(const CpuList& cpus);

  CpuTopology();

  // The physical core of a processor, in the order of neighbourhood. One that
  // the topology does not know is a core of its own, behind the others.
  unsigned CoreOf(unsigned cpu) const;

  hwloc_topology* topology_ = nullptr;  // null: it could not be read
};

}  // namespace muster
