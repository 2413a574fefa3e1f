#include "io/object/transfer_loop.h"

#include <algorithm>

#include "base/check.h"

namespace muster::io {

TransferLoop::TransferLoop(size_t max_connections) : multi_(curl_multi_init()) {
  CHECK(multi_ != nullptr);
  const long limit = static_cast<long>(max_connections);
  curl_multi_setopt(multi_.get(), CURLMOPT_MAX_HOST_CONNECTIONS, limit);
  curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, limit);
}

TransferLoop::~TransferLoop() { CHECK_EQ(num_running_, 0u); }

void TransferLoop::Start(Transfer* transfer) {
  CHECK_EQ(curl_multi_add_handle(multi_.get(), transfer->handle()), CURLM_OK);
  ++num_running_;
}

void TransferLoop::Stop(Transfer* transfer) {
  CHECK_EQ(curl_multi_remove_handle(multi_.get(), transfer->handle()),
           CURLM_OK);
  --num_running_;
}

std::vector<TransferLoop::Ended> TransferLoop::Advance() {
  int running = 0;
  CHECK_EQ(curl_multi_perform(multi_.get(), &running), CURLM_OK);
  std::vector<Ended> ended;
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    ended.push_back({transfer, message->data.result});
  }
  for (const Ended& end : ended) Stop(end.transfer);
  return ended;
}

void TransferLoop::Wait(int64_t timeout_ms) {
  const auto timeout =
      static_cast<int>(std::clamp<int64_t>(timeout_ms, 0, 60'000));
  CHECK_EQ(curl_multi_poll(multi_.get(), nullptr, 0, timeout, nullptr),
           CURLM_OK);
}

void TransferLoop::Wake() { curl_multi_wakeup(multi_.get()); }

}  // namespace muster::io
