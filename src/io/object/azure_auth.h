// Azure Storage's Shared Key, in the Authorization header.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
#pragma once

#include <cstdint>
#include <string>

#include "io/object/http_headers.h"
#include "io/object/http_url.h"

namespace muster::io {

// The version of the service that requests ask for, in x-ms-version.
inline constexpr const char* kAzureVersion = "2021-08-06";

struct AzureKey {
  std::string account;
  std::string key;  // decoded bytes
};

struct AzureRequest {
  std::string method = "GET";
  HttpUrl url;
  HttpHeaders headers;       // that will be sent, without x-ms-date
  int64_t unix_seconds = 0;  // of the signature
};

// The headers to send besides those of the request: x-ms-date, authorization.
HttpHeaders SignAzure(const AzureKey& key, const AzureRequest& request);

}  // namespace muster::io
