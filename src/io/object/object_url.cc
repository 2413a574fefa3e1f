#include "io/object/object_url.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/object/ascii.h"

namespace muster::io {
namespace {

constexpr size_t kMaxUrlBytes = 8192;

Status Refuse(std::string_view text, std::string_view reason) {
  return InvalidArgument(fmt::format("{}: {}", UrlForPeople(text), reason));
}

bool HoldsOnly(std::string_view name, std::string_view marks) {
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return IsAlnum(c) || marks.find(c) != marks.npos;
  });
}

bool HasUpper(std::string_view name) { return Lower(name) != name; }

// The part of `rest` before its first slash; `rest` becomes what follows it.
std::string_view TakePart(std::string_view* rest) {
  const size_t slash = std::min(rest->find('/'), rest->size());
  const std::string_view part = rest->substr(0, slash);
  rest->remove_prefix(std::min(slash + 1, rest->size()));
  return part;
}

// Why a key, blob or file name is refused; null: it is not.
const char* BadKey(std::string_view key) {
  if (key.size() > 1024) return "a name longer than 1024 bytes";
  if (!std::all_of(key.begin(), key.end(), IsPrintable)) {
    return "a control character in the name";
  }
  if (key.find('\\') != key.npos) return "a backslash in the name";
  if (HasDotSegment(key)) return "a '.' or '..' between slashes";
  return nullptr;
}

Result<ObjectUrl> ParseS3(std::string_view text, std::string_view rest) {
  S3Url url{.bucket = std::string(TakePart(&rest)), .key = std::string(rest)};
  const bool edges_ok = !url.bucket.empty() && IsAlnum(url.bucket.front()) &&
                        IsAlnum(url.bucket.back());
  if (url.bucket.size() < 3 || url.bucket.size() > 63 || !edges_ok ||
      !HoldsOnly(url.bucket, "-.") || HasUpper(url.bucket) ||
      url.bucket.find("..") != url.bucket.npos) {
    return Refuse(text,
                  "a bucket has 3 to 63 lower-case letters, digits, '-' and "
                  "'.'; write s3://BUCKET/KEY");
  }
  if (url.key.empty()) return Refuse(text, "no key; write s3://BUCKET/KEY");
  if (const char* reason = BadKey(url.key)) return Refuse(text, reason);
  return ObjectUrl(std::move(url));
}

Result<ObjectUrl> ParseAzure(std::string_view text, std::string_view rest) {
  AzureUrl url{.account = std::string(TakePart(&rest)),
               .container = std::string(TakePart(&rest)),
               .blob = std::string(rest)};
  if (url.account.size() < 3 || url.account.size() > 24 ||
      !HoldsOnly(url.account, "") || HasUpper(url.account)) {
    return Refuse(text,
                  "an account has 3 to 24 lower-case letters and digits; write "
                  "az://ACCOUNT/CONTAINER/BLOB");
  }
  const bool special = url.container == "$root" || url.container == "$web";
  if (!special && (url.container.size() < 3 || url.container.size() > 63 ||
                   !HoldsOnly(url.container, "-") || HasUpper(url.container))) {
    return Refuse(text,
                  "a container has 3 to 63 lower-case letters, digits and '-'; "
                  "write az://ACCOUNT/CONTAINER/BLOB");
  }
  if (url.blob.empty()) {
    return Refuse(text, "no blob; write az://ACCOUNT/CONTAINER/BLOB");
  }
  if (const char* reason = BadKey(url.blob)) return Refuse(text, reason);
  return ObjectUrl(std::move(url));
}

bool IsRepositoryName(std::string_view name) {
  return !name.empty() && name.size() <= 96 && HoldsOnly(name, "-._") &&
         !HasDotSegment(name);
}

// "refs%2Fpr%2F1" is refs/pr/1; no other percent codes.
Result<std::string> ParseRevision(std::string_view text,
                                  std::string_view revision) {
  std::string out;
  while (!revision.empty()) {
    const bool slash = Lower(revision.substr(0, 3)) == "%2f";
    out += slash ? '/' : revision.front();
    revision.remove_prefix(slash ? 3 : 1);
  }
  if (out.empty() || out.size() > 255 || !HoldsOnly(out, "-._/") ||
      HasDotSegment(out)) {
    return Refuse(text,
                  "a revision is a branch, a tag or a commit; write "
                  "hf://ORG/REPO@REVISION, with %2F for a slash in it");
  }
  return out;
}

