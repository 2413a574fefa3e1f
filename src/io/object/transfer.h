// One HTTP exchange: one request for one range, its answer judged before a byte
// of it is taken. No redirects, no retries: object_client.h has those.
#pragma once

#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/object/address_policy.h"
#include "io/object/http_headers.h"
#include "io/object/http_url.h"
#include "io/object/range_answer.h"

namespace muster::io {

struct TransferRequest {
  HttpUrl url;
  HttpHeaders headers;
  Reach reach = Reach::kPublic;  // the address that is connected to is checked
  WantedRange wanted;
  std::span<std::byte> dst;  // wanted.size_bytes long; of a first look: unused
};

struct TransferSettings {
  int64_t connect_timeout_ms = 0;
  std::string ca_file;  // empty: the system's
};

// Used again and again, one exchange at a time. Its address stays. Belongs to
// the thread that runs the loop it is in.
class Transfer {
 public:
  explicit Transfer(const TransferSettings& settings);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Forgets the exchange before. `request.dst` is written until the end.
  void Prepare(TransferRequest request);

  // How the exchange went, once libcurl ended it with `code`.
  Judgement Conclude(CURLcode code);

  const ResponseHead& head() const { return head_; }
  const HttpUrl& url() const { return request_.url; }
  // Bytes of the range that have arrived.
  uint64_t received_bytes() const { return received_bytes_; }
  CURL* handle() const { return curl_.get(); }

 private:
  static size_t OnHeader(char* data, size_t, size_t size, void* self);
  static size_t OnBody(char* data, size_t, size_t size, void* self);
  static curl_socket_t OnOpenSocket(void* self, curlsocktype,
                                    curl_sockaddr* address);
  static int OnConnected(void* self, char* peer, char* local, int peer_port,
                         int local_port);

  bool TakeBody(std::span<const std::byte> bytes);
  bool TakeRange(std::span<const std::byte> bytes);
  bool SkipBody(std::span<const std::byte> bytes, bool keep_connection);
  bool MayConnect(AddressKind kind);
  Judgement ConcludeRange(CURLcode code) const;
  Judgement ConcludeFailure(CURLcode code) const;

  struct FreeCurl {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  const TransferSettings settings_;
  std::unique_ptr<CURL, FreeCurl> curl_;
  std::unique_ptr<curl_slist, FreeCurl> header_list_;
  char error_text_[CURL_ERROR_SIZE] = "";

  TransferRequest request_;
  ResponseHead head_;
  bool head_is_complete_ = false;
  uint64_t received_bytes_ = 0;
  uint64_t skipped_bytes_ = 0;
  bool is_too_long_ = false;
  std::string error_body_;         // the beginning of an error's body
  const char* refused_ = nullptr;  // the kind of address that was refused
};

}  // namespace muster::io
