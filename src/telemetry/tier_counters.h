// What the tiers of experts did: raw sums, so that any two readings can be
// subtracted.
#pragma once

#include <cstdint>

namespace muster::telemetry {

struct TierCounters {
  // Experts that steps asked for, an expert once a layer and step.
  uint64_t queries = 0;
  uint64_t hits = 0;  // of them in memory already
  // Of the rest: on their way already, because of a guess or an earlier step.
  uint64_t joined = 0;
  // From the tier below into memory, whoever asked.
  uint64_t fetched_experts = 0;
  uint64_t fetched_bytes = 0;
  // Of them, those that a guess asked for, and how many of those a step used.
  uint64_t guessed_experts = 0;
  uint64_t good_guesses = 0;
  uint64_t guessed_bytes = 0;
  uint64_t good_guess_bytes = 0;
  // Experts that layers called while guesses were made for them, and how many
  // of those were among them, in memory or not.
  uint64_t called_experts = 0;
  uint64_t foreseen_experts = 0;
  // Of cache-aware routing: experts that tokens chose, and how many of those
  // stand in for one that was not in memory.
  uint64_t aware_choices = 0;
  uint64_t replaced_choices = 0;
  // Experts that a turn computed from their low-bit copies, and what of copies
  // was read for it, which fetched_bytes has too.
  uint64_t tail_experts = 0;
  uint64_t tail_bytes = 0;
  uint64_t evictions = 0;
  // Of them, of experts that had not earned their place, and that were idle.
  uint64_t transient_evictions = 0;
  uint64_t idle_evictions = 0;
  uint64_t failed_reads = 0;       // each was tried again, or failed its step
  uint64_t checksum_failures = 0;  // of them, because the bytes were wrong
  // Of a remote model: see experts/expert_fetcher.h.
  uint64_t staged_experts = 0;
  uint64_t remote_experts = 0;
  uint64_t dropped_experts = 0;
  uint64_t remote_bytes = 0;
  double stall_seconds = 0;   // the step had nothing to do but wait
  double unpack_seconds = 0;  // verifying and converting what had come

  // What happened since `earlier`, an older reading of the same.
  TierCounters Since(const TierCounters& earlier) const {
    TierCounters d = *this;
    d.queries -= earlier.queries;
    d.hits -= earlier.hits;
    d.joined -= earlier.joined;
    d.fetched_experts -= earlier.fetched_experts;
    d.fetched_bytes -= earlier.fetched_bytes;
    d.guessed_experts -= earlier.guessed_experts;
    d.good_guesses -= earlier.good_guesses;
    d.guessed_bytes -= earlier.guessed_bytes;
    d.good_guess_bytes -= earlier.good_guess_bytes;
    d.called_experts -= earlier.called_experts;
    d.foreseen_experts -= earlier.foreseen_experts;
    d.aware_choices -= earlier.aware_choices;
    d.replaced_choices -= earlier.replaced_choices;
    d.tail_experts -= earlier.tail_experts;
    d.tail_bytes -= earlier.tail_bytes;
    d.evictions -= earlier.evictions;
    d.transient_evictions -= earlier.transient_evictions;
    d.idle_evictions -= earlier.idle_evictions;
    d.failed_reads -= earlier.failed_reads;
    d.checksum_failures -= earlier.checksum_failures;
    d.staged_experts -= earlier.staged_experts;
    d.remote_experts -= earlier.remote_experts;
    d.dropped_experts -= earlier.dropped_experts;
    d.remote_bytes -= earlier.remote_bytes;
    d.stall_seconds -= earlier.stall_seconds;
    d.unpack_seconds -= earlier.unpack_seconds;
    return d;
  }

  void Add(const TierCounters& more) {
    TierCounters negative = TierCounters{}.Since(more);
    *this = Since(negative);
  }

  double replaced_share() const {
    return aware_choices == 0 ? 0
                              : static_cast<double>(replaced_choices) /
                                    static_cast<double>(aware_choices);
  }

  double foreseen_share() const {
    return called_experts == 0 ? 0
                               : static_cast<double>(foreseen_experts) /
                                     static_cast<double>(called_experts);
  }

  double tail_share() const {
    return queries == 0 ? 0
                        : static_cast<double>(tail_experts) /
                              static_cast<double>(queries);
  }

  double hit_rate() const {
    return queries == 0
               ? 0
               : static_cast<double>(hits) / static_cast<double>(queries);
  }
};

}  // namespace muster::telemetry
