#include "io/object/object_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "io/file.h"
#include "io/object/digest.h"
#include "io/object/partial_file.h"

namespace muster::io {
namespace {

// What is read in one piece when the server knows no ranges.
constexpr uint64_t kMaxWholeBytes = 256 << 20;

Result<DownloadPlan> PlanOf(const ObjectInfo& info,
                            const DownloadOptions& options) {
  DownloadPlan plan = {.size_bytes = info.size_bytes,
                       .part_bytes = options.part_bytes,
                       .etag = info.etag,
                       .sha256 = info.sha256};
  if (!options.sha256.empty() && !info.sha256.empty() &&
      options.sha256 != info.sha256) {
    return Corrupt(fmt::format("{}: SHA-256 {} was expected, the server has {}",
                               info.name, options.sha256, info.sha256));
  }
  if (plan.sha256.empty()) plan.sha256 = options.sha256;
  if (!info.accepts_ranges && info.size_bytes > 0) {
    if (info.size_bytes > kMaxWholeBytes) {
      return Unsupported(fmt::format(
          "{}: {} and a server without ranges; such objects are read up to {}",
          info.name, FormatBytes(info.size_bytes),
          FormatBytes(kMaxWholeBytes)));
    }
    plan.part_bytes = info.size_bytes;
  }
  return plan;
}

Result<std::string> Sha256OfFile(const std::string& path,
                                 DownloadProgress& progress) {
  ASSIGN_OR_RETURN(const File file, File::Open(path));
  std::vector<std::byte> buffer(1 << 20);
  Sha256 sha;
  for (uint64_t at = 0; at < file.size_bytes() && !progress.stop;) {
    const auto bytes = std::span(buffer).first(static_cast<size_t>(
        std::min<uint64_t>(buffer.size(), file.size_bytes() - at)));
    RETURN_IF_ERROR(file.ReadAt(at, bytes));
    sha.Update(bytes);
    at += bytes.size();
    progress.verified_bytes = at;
  }
  return Hex(sha.Finish());
}

Status Cancelled(const std::string& name) {
  return Status(Code::kCancelled, name + ": stopped");
}

// Keeps `max_parallel` parts under way until all are written or one fails.
class PartFetcher {
 public:
  PartFetcher(ObjectClient& client, ObjectId object, PartialFile& file,
              const DownloadOptions& options, DownloadProgress& progress)
      : client_(client),
        object_(object),
        file_(file),
        options_(options),
        progress_(progress),
        buffers_(options.max_parallel) {
    CHECK_GT(options.max_parallel, 0u);
    CHECK_EQ(client.num_in_flight(), 0u);
    for (size_t slot = 0; slot < buffers_.size(); ++slot) free_.push_back(slot);
  }

  Status Run() {
    Status status = FetchAll();
    // What arrived is kept even when the rest did not.
    const Status synced = file_.Sync();
    return status.ok() ? synced : status;
  }

  uint64_t fetched_bytes() const { return fetched_bytes_; }

 private:
  struct Buffer {
    std::vector<std::byte> bytes;
    size_t part = 0;
  };

  Status FetchAll() {
    Status failure;
    while (true) {
      if (failure.ok() && progress_.stop) {
        failure = Cancelled(client_.Info(object_).name);
        CancelAll();
      }
      if (failure.ok()) StartMore();
      if (client_.num_in_flight() == 0) return failure;
      RangeDone done;
      if (client_.Wait(1, {&done, 1}) == 0) continue;
      Status status = Take(done);
      if (failure.ok() && !status.ok()) {
        failure = std::move(status);
        CancelAll();
      }
    }
  }

  void StartMore() {
    while (!free_.empty()) {
      while (next_ < file_.plan().NumParts() && file_.HasPart(next_)) ++next_;
      if (next_ >= file_.plan().NumParts()) return;
      Buffer& buffer = buffers_[free_.back()];
      buffer.part = next_;
      buffer.bytes.resize(static_cast<size_t>(file_.plan().BytesOf(next_)));
      const RangeRequest request = {.object = object_,
                                    .offset = file_.plan().OffsetOf(next_),
                                    .dst = buffer.bytes,
                                    .tag = free_.back()};
      if (client_.Submit({&request, 1}) == 0) return;
      free_.pop_back();
      ++next_;
    }
  }

  Status Take(const RangeDone& done) {
    const size_t slot = static_cast<size_t>(done.tag);
    const Buffer& buffer = buffers_[slot];
    free_.push_back(slot);
    RETURN_IF_ERROR(done.status);
    RETURN_IF_ERROR(file_.Write(buffer.part, buffer.bytes));
    fetched_bytes_ += buffer.bytes.size();
    unsynced_bytes_ += buffer.bytes.size();
    progress_.done_bytes += buffer.bytes.size();
    if (unsynced_bytes_ < options_.sync_bytes) return {};
    unsynced_bytes_ = 0;
    return file_.Sync();
  }

  void CancelAll() {
    for (size_t slot = 0; slot < buffers_.size(); ++slot) client_.Cancel(slot);
  }

  ObjectClient& client_;
  const ObjectId object_;
  PartialFile& file_;
  const DownloadOptions& options_;
  DownloadProgress& progress_;
  std::vector<Buffer> buffers_;
  std::vector<size_t> free_;  // of buffers_
  size_t next_ = 0;           // the first part that was not started
  uint64_t fetched_bytes_ = 0;
  uint64_t unsynced_bytes_ = 0;
};

Status Verify(const ObjectInfo& info, PartialFile& file,
              DownloadProgress& progress) {
  if (file.plan().sha256.empty()) return {};
  ASSIGN_OR_RETURN(const std::string found,
                   Sha256OfFile(file.partial_path(), progress));
  if (progress.stop) return Cancelled(info.name);
  if (found == file.plan().sha256) return {};
  file.Discard();
  return Corrupt(
      fmt::format("{}: SHA-256 is {}, {} was expected; the download was "
                  "removed, try again",
                  info.name, found, file.plan().sha256));
}

// Whether `path` already is the object, for certain.
bool IsThere(const std::string& path, const DownloadPlan& plan,
             DownloadProgress& progress) {
  if (plan.sha256.empty()) return false;
  const auto file = File::Open(path);
  if (!file.ok() || file->size_bytes() != plan.size_bytes) return false;
  const auto found = Sha256OfFile(path, progress);
  return found.ok() && *found == plan.sha256;
}

}  // namespace

Result<DownloadOutcome> DownloadObject(ObjectClient& client,
                                       const std::string& url,
                                       const std::string& path,
                                       const DownloadOptions& options,
                                       DownloadProgress& progress) {
  ASSIGN_OR_RETURN(const ObjectId object, client.Open(url));
  const ObjectInfo info = client.Info(object);
  ASSIGN_OR_RETURN(const DownloadPlan plan, PlanOf(info, options));
  DownloadOutcome outcome = {.size_bytes = plan.size_bytes,
                             .sha256 = plan.sha256};
  progress.total_bytes = plan.size_bytes;
  if (IsThere(path, plan, progress)) {
    progress.done_bytes = plan.size_bytes;
    return outcome;
  }
  ASSIGN_OR_RETURN(const auto file, PartialFile::Open(path, plan));
  progress.done_bytes = plan.size_bytes - file->MissingBytes();
  PartFetcher fetcher(client, object, *file, options, progress);
  RETURN_IF_ERROR(fetcher.Run());
  RETURN_IF_ERROR(Verify(info, *file, progress));
  RETURN_IF_ERROR(file->Commit());
  outcome.fetched_bytes = fetcher.fetched_bytes();
  return outcome;
}

}  // namespace muster::io
