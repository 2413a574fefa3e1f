// AWS Signature Version 4, in the Authorization header.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
#pragma once

#include <cstdint>
#include <string>

#include "io/object/http_headers.h"
#include "io/object/http_url.h"

namespace muster::io {

struct AwsKeys {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // empty: none
};

struct SigV4Request {
  std::string method = "GET";
  HttpUrl url;
  HttpHeaders headers;         // all are signed; without host and x-amz-date
  std::string payload_sha256;  // hexadecimal
  std::string region;
  std::string service = "s3";
  int64_t unix_seconds = 0;  // of the signature
};

// The headers to send besides those of the request: x-amz-date,
// x-amz-security-token if there is a token, and authorization.
HttpHeaders SignV4(const AwsKeys& keys, const SigV4Request& request);

}  // namespace muster::io
