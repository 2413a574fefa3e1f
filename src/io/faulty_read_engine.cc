#include "io/faulty_read_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster::io {
namespace {

constexpr std::byte kRubbish{0xA5};

bool Hits(const ReadFault& fault, uint64_t number, const ReadRequest& request) {
  if (fault.num_times == 0) return false;
  if (fault.nth && *fault.nth != number) return false;
  if (fault.fd && *fault.fd != request.fd) return false;
  return !fault.offset || (*fault.offset >= request.offset &&
                           *fault.offset - request.offset < request.dst.size());
}

}  // namespace

FaultyReadEngine::FaultyReadEngine(std::unique_ptr<ReadEngine> engine,
                                   FaultyOptions options)
    : engine_(std::move(engine)),
      options_(std::move(options)),
      random_(options_.seed) {}

std::string FaultyReadEngine::Name() const {
  return fmt::format("{}, with faults", engine_->Name());
}

size_t FaultyReadEngine::Submit(std::span<const ReadRequest> requests) {
  std::vector<ReadRequest> renamed(requests.begin(), requests.end());
  for (size_t i = 0; i < renamed.size(); ++i) renamed[i].tag = num_started_ + i;
  const size_t count = engine_->Submit(renamed);
  for (size_t i = 0; i < count; ++i) {
    const auto fault = FaultOf(requests[i]);
    started_[num_started_++] = {.request = requests[i], .fault = fault};
  }
  return count;
}

std::optional<ReadFault> FaultyReadEngine::FaultOf(const ReadRequest& request) {
  for (ReadFault& fault : options_.faults) {
    if (!Hits(fault, num_started_, request)) continue;
    --fault.num_times;
    ++num_faults_;
    return fault;
  }
  return std::nullopt;
}

size_t FaultyReadEngine::Wait(size_t min_done, std::span<ReadDone> done) {
  CHECK_LE(min_done, num_in_flight());
  CHECK_LE(min_done, done.size());
  if (options_.order != DoneOrder::kAsTheyEnd) {
    Fetch(num_in_flight());
    std::ranges::sort(ended_, std::greater(), &EndedRead::number);
    if (options_.order == DoneOrder::kShuffled) {
      std::ranges::shuffle(ended_, random_);
    }
  } else {
    Fetch(min_done);
  }
  const size_t most = options_.lazy ? min_done : done.size();
  const size_t count = std::min(most, ended_.size());
  for (size_t i = 0; i < count; ++i) done[i] = ended_[i].done;
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

// Until at least `min_done` have ended here.
void FaultyReadEngine::Fetch(size_t min_done) {
  std::vector<ReadDone> inner(engine_->num_in_flight());
  const size_t missing =
      min_done > ended_.size() ? min_done - ended_.size() : 0;
  inner.resize(engine_->Wait(missing, inner));
  for (const ReadDone& done : inner) {
    ended_.push_back({.number = done.tag, .done = End(done)});
  }
}

ReadDone FaultyReadEngine::End(const ReadDone& inner) {
  const auto found = started_.find(inner.tag);
  const Started started = found->second;
  started_.erase(found);
  ReadDone done = inner;
  done.tag = started.request.tag;
  if (!started.fault) return done;
  const std::span<std::byte> dst = started.request.dst;
  switch (started.fault->kind) {
    case ReadFault::Kind::kError:
      done.status = ReadStatus::kFailed;
      done.size_bytes = 0;
      done.error = started.fault->error;
      std::ranges::fill(dst, kRubbish);
      break;
    case ReadFault::Kind::kShort:
      done.status = ReadStatus::kShort;
      done.size_bytes = std::min(done.size_bytes, started.fault->keep_bytes);
      std::ranges::fill(dst.subspan(done.size_bytes), kRubbish);
      break;
    case ReadFault::Kind::kFlipByte:
      dst[started.fault->flip_byte % dst.size()] ^= started.fault->flip_mask;
      break;
  }
  return done;
}

}  // namespace muster::io
