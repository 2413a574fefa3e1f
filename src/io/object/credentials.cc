#include "io/object/credentials.h"

#include <fmt/format.h>

#include <utility>

#include "io/object/digest.h"

namespace muster::io {
namespace {

void Append(HttpHeaders* headers, const HttpHeaders& added) {
  headers->insert(headers->end(), added.begin(), added.end());
}

void SignForAws(const AwsCredentials& aws, const HttpUrl& url,
                int64_t unix_seconds, HttpHeaders* headers) {
  const std::string empty_payload = Hex(Sha256Of(""));
  headers->push_back({"x-amz-content-sha256", empty_payload});
  Append(headers, SignV4(aws.keys, {.url = url,
                                    .headers = *headers,
                                    .payload_sha256 = empty_payload,
                                    .region = aws.region,
                                    .unix_seconds = unix_seconds}));
}

}  // namespace

HttpHeaders Authorize(const Credentials& credentials, const HttpUrl& url,
                      HttpHeaders headers, int64_t unix_seconds) {
  if (const auto* bearer = std::get_if<BearerToken>(&credentials)) {
    headers.push_back(
        {"authorization", fmt::format("Bearer {}", bearer->token)});
  } else if (const auto* aws = std::get_if<AwsCredentials>(&credentials)) {
    SignForAws(*aws, url, unix_seconds, &headers);
  } else if (const auto* azure = std::get_if<AzureKey>(&credentials)) {
    Append(&headers, SignAzure(*azure, {.url = url,
                                        .headers = headers,
                                        .unix_seconds = unix_seconds}));
  }
  return headers;
}

}  // namespace muster::io
