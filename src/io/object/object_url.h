// Names of remote objects, as people write them.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "io/object/http_url.h"

namespace muster::io {

// s3://BUCKET/KEY; the key is literal: no percent codes, no query.
struct S3Url {
  std::string bucket;
  std::string key;
};

// az://ACCOUNT/CONTAINER/BLOB; the blob's name is literal.
struct AzureUrl {
  std::string account;
  std::string container;
  std::string blob;
};

// hf://ORG/REPO[@REVISION][/FILE]; the file's name is literal, a revision with
// slashes is written with %2F.
struct HuggingFaceUrl {
  std::string organization;
  std::string repository;
  std::string revision = "main";
  std::string file;  // empty: the whole repository
};

using ObjectUrl = std::variant<HttpUrl, S3Url, AzureUrl, HuggingFaceUrl>;

// Whether `text` looks like a URL and not like a path: it has "://".
bool LooksLikeUrl(std::string_view text);

// Fails with kInvalidArgument or, on another scheme, kUnsupported; the message
// says what to write instead and holds no secret.
Result<ObjectUrl> ParseObjectUrl(std::string_view text);

// For people: the URL without its query.
std::string NameOf(const ObjectUrl& url);

// The last part of its path: a name for a local file; empty when there is none.
std::string FileNameOf(const ObjectUrl& url);

}  // namespace muster::io
