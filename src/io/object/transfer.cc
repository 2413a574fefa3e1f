#include "io/object/transfer.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "io/object/ascii.h"

namespace muster::io {
namespace {

constexpr uint64_t kMaxSkippedBytes = 64 << 10;
constexpr size_t kMaxErrorBody = 2048;
constexpr long kReceiveBufferBytes = 256 << 10;

// For the process; never undone, as libcurl advises for libraries.
void InitCurlOnce() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK_EQ(code, CURLE_OK);
}

template <class Value>
void Set(CURL* curl, CURLoption option, Value value) {
  CHECK_EQ(curl_easy_setopt(curl, option, value), CURLE_OK);
}

std::string RangeOf(const WantedRange& wanted) {
  return fmt::format("{}-{}", wanted.offset,
                     wanted.offset + wanted.size_bytes - 1);
}

// S3's <Code>NoSuchKey</Code>.
std::string ErrorCodeIn(std::string_view body) {
  constexpr std::string_view kOpen = "<Code>";
  const size_t begin = body.find(kOpen);
  const size_t end = body.find("</Code>");
  if (begin == body.npos || end == body.npos || end < begin) return "";
  const std::string_view code =
      body.substr(begin + kOpen.size(), end - begin - kOpen.size());
  const bool is_word =
      code.size() <= 64 && std::all_of(code.begin(), code.end(), IsAlnum);
  return is_word ? std::string(code) : "";
}

// What no second attempt can mend.
bool IsFinal(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_OUT_OF_MEMORY:
      return true;
    default:
      return false;
  }
}

}  // namespace

Transfer::Transfer(const TransferSettings& settings) : settings_(settings) {
  InitCurlOnce();
  curl_.reset(curl_easy_init());
  CHECK(curl_ != nullptr);
}

