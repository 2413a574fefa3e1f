#include "telemetry/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <ostream>
#include <string>

#include "base/check.h"
#include "telemetry/thread_trace.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace muster::telemetry {
namespace {

thread_local const TraceZone* innermost_zone = nullptr;

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c < ' ' || c > '~') {  // nothing that JSON could refuse
      out += '?';
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Writes the events of a trace one by one.
class EventWriter {
 public:
  EventWriter(std::ostream& out, uint64_t start_ticks, double us_per_tick)
      : out_(out), start_ticks_(start_ticks), us_per_tick_(us_per_tick) {}

  void Name(const char* kind, int thread_id, const std::string& name) {
    Separate();
    out_ << fmt::format(
        R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})",
        kind, getpid(), thread_id, JsonString(name));
  }

  void Zone(int thread_id, const ZoneRecord& zone) {
    Separate();
    const double begin = Microseconds(zone.begin);
    out_ << fmt::format(
        R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{:.3f},)"
        R"("dur":{:.3f},"args":{{{}}}}})",
        JsonString(zone.name), JsonString(zone.category), getpid(), thread_id,
        begin, Microseconds(zone.end) - begin, Args(zone));
  }

 private:
  void Separate() {
    out_ << (is_first_ ? "\n" : ",\n");
    is_first_ = false;
  }

  double Microseconds(uint64_t ticks) const {
    return static_cast<double>(static_cast<int64_t>(ticks - start_ticks_)) *
           us_per_tick_;
  }

  static std::string Args(const ZoneRecord& zone) {
    std::string out;
    for (size_t i = 0; i < 2; ++i) {
      if (zone.arg_names[i] == nullptr) continue;
      out += fmt::format("{}{}:{}", out.empty() ? "" : ",",
                         JsonString(zone.arg_names[i]), zone.arg_values[i]);
    }
    return out;
  }

  std::ostream& out_;
  const uint64_t start_ticks_;
  const double us_per_tick_;
  bool is_first_ = true;
};

}  // namespace

std::atomic<bool> Trace::is_on_{false};

Trace::Trace(size_t zones_per_thread)
    : start_ticks_(TraceTicks()), start_ns_(SteadyNanoseconds()) {
  CHECK(!IsOn());
  ThreadTrace::StartSession(zones_per_thread);
  is_on_.store(true);
}

Trace::~Trace() { is_on_.store(false); }

void Trace::WriteJson(std::ostream& out) const {
  const double ticks = static_cast<double>(TraceTicks() - start_ticks_);
  const double us =
      static_cast<double>(SteadyNanoseconds() - start_ns_) / 1000.0;
  EventWriter writer(out, start_ticks_, us / ticks);
  uint64_t num_dropped = 0;
  out << "{\"traceEvents\":[";
  writer.Name("process_name", getpid(), "muster");
  for (const auto& thread : ThreadTrace::All()) {
    writer.Name("thread_name", thread->thread_id(), thread->name());
    for (const ZoneRecord& zone : thread->zones()) {
      if (zone.begin < start_ticks_) continue;
      writer.Zone(thread->thread_id(), zone);
    }
    num_dropped += thread->num_dropped();
  }
  out << fmt::format("\n],\"otherData\":{{\"dropped_zones\":{}}}}}\n",
                     num_dropped);
}

uint64_t TraceTicks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(SteadyNanoseconds());
#endif
}

void RecordZone(const char* name, const char* category, uint64_t begin,
                uint64_t end, TraceArg a, TraceArg b) {
  if (!Trace::IsOn()) return;
  ThreadTrace::Current().Add({.name = name,
                              .category = category,
                              .begin = begin,
                              .end = end,
                              .arg_names = {a.name, b.name},
                              .arg_values = {a.value, b.value}});
}

void TraceZone::Begin(const char* name, TraceArg a, TraceArg b) {
  ThreadTrace::Current();  // a thread's first takes memory: outside the zone
  name_ = name;
  a_ = a;
  b_ = b;
  outer_ = innermost_zone;
  innermost_zone = this;
  begin_ = TraceTicks();
}

void TraceZone::End() {
  const uint64_t end = TraceTicks();
  innermost_zone = outer_;
  RecordZone(name_, "zone", begin_, end, a_, b_);
}

const char* TraceZone::CurrentName() {
  return innermost_zone == nullptr ? nullptr : innermost_zone->name_;
}

}  // namespace muster::telemetry
