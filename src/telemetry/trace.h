// A timeline of what each thread did, for Perfetto and chrome://tracing. Code
// marks zones; while a Trace lives they are recorded, and otherwise a zone
// costs one relaxed load and a branch. docs/tracing.md says what a user sees.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iosfwd>

namespace muster::telemetry {

// A number shown with a zone, such as the layer. `name` is a literal.
struct TraceArg {
  const char* name = nullptr;  // null: none
  int64_t value = 0;
};

// Records all zones of the process from construction on. One at a time.
class Trace {
 public:
  // Some hundred tokens of a large model; 19 MB a thread.
  static constexpr size_t kZonesPerThread = size_t{1} << 18;

  // A thread's zones beyond `zones_per_thread` are counted and not kept.
  explicit Trace(size_t zones_per_thread = kZonesPerThread);
  // Stops recording. Zones that are open then are not recorded.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static bool IsOn() { return is_on_.load(std::memory_order_relaxed); }

  // Writes the zones that have ended as Chrome's JSON: {"traceEvents": [...]},
  // with the number of dropped zones in "otherData". Other threads may go on.
  void WriteJson(std::ostream& out) const;

 private:
  static std::atomic<bool> is_on_;

  uint64_t start_ticks_;
  int64_t start_ns_;  // the steady clock at start_ticks_
};

// The clock of traces: quicker than the steady clock, in units that WriteJson
// finds out.
uint64_t TraceTicks();

// Records what was timed by other means: [begin, end] of TraceTicks() on the
// calling thread, inside whatever zone is open. `name` and `category` are
// literals. Does nothing unless a Trace lives.
void RecordZone(const char* name, const char* category, uint64_t begin,
                uint64_t end, TraceArg a = {}, TraceArg b = {});

// From construction to destruction is a zone of this thread; zones nest. `name`
// is a literal. A zone that began before the Trace is not recorded.
class TraceZone {
 public:
  explicit TraceZone(const char* name, TraceArg a = {}, TraceArg b = {}) {
    if (Trace::IsOn()) [[unlikely]] {
      Begin(name, a, b);
    }
  }
  ~TraceZone() {
    if (name_ != nullptr) [[unlikely]] {
      End();
    }
  }
  TraceZone(const TraceZone&) = delete;
  TraceZone& operator=(const TraceZone&) = delete;

  // The name of the calling thread's innermost open zone; null: none.
  static const char* CurrentName();

 private:
  void Begin(const char* name, TraceArg a, TraceArg b);
  void End();

  const char* name_ = nullptr;  // null: not recorded
  const TraceZone* outer_;
  uint64_t begin_;
  TraceArg a_, b_;
};

}  // namespace muster::telemetry
