#include "io/read_pieces.h"

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace muster::io {
namespace {

// EAGAIN without end would keep a thread busy for nothing.
constexpr int kMaxRetries = 1000;

size_t RoundDown(size_t bytes) { return bytes - bytes % kReadAlignment; }

bool IsAligned(uint64_t value) { return value % kReadAlignment == 0; }

std::vector<uint32_t> Numbers(size_t count) {
  std::vector<uint32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<uint32_t>(count - 1 - i);
  }
  return numbers;
}

}  // namespace

ReadPieces::ReadPieces(const Options& options)
    : options_(options),
      requests_(options.max_requests),
      free_requests_(Numbers(options.max_requests)),
      pieces_(options.max_pieces),
      free_pieces_(Numbers(options.max_pieces)) {
  CHECK_GT(options.max_requests, 0u);
  CHECK_GT(options.max_pieces, 0u);
  CHECK(IsAligned(options.split_bytes));
}

bool ReadPieces::Add(const ReadRequest& request) {
  CHECK(!request.dst.empty());
  CHECK(IsAligned(request.offset) && IsAligned(request.dst.size()) &&
        IsAligned(reinterpret_cast<uintptr_t>(request.dst.data())));
  if (num_requests() == options_.max_requests) return false;
  const uint32_t slot = free_requests_.back();
  free_requests_.pop_back();
  requests_[slot] = {.what = request};
  queue_.push_back(slot);
  ++num_open_;
  return true;
}

std::optional<uint32_t> ReadPieces::Start() {
  if (queue_.empty() || free_pieces_.empty()) return std::nullopt;
  const uint32_t slot = queue_.front();
  Request& request = requests_[slot];
  const uint32_t piece = free_pieces_.back();
  free_pieces_.pop_back();
  const size_t begin = request.num_started;
  const size_t left = request.what.dst.size() - begin;
  const size_t size =
      options_.split_bytes == 0 ? left : std::min(left, options_.split_bytes);
  pieces_[piece] = {.request = slot, .begin = begin, .end = begin + size};
  request.num_started += size;
  ++request.num_pieces;
  if (size == left) queue_.pop_front();
  return piece;
}

// Goes on at a page's start, also when the last read ended within a page: only
// such a read is direct.
ReadRequest ReadPieces::Rest(uint32_t piece) const {
  const Piece& p = pieces_[piece];
  const ReadRequest& what = requests_[p.request].what;
  const size_t from = p.begin + RoundDown(p.num_read);
  return {.fd = what.fd,
          .offset = what.offset + from,
          .dst = what.dst.subspan(from, p.end - from),
          .tag = what.tag};
}

bool ReadPieces::Ended(uint32_t piece, ssize_t result) {
  Piece& p = pieces_[piece];
  Request& request = requests_[p.request];
  if (result < 0) {
    const int error = static_cast<int>(-result);
    if (Retry(p, error)) return true;
    if (request.error == 0) request.error = error;
  } else {
    const size_t before = p.num_read;
    p.num_read =
        std::max(before, RoundDown(before) + static_cast<size_t>(result));
    if (p.begin + p.num_read < p.end) {
      if (p.num_read > before) return true;
      // Nothing more came: the file ends here.
      request.file_end = std::min(request.file_end, p.begin + p.num_read);
    }
  }
  free_pieces_.push_back(piece);
  --request.num_pieces;
  if (request.num_pieces == 0 &&
      request.num_started == request.what.dst.size()) {
    Finish(p.request);
  }
  return false;
}

bool ReadPieces::Retry(Piece& piece, int error) {
  return (error == EINTR || error == EAGAIN) &&
         ++piece.num_retries <= kMaxRetries;
}

void ReadPieces::Finish(uint32_t slot) {
  const Request& request = requests_[slot];
  ReadDone done{.tag = request.what.tag, .size_bytes = request.what.dst.size()};
  if (request.error != 0) {
    done.status = ReadStatus::kFailed;
    done.size_bytes = 0;
    done.error = request.error;
  } else if (request.file_end != kNoEnd) {
    done.status = ReadStatus::kShort;
    done.size_bytes = request.file_end;
  }
  done_.push_back(done);
  free_requests_.push_back(slot);
  --num_open_;
}

size_t ReadPieces::TakeDone(std::span<ReadDone> done) {
  const size_t count = std::min(done.size(), done_.size());
  std::copy_n(done_.begin(), count, done.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

}  // namespace muster::io
