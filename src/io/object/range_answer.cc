#include "io/object/range_answer.h"

#include <fmt/format.h>

#include <utility>

namespace muster::io {
namespace {

Judgement Fail(Code code, std::string message) {
  return {Verdict::kFail, Status(code, std::move(message))};
}

Judgement Retry(Code code, std::string message) {
  return {Verdict::kRetry, Status(code, std::move(message))};
}

Judgement Changed(std::string_view how) {
  return Fail(Code::kCorrupt,
              fmt::format("the object changed after it was opened ({})", how));
}

std::string Answered(const ResponseHead& head) {
  return fmt::format("the server answered {}{}{}", head.status,
                     head.error_code.empty() ? "" : " ", head.error_code);
}

Judgement JudgeError(const ResponseHead& head) {
  switch (head.status) {
    case 401:
    case 403:
    case 407:
      return Fail(Code::kIoError, Answered(head));
    case 404:
    case 410:
      return Fail(Code::kNotFound, Answered(head));
    case 412:
      return Changed("If-Match was refused");
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return Retry(Code::kUnavailable, Answered(head));
    default:
      return Fail(Code::kIoError, Answered(head));
  }
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 ||
         status == 308;
}

// The same state of the object as when it was opened?
std::optional<std::string> Difference(const Validators& then,
                                      const ResponseHead& head) {
  if (then.etag != head.etag) {
    return fmt::format("its ETag was {} and is {}",
                       then.etag.empty() ? "absent" : then.etag,
                       head.etag.empty() ? "absent" : head.etag);
  }
  const bool both = !then.last_modified.empty() && !head.last_modified.empty();
  if (then.etag.empty() && both && then.last_modified != head.last_modified) {
    return fmt::format("it was last modified {} and now {}", then.last_modified,
                       head.last_modified);
  }
  return std::nullopt;
}

Judgement JudgePartial(const WantedRange& wanted, const ResponseHead& head) {
  if (!head.content_range || !head.content_range->first) {
    return Retry(Code::kCorrupt, "206 without a Content-Range");
  }
  const ContentRange& range = *head.content_range;
  const uint64_t last = wanted.offset + wanted.size_bytes - 1;
  if (range.first != wanted.offset || range.last != last) {
    return Retry(Code::kCorrupt,
                 fmt::format("asked for bytes {}-{}, the server sends {}-{}",
                             wanted.offset, last, *range.first, *range.last));
  }
  if (head.content_length && *head.content_length != wanted.size_bytes) {
    return Retry(Code::kCorrupt,
                 fmt::format("asked for {} bytes, the server announces {}",
                             wanted.size_bytes, *head.content_length));
  }
  if (wanted.object_bytes && range.total &&
      range.total != wanted.object_bytes) {
    return Changed(fmt::format("it had {} bytes and has {}",
                               *wanted.object_bytes, *range.total));
  }
  return {Verdict::kTake, {}};
}

// 200: the whole object. That is what was asked for only if the range is it.
Judgement JudgeWhole(const WantedRange& wanted, const ResponseHead& head) {
  if (wanted.IsFirstLook()) return {Verdict::kTake, {}};
  const bool is_all =
      wanted.offset == 0 && wanted.size_bytes == *wanted.object_bytes;
  if (!is_all) {
    return Retry(Code::kUnsupported,
                 "the server answered 200, the whole object, where 206 and a "
                 "range of it were asked for");
  }
  if (head.content_length && *head.content_length != wanted.size_bytes) {
    return Changed(fmt::format("it had {} bytes and has {}", wanted.size_bytes,
                               *head.content_length));
  }
  return {Verdict::kTake, {}};
}

bool IsEmptyObject(const WantedRange& wanted, const ResponseHead& head) {
  return wanted.IsFirstLook() && head.status == 416 && head.content_range &&
         head.content_range->total == 0;
}

}  // namespace

Judgement Judge(const WantedRange& wanted, const ResponseHead& head) {
  if (head.is_malformed) {
    return Retry(Code::kCorrupt, "a length or range header is malformed");
  }
  if (IsRedirect(head.status) && !head.location.empty()) {
    return {Verdict::kRedirect, {}};
  }
  if (IsEmptyObject(wanted, head)) return {Verdict::kTake, {}};
  if (head.status == 416) return Changed("the range is beyond its end");
  if (head.status != 200 && head.status != 206) return JudgeError(head);
  if (!head.content_encoding.empty() && head.content_encoding != "identity") {
    return Fail(Code::kUnsupported,
                "the server sends it compressed, although asked not to");
  }
  if (!wanted.IsFirstLook()) {
    if (const auto how = Difference(wanted.validators, head)) {
      return Changed(*how);
    }
  }
  return head.status == 206 ? JudgePartial(wanted, head)
                            : JudgeWhole(wanted, head);
}

Result<FirstLook> ReadFirstLook(const ResponseHead& head) {
  FirstLook look{.validators = {head.etag, head.last_modified},
                 .accepts_ranges = head.status != 200};
  const auto total =
      head.status == 200 ? head.content_length : head.content_range->total;
  if (!total) {
    return Unsupported("the server does not say how large the object is");
  }
  look.size_bytes = *total;
  return look;
}

std::optional<std::string> IfMatch(const Validators& validators) {
  const std::string& etag = validators.etag;
  const bool strong = etag.size() >= 2 && etag.front() == '"';
  return strong ? std::optional(etag) : std::nullopt;
}

}  // namespace muster::io
