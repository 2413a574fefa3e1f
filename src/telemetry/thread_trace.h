// The zones of one thread while a Trace lives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "telemetry/trace.h"

namespace muster::telemetry {

struct ZoneRecord {
  const char* name;
  const char* category;
  uint64_t begin;  // of TraceTicks()
  uint64_t end;
  const char* arg_names[2];  // null: none
  int64_t arg_values[2];
};

// One thread adds; any may read what is there, at any time. Bounded.
class ThreadTrace {
 public:
  // Of the calling thread.
  ThreadTrace(size_t capacity, uint64_t session);

  void Add(const ZoneRecord& zone) {
    const size_t at = size_.load(std::memory_order_relaxed);
    if (at == capacity_) {
      num_dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    zones_[at] = zone;
    size_.store(at + 1, std::memory_order_release);
  }

  std::span<const ZoneRecord> zones() const {
    return {zones_.get(), size_.load(std::memory_order_acquire)};
  }
  uint64_t num_dropped() const {
    return num_dropped_.load(std::memory_order_relaxed);
  }
  uint64_t session() const { return session_; }  // the Trace it belongs to
  int thread_id() const { return thread_id_; }
  const std::string& name() const { return name_; }

  // The calling thread's, registered at its first call in a Trace. REQUIRES: a
  // Trace lives or lived.
  static ThreadTrace& Current();
  // Those of the Trace that was begun last.
  static std::vector<std::shared_ptr<const ThreadTrace>> All();
  // Begins a Trace: threads register anew.
  static void StartSession(size_t capacity);

 private:
  const size_t capacity_;
  const uint64_t session_;
  const int thread_id_;
  const std::string name_;
  const std::unique_ptr<ZoneRecord[]> zones_;
  std::atomic<size_t> size_{0};
  std::atomic<uint64_t> num_dropped_{0};
};

}  // namespace muster::telemetry
