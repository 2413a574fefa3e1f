// How an exchange ended, and what follows.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/object/ascii.h"
#include "io/object/object_client_state.h"

namespace muster::io {
namespace {

constexpr int64_t kMaxRetryAfterMs = 60'000;

bool IsSha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return IsDigit(c) || (c >= 'a' && c <= 'f');
         });
}

bool IsStale(int status) {
  return status == 401 || status == 403 || status == 404 || status == 410;
}

}  // namespace

void ObjectClient::State::Conclude(Operation* operation, CURLcode code) {
  const Judgement judgement = operation->transfer->Conclude(code);
  const ResponseHead head = operation->transfer->head();
  idle_transfers_.push_back(std::move(operation->transfer));
  switch (judgement.verdict) {
    case Verdict::kTake:
      return Take(operation, head);
    case Verdict::kRedirect:
      return Redirect(operation, head);
    case Verdict::kRetry:
      return Retry(operation, judgement.status, head.retry_after_seconds);
    case Verdict::kFail:
      return Fail(operation, judgement.status, head.status);
  }
}

void ObjectClient::State::Redirect(Operation* operation,
                                   const ResponseHead& head) {
  ++counters_.num_redirects;
  RemoteObject& object = objects_[operation->object];
  const bool from_origin = SameOrigin(object.location.url, operation->url);
  if (from_origin && object.location.has_checksum_header &&
      operation->wanted.IsFirstLook() && IsSha256(head.linked_etag)) {
    object.info.sha256 = head.linked_etag;
  }
  if (++operation->num_redirects > options_.max_redirects) {
    return Fail(
        operation,
        IoError(fmt::format("more than {} redirects", options_.max_redirects)),
        0);
  }
  auto next = ResolveLocation(operation->url, head.location);
  if (!next.ok()) {
    return Fail(
        operation,
        Status(next.status().code(),
               "a redirect that is not followed: " + next.status().message()),
        0);
  }
  if (operation->url.tls && !next->tls) {
    return Fail(
        operation,
        InvalidArgument(fmt::format(
            "a redirect from https to plain {} is not followed", next->Name())),
        0);
  }
  operation->url = std::move(*next);
  operation->is_shortcut = false;
}

void ObjectClient::State::Retry(Operation* operation, Status why,
                                std::optional<uint64_t> after_seconds) {
  ++operation->num_attempts;
  if (operation->num_attempts >= options_.max_attempts) {
    return Fail(operation, why, 0);
  }
  int64_t delay_ms = backoff_.DelayMs(operation->num_attempts - 1);
  if (after_seconds) {
    const auto asked_ms = static_cast<int64_t>(
        std::min<uint64_t>(*after_seconds, kMaxRetryAfterMs / 1000) * 1000);
    delay_ms = std::max(delay_ms, asked_ms);
  }
  const int64_t due_ms = clock_.NowMs() + delay_ms;
  if (due_ms >= operation->deadline_ms) return Fail(operation, why, 0);
  ++counters_.num_retries;
  Restart(operation);
  operation->due_ms = due_ms;
  operation->last_failure = std::move(why);
}

// From the operator's URL, which may lead elsewhere by now.
void ObjectClient::State::Restart(Operation* operation) {
  operation->url = objects_[operation->object].location.url;
  operation->is_shortcut = false;
  operation->num_redirects = 0;
  operation->due_ms = 0;
}

void ObjectClient::State::Fail(Operation* operation, const Status& why,
                               int status) {
  RemoteObject& object = objects_[operation->object];
  // Signed URLs that redirects led to expire.
  if (operation->is_shortcut && IsStale(status)) {
    object.redirected.reset();
    return Restart(operation);
  }
  std::string message = object.info.name;
  if (!operation->wanted.IsFirstLook()) {
    message += fmt::format(
        ": bytes {}-{}", operation->wanted.offset,
        operation->wanted.offset + operation->wanted.size_bytes - 1);
  }
  message += ": " + why.message();
  if (status == 401 || status == 403) {
    message += "; " + object.location.if_denied;
  }
  if (operation->num_attempts > 1) {
    message += fmt::format(" ({} attempts)", operation->num_attempts);
  }
  Finish(operation, Status(why.code(), std::move(message)));
}

void ObjectClient::State::Take(Operation* operation, const ResponseHead& head) {
  RemoteObject& object = objects_[operation->object];
  if (!SameOrigin(operation->url, object.location.url)) {
    object.redirected = operation->url;
  }
  if (!operation->wanted.IsFirstLook()) return Finish(operation, {});
  const Status status = TakeFirstLook(*operation, head);
  if (!status.ok()) return Fail(operation, status, 0);
  Finish(operation, {});
}

Status ObjectClient::State::TakeFirstLook(const Operation& operation,
                                          const ResponseHead& head) {
  RemoteObject& object = objects_[operation.object];
  ASSIGN_OR_RETURN(const FirstLook look, ReadFirstLook(head));
  const bool from_origin = SameOrigin(operation.url, object.location.url);
  if (from_origin && object.location.has_checksum_header &&
      IsSha256(head.linked_etag)) {
    object.info.sha256 = head.linked_etag;
  }
  object.info.size_bytes = look.size_bytes;
  object.info.etag = look.validators.etag;
  object.info.accepts_ranges = look.accepts_ranges;
  object.validators = look.validators;
  return {};
}

}  // namespace muster::io
