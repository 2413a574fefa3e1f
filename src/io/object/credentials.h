// What proves to a server that a request may be answered.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "io/object/azure_auth.h"
#include "io/object/http_headers.h"
#include "io/object/http_url.h"
#include "io/object/sigv4.h"

namespace muster::io {

struct BearerToken {
  std::string token;
};

struct AwsCredentials {
  AwsKeys keys;
  std::string region;
};

// std::monostate: anonymous.
using Credentials =
    std::variant<std::monostate, BearerToken, AwsCredentials, AzureKey>;

// `headers` of a GET of `url`, and those that the credentials add. Only for the
// origin that the credentials are for.
HttpHeaders Authorize(const Credentials& credentials, const HttpUrl& url,
                      HttpHeaders headers, int64_t unix_seconds);

}  // namespace muster::io