void Transfer::Prepare(TransferRequest request) {
  request_ = std::move(request);
  head_ = {};
  head_is_complete_ = is_too_long_ = false;
  received_bytes_ = skipped_bytes_ = 0;
  error_body_.clear();
  error_text_[0] = '\0';
  refused_ = nullptr;

  CURL* curl = curl_.get();
  curl_easy_reset(curl);
  header_list_.reset();
  for (const HttpHeader& header : request_.headers) {
    const std::string line = fmt::format("{}: {}", header.name, header.value);
    curl_slist* longer = curl_slist_append(header_list_.get(), line.c_str());
    CHECK(longer != nullptr);
    static_cast<void>(header_list_.release());
    header_list_.reset(longer);
  }
  Set(curl, CURLOPT_URL, request_.url.Text().c_str());
  Set(curl, CURLOPT_HTTPHEADER, header_list_.get());
  Set(curl, CURLOPT_PATH_AS_IS, 1L);
  Set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(curl, CURLOPT_FOLLOWLOCATION, 0L);
  // A proxy would connect in our place, to addresses that we cannot check.
  Set(curl, CURLOPT_PROXY, "");
  Set(curl, CURLOPT_USERAGENT, "muster/" MUSTER_VERSION);
  Set(curl, CURLOPT_NOSIGNAL, 1L);
  Set(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(curl, CURLOPT_BUFFERSIZE, kReceiveBufferBytes);
  Set(curl, CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(settings_.connect_timeout_ms));
  if (!settings_.ca_file.empty()) {
    Set(curl, CURLOPT_CAINFO, settings_.ca_file.c_str());
  }
  Set(curl, CURLOPT_ERRORBUFFER, error_text_);
  Set(curl, CURLOPT_PRIVATE, this);
  Set(curl, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  Set(curl, CURLOPT_HEADERDATA, this);
  Set(curl, CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  Set(curl, CURLOPT_WRITEDATA, this);
  Set(curl, CURLOPT_OPENSOCKETFUNCTION, &Transfer::OnOpenSocket);
  Set(curl, CURLOPT_OPENSOCKETDATA, this);
  Set(curl, CURLOPT_PREREQFUNCTION, &Transfer::OnConnected);
  Set(curl, CURLOPT_PREREQDATA, this);
}

size_t Transfer::OnHeader(char* data, size_t, size_t size, void* self) {
  auto* transfer = static_cast<Transfer*>(self);
  const std::string_view line(data, size);
  AddHeaderLine(line, &transfer->head_);
  if (Trim(line).empty() && transfer->head_.status >= 200) {
    transfer->head_is_complete_ = true;
  }
  return size;
}

size_t Transfer::OnBody(char* data, size_t, size_t size, void* self) {
  const auto bytes = std::as_bytes(std::span(data, size));
  // Fewer than came: libcurl ends the transfer.
  return static_cast<Transfer*>(self)->TakeBody(bytes) ? size : 0;
}

bool Transfer::TakeBody(std::span<const std::byte> bytes) {
  switch (Judge(request_.wanted, head_).verdict) {
    case Verdict::kTake:
      return request_.wanted.IsFirstLook()
                 ? SkipBody(bytes, /*keep_connection=*/head_.status != 200)
                 : TakeRange(bytes);
    case Verdict::kRedirect:
      return SkipBody(bytes, /*keep_connection=*/true);
    case Verdict::kRetry:
    case Verdict::kFail:
      return SkipBody(bytes, /*keep_connection=*/head_.status >= 400);
  }
  return false;
}

bool Transfer::TakeRange(std::span<const std::byte> bytes) {
  if (bytes.size() > request_.dst.size() - received_bytes_) {
    is_too_long_ = true;
    return false;
  }
  std::memcpy(request_.dst.data() + received_bytes_, bytes.data(),
              bytes.size());
  received_bytes_ += bytes.size();
  return true;
}

// A short body is read to its end so that the connection can be used again; a
// long one is not.
bool Transfer::SkipBody(std::span<const std::byte> bytes,
                        bool keep_connection) {
  const size_t room = kMaxErrorBody - error_body_.size();
  error_body_.append(reinterpret_cast<const char*>(bytes.data()),
                     std::min(room, bytes.size()));
  skipped_bytes_ += bytes.size();
  return keep_connection && skipped_bytes_ <= kMaxSkippedBytes;
}

bool Transfer::MayConnect(AddressKind kind) {
  if (MayReach(request_.reach, kind)) return true;
  refused_ = NameOf(kind);
  return false;
}

// Before a connection is made: `address` is the one that would be connected to.
curl_socket_t Transfer::OnOpenSocket(void* self, curlsocktype,
                                     curl_sockaddr* address) {
  auto* transfer = static_cast<Transfer*>(self);
  if (!transfer->MayConnect(KindOf(address->addr, address->addrlen))) {
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC,
                address->protocol);
}

// Before a request is sent, also on a connection that another request, which
// may have been allowed more, had opened.
int Transfer::OnConnected(void* self, char* peer, char*, int, int) {
  auto* transfer = static_cast<Transfer*>(self);
  return transfer->MayConnect(KindOf(std::string(peer)))
             ? CURL_PREREQFUNC_OK
             : CURL_PREREQFUNC_ABORT;
}

Judgement Transfer::Conclude(CURLcode code) {
  if (!head_is_complete_) return ConcludeFailure(code);
  if (head_.error_code.empty()) head_.error_code = ErrorCodeIn(error_body_);
  Judgement judgement = Judge(request_.wanted, head_);
  const bool is_range =
      judgement.verdict == Verdict::kTake && !request_.wanted.IsFirstLook();
  return is_range ? ConcludeRange(code) : judgement;
}

Judgement Transfer::ConcludeRange(CURLcode code) const {
  const uint64_t wanted = request_.dst.size();
  if (is_too_long_) {
    return {Verdict::kRetry,
            Corrupt(fmt::format("the server sent more than the {} bytes of "
                                "range {}",
                                wanted, RangeOf(request_.wanted)))};
  }
  if (code != CURLE_OK || received_bytes_ != wanted) {
    return {Verdict::kRetry,
            Status(Code::kUnavailable,
                   fmt::format("the connection ended after {} of {} bytes",
                               received_bytes_, wanted))};
  }
  return {Verdict::kTake, {}};
}

Judgement Transfer::ConcludeFailure(CURLcode code) const {
  if (refused_ != nullptr) {
    return {Verdict::kFail,
            InvalidArgument(fmt::format(
                "{} is {}, which this URL may not lead to; private addresses "
                "must be allowed by the operator",
                request_.url.HostHeader(), refused_))};
  }
  const std::string_view what =
      error_text_[0] != '\0' ? error_text_ : curl_easy_strerror(code);
  return {
      IsFinal(code) ? Verdict::kFail : Verdict::kRetry,
      Status(Code::kUnavailable, code == CURLE_OK ? "an answer without a head"
                                                  : std::string(what))};
}

}  // namespace muster::io