Result<ObjectUrl> ParseHuggingFace(std::string_view text,
                                   std::string_view rest) {
  HuggingFaceUrl url{.organization = std::string(TakePart(&rest))};
  const std::string_view repository = TakePart(&rest);
  const size_t at = std::min(repository.find('@'), repository.size());
  url.repository = repository.substr(0, at);
  url.file = rest;
  if (!IsRepositoryName(url.organization) ||
      !IsRepositoryName(url.repository)) {
    return Refuse(text,
                  "write hf://ORG/REPO, hf://ORG/REPO/FILE or "
                  "hf://ORG/REPO@REVISION/FILE");
  }
  if (at < repository.size()) {
    ASSIGN_OR_RETURN(url.revision,
                     ParseRevision(text, repository.substr(at + 1)));
  }
  if (const char* reason = BadKey(url.file)) return Refuse(text, reason);
  return ObjectUrl(std::move(url));
}

std::string_view PathOf(const ObjectUrl& url) {
  if (const auto* s3 = std::get_if<S3Url>(&url)) return s3->key;
  if (const auto* azure = std::get_if<AzureUrl>(&url)) return azure->blob;
  if (const auto* hub = std::get_if<HuggingFaceUrl>(&url)) return hub->file;
  return std::get<HttpUrl>(url).path;
}

}  // namespace

bool LooksLikeUrl(std::string_view text) {
  return text.find("://") != text.npos;
}

Result<ObjectUrl> ParseObjectUrl(std::string_view text) {
  if (text.size() > kMaxUrlBytes) {
    return Refuse(text, fmt::format("{} bytes long, the limit is {}",
                                    text.size(), kMaxUrlBytes));
  }
  const size_t colon = text.find("://");
  const std::string scheme =
      colon == text.npos ? "" : Lower(text.substr(0, colon));
  if (scheme == "http" || scheme == "https") {
    ASSIGN_OR_RETURN(HttpUrl url, ParseHttpUrl(text));
    return ObjectUrl(std::move(url));
  }
  if (scheme == "s3") return ParseS3(text, text.substr(colon + 3));
  if (scheme == "az") return ParseAzure(text, text.substr(colon + 3));
  if (scheme == "hf") return ParseHuggingFace(text, text.substr(colon + 3));
  return Unsupported(
      fmt::format("{}: objects are read from https://, http://, s3://, az:// "
                  "and hf:// URLs",
                  UrlForPeople(text)));
}

std::string NameOf(const ObjectUrl& url) {
  if (const auto* s3 = std::get_if<S3Url>(&url)) {
    return fmt::format("s3://{}/{}", s3->bucket, s3->key);
  }
  if (const auto* azure = std::get_if<AzureUrl>(&url)) {
    return fmt::format("az://{}/{}/{}", azure->account, azure->container,
                       azure->blob);
  }
  if (const auto* hub = std::get_if<HuggingFaceUrl>(&url)) {
    return fmt::format(
        "hf://{}/{}{}{}{}{}", hub->organization, hub->repository,
        hub->revision == "main" ? "" : "@",
        hub->revision == "main" ? "" : PercentEncode(hub->revision, false),
        hub->file.empty() ? "" : "/", hub->file);
  }
  return std::get<HttpUrl>(url).Name();
}

std::string FileNameOf(const ObjectUrl& url) {
  const std::string_view path = PathOf(url);
  const std::string name(path.substr(path.rfind('/') + 1));
  if (!std::holds_alternative<HttpUrl>(url)) return name;
  const std::string decoded = PercentDecode(name);
  const bool plain = std::all_of(decoded.begin(), decoded.end(), IsPrintable) &&
                     decoded.find_first_of("/\\") == decoded.npos &&
                     !HasDotSegment(decoded);
  return plain ? decoded : "";
}

}  // namespace muster::io
