#include "io/remote_files.h"

#include <utility>

namespace muster::io {
namespace {

struct Installed {
  Mutex mutex;
  std::weak_ptr<RemoteFiles> files GUARDED_BY(mutex);
};

Installed& TheInstalled() {
  static Installed installed;
  return installed;
}

}  // namespace

void ReadyQueue::Push(RangesReady ready) {
  // Told under the lock: whoever waits may destroy the queue once it has it.
  MutexLock lock(mutex_);
  queue_.push_back(std::move(ready));
  pushed_.NotifyOne();
}

RangesReady ReadyQueue::Wait() {
  MutexLock lock(mutex_);
  while (queue_.empty()) pushed_.Wait(mutex_);
  RangesReady ready = std::move(queue_.front());
  queue_.pop_front();
  return ready;
}

bool ReadyQueue::Take(RangesReady* ready) {
  MutexLock lock(mutex_);
  if (queue_.empty()) return false;
  *ready = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

Result<RangeHold> RangeHold::Take(RemoteRange range) {
  ReadyQueue ready;
  range.file->files().Start({&range, 1}, 0, &ready);
  RETURN_IF_ERROR(ready.Wait().status);
  return RangeHold(range);
}

void RangeHold::Release() {
  if (range_.file != nullptr) range_.file->files().Release({&range_, 1});
}

bool IsRemotePath(std::string_view path) {
  return path.find("://") != std::string_view::npos;
}

void InstallRemoteFiles(const std::shared_ptr<RemoteFiles>& files) {
  Installed& installed = TheInstalled();
  MutexLock lock(installed.mutex);
  installed.files = files;
}

Result<std::shared_ptr<RemoteFile>> OpenRemoteFile(const std::string& url) {
  std::shared_ptr<RemoteFiles> files;
  {
    Installed& installed = TheInstalled();
    MutexLock lock(installed.mutex);
    files = installed.files.lock();
  }
  // Without the URL, which may hold a secret.
  if (files == nullptr) return Unsupported("URLs are not read here");
  return files->Open(url);
}

}  // namespace muster::io
