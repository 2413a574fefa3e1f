// For tests: reads from memory, at once and in order.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/read_engine.h"

namespace muster::io {

class MemoryReadEngine final : public ReadEngine {
 public:
  // The "files", by the fd that requests name. Another fd fails with EBADF.
  explicit MemoryReadEngine(std::map<int, std::vector<std::byte>> files,
                            size_t depth = 32)
      : files_(std::move(files)), depth_(depth) {}

  std::string Name() const override { return "memory"; }

  size_t Submit(std::span<const ReadRequest> requests) override {
    const size_t count = std::min(requests.size(), depth_ - done_.size());
    for (const ReadRequest& r : requests.first(count)) done_.push_back(Read(r));
    num_requests_ += count;
    return count;
  }

  size_t Wait(size_t min_done, std::span<ReadDone> done) override {
    CHECK_LE(min_done, done_.size());
    CHECK_LE(min_done, done.size());
    const size_t count = std::min(done.size(), done_.size());
    std::copy_n(done_.begin(), count, done.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(count));
    return count;
  }

  size_t num_in_flight() const override { return done_.size(); }

  size_t num_requests() const { return num_requests_; }  // ever started

 private:
  ReadDone Read(const ReadRequest& request) const {
    CHECK(request.offset % kReadAlignment == 0 &&
          request.dst.size() % kReadAlignment == 0 && !request.dst.empty());
    const auto file = files_.find(request.fd);
    if (file == files_.end()) {
      return {
          .tag = request.tag, .status = ReadStatus::kFailed, .error = EBADF};
    }
    const std::vector<std::byte>& bytes = file->second;
    const size_t begin = std::min<size_t>(request.offset, bytes.size());
    const size_t size = std::min(request.dst.size(), bytes.size() - begin);
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(begin), size,
                request.dst.begin());
    return {.tag = request.tag,
            .status = size == request.dst.size() ? ReadStatus::kOk
                                                 : ReadStatus::kShort,
            .size_bytes = size};
  }

  std::map<int, std::vector<std::byte>> files_;
  size_t depth_;
  std::deque<ReadDone> done_;
  size_t num_requests_ = 0;
};

}  // namespace muster::io
