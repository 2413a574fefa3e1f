#include "io/uring_engine.h"

#include <fmt/format.h>
#include <liburing.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/read_pieces.h"

namespace muster::io {
namespace {

constexpr size_t kMaxDepth = 4096;
// The kernel registers no larger buffer.
constexpr size_t kRegisteredPieceBytes = size_t{1} << 30;

class UringEngine final : public ReadEngine {
 public:
  static Result<std::unique_ptr<ReadEngine>> Open(const UringOptions& options);
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;
  ~UringEngine() override;

  std::string Name() const override { return name_; }
  size_t Submit(std::span<const ReadRequest> requests) override;
  size_t Wait(size_t min_done, std::span<ReadDone> done) override;
  size_t num_in_flight() const override { return pieces_.num_requests(); }

 private:
  explicit UringEngine(const UringOptions& options);

  void Register(std::span<std::byte> memory);
  std::optional<int> RegisteredBuffer(std::span<const std::byte> dst) const;
  void QueuePieces();
  void QueueRead(uint32_t piece);
  void Enter(unsigned min_ended);
  void Reap();

  io_uring ring_{};
  ReadPieces pieces_;
  std::span<std::byte> registered_;
  std::string name_;
};

UringEngine::UringEngine(const UringOptions& options)
    : pieces_({.max_requests = options.depth,
               .max_pieces = options.depth,
               .split_bytes = options.split_bytes}),
      name_(fmt::format("io_uring, depth {}", options.depth)) {}

Result<std::unique_ptr<ReadEngine>> UringEngine::Open(
    const UringOptions& options) {
  CHECK(options.depth > 0 && options.depth <= kMaxDepth);
  std::unique_ptr<UringEngine> engine(new UringEngine(options));
  const int error = -io_uring_queue_init(static_cast<unsigned>(options.depth),
                                         &engine->ring_, 0);
  if (error != 0) {
    engine->ring_.ring_fd = -1;
    const Code code = error == ENOMEM || error == EMFILE || error == ENFILE
                          ? Code::kResourceExhausted
                          : Code::kUnsupported;
    return Status(code, fmt::format("io_uring: {}", std::strerror(error)));
  }
  engine->Register(options.registered);
  return std::unique_ptr<ReadEngine>(std::move(engine));
}

UringEngine::~UringEngine() {
  if (ring_.ring_fd < 0) return;
  pieces_.DropQueue();
  while (pieces_.num_started() > 0) {
    Enter(1);
    Reap();
  }
  io_uring_queue_exit(&ring_);
}

void UringEngine::Register(std::span<std::byte> memory) {
  if (memory.empty()) return;
  std::vector<iovec> buffers;
  for (size_t begin = 0; begin < memory.size();
       begin += kRegisteredPieceBytes) {
    buffers.push_back(
        {.iov_base = memory.data() + begin,
         .iov_len = std::min(kRegisteredPieceBytes, memory.size() - begin)});
  }
  const int error = -io_uring_register_buffers(
      &ring_, buffers.data(), static_cast<unsigned>(buffers.size()));
  if (error == 0) {
    registered_ = memory;
    name_ += ", registered buffers";
  } else {
    name_ += fmt::format(", buffers not registered: {}", std::strerror(error));
  }
}

// The one that `dst` lies in; nullopt: none, or two.
std::optional<int> UringEngine::RegisteredBuffer(
    std::span<const std::byte> dst) const {
  const auto begin = reinterpret_cast<uintptr_t>(dst.data());
  const auto base = reinterpret_cast<uintptr_t>(registered_.data());
  if (begin < base || begin + dst.size() > base + registered_.size()) {
    return std::nullopt;
  }
  const size_t first = (begin - base) / kRegisteredPieceBytes;
  const size_t last = (begin - base + dst.size() - 1) / kRegisteredPieceBytes;
  if (first != last) return std::nullopt;
  return static_cast<int>(first);
}

size_t UringEngine::Submit(std::span<const ReadRequest> requests) {
  size_t count = 0;
  while (count < requests.size() && pieces_.Add(requests[count])) ++count;
  QueuePieces();
  if (io_uring_sq_ready(&ring_) > 0) Enter(0);
  return count;
}

size_t UringEngine::Wait(size_t min_done, std::span<ReadDone> done) {
  CHECK_LE(min_done, num_in_flight());
  CHECK_LE(min_done, done.size());
  Reap();
  if (io_uring_sq_ready(&ring_) > 0) Enter(0);
  while (pieces_.num_done() < min_done) {
    Enter(1);
    Reap();
  }
  return pieces_.TakeDone(done);
}

void UringEngine::QueuePieces() {
  while (const auto piece = pieces_.Start()) QueueRead(*piece);
}

// There is room: as many entries as pieces, and each has one at most.
void UringEngine::QueueRead(uint32_t piece) {
  const ReadRequest rest = pieces_.Rest(piece);
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  CHECK(entry != nullptr);
  const auto size =
      static_cast<unsigned>(std::min(rest.dst.size(), kRegisteredPieceBytes));
  if (const auto buffer = RegisteredBuffer(rest.dst)) {
    io_uring_prep_read_fixed(entry, rest.fd, rest.dst.data(), size, rest.offset,
                             *buffer);
  } else {
    io_uring_prep_read(entry, rest.fd, rest.dst.data(), size, rest.offset);
  }
  entry->user_data = piece;
}

// Hands the queued reads to the kernel and waits for `min_ended` of those that
// it has. Comes back early on a signal and when the kernel wants completions to
// be reaped first: callers loop.
void UringEngine::Enter(unsigned min_ended) {
  const int result = io_uring_submit_and_wait(&ring_, min_ended);
  CHECK(result >= 0 || result == -EINTR || result == -EAGAIN ||
        result == -EBUSY);
}

void UringEngine::Reap() {
  std::array<io_uring_cqe*, 32> entries;
  while (true) {
    const unsigned count =
        io_uring_peek_batch_cqe(&ring_, entries.data(), entries.size());
    if (count == 0) return;
    for (unsigned i = 0; i < count; ++i) {
      const auto piece = static_cast<uint32_t>(entries[i]->user_data);
      if (pieces_.Ended(piece, entries[i]->res)) QueueRead(piece);
    }
    io_uring_cq_advance(&ring_, count);
    QueuePieces();
  }
}

}  // namespace

Result<std::unique_ptr<ReadEngine>> OpenUringEngine(
    const UringOptions& options) {
  return UringEngine::Open(options);
}

}  // namespace muster::io
