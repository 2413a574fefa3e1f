#include "io/object/sigv4.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "io/object/ascii.h"
#include "io/object/digest.h"
#include "io/object/utc_time.h"

namespace muster::io {
namespace {

std::string Recoded(std::string_view part) {
  return PercentEncode(PercentDecode(part), /*keep_slash=*/false);
}

// name=value, each percent-encoded anew, in order.
std::string CanonicalQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    const size_t value = std::min(equals + 1, pair.size());
    if (!pair.empty()) {
      pairs.emplace_back(Recoded(pair.substr(0, equals)),
                         Recoded(pair.substr(value)));
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  std::sort(pairs.begin(), pairs.end());
  std::string out;
  for (const auto& [name, value] : pairs) {
    out += fmt::format("{}{}={}", out.empty() ? "" : "&", name, value);
  }
  return out;
}

// The headers that are signed: lower case, trimmed, in order.
HttpHeaders CanonicalHeaders(const SigV4Request& request,
                             const HttpHeaders& added) {
  HttpHeaders headers = request.headers;
  headers.insert(headers.end(), added.begin(), added.end());
  headers.push_back({"host", request.url.HostHeader()});
  for (HttpHeader& header : headers) {
    header = {Lower(header.name), std::string(Trim(header.value))};
  }
  std::sort(headers.begin(), headers.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return headers;
}

std::string Names(const HttpHeaders& headers) {
  std::string out;
  for (const HttpHeader& header : headers) {
    out += fmt::format("{}{}", out.empty() ? "" : ";", header.name);
  }
  return out;
}

std::string CanonicalRequest(const SigV4Request& request,
                             const HttpHeaders& headers) {
  std::string lines;
  for (const HttpHeader& header : headers) {
    lines += fmt::format("{}:{}\n", header.name, header.value);
  }
  return fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}", request.method,
      PercentEncode(PercentDecode(request.url.path), /*keep_slash=*/true),
      CanonicalQuery(request.url.query), lines, Names(headers),
      request.payload_sha256);
}

std::string SigningKey(const AwsKeys& keys, std::string_view day,
                       std::string_view region, std::string_view service) {
  std::string key = fmt::format("AWS4{}", keys.secret_access_key);
  for (const std::string_view part :
       {day, region, service, std::string_view("aws4_request")}) {
    key = AsString(HmacSha256(key, part));
  }
  return key;
}

}  // namespace

HttpHeaders SignV4(const AwsKeys& keys, const SigV4Request& request) {
  const std::string time = BasicIsoTime(request.unix_seconds);
  const std::string day = time.substr(0, 8);
  HttpHeaders added = {{"x-amz-date", time}};
  if (!keys.session_token.empty()) {
    added.push_back({"x-amz-security-token", keys.session_token});
  }
  const HttpHeaders headers = CanonicalHeaders(request, added);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day,
                                        request.region, request.service);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope,
                  Hex(Sha256Of(CanonicalRequest(request, headers))));
  const std::string key =
      SigningKey(keys, day, request.region, request.service);
  added.push_back(
      {"authorization",
       fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, "
                   "Signature={}",
                   keys.access_key_id, scope, Names(headers),
                   Hex(HmacSha256(key, to_sign)))});
  return added;
}

}  // namespace muster::io
