#include "io/object/azure_auth.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "io/object/ascii.h"
#include "io/object/digest.h"
#include "io/object/utc_time.h"

namespace muster::io {
namespace {

// In the order in which they are signed; an absent one is an empty line.
constexpr std::string_view kSignedHeaders[] = {
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
};

std::string ValueOf(const HttpHeaders& headers, std::string_view name) {
  for (const HttpHeader& header : headers) {
    if (Lower(header.name) == name) return std::string(Trim(header.value));
  }
  return "";
}

// The x-ms- headers, one a line, in order.
std::string ServiceHeaders(const HttpHeaders& headers) {
  std::map<std::string, std::string> lines;
  for (const HttpHeader& header : headers) {
    const std::string name = Lower(header.name);
    if (name.substr(0, 5) == "x-ms-") lines[name] = Trim(header.value);
  }
  std::string out;
  for (const auto& [name, value] : lines) {
    out += fmt::format("{}:{}\n", name, value);
  }
  return out;
}

// /ACCOUNT/PATH, then one "name:value" a line of the query, decoded, in order.
std::string Resource(const std::string& account, const HttpUrl& url) {
  std::map<std::string, std::vector<std::string>> values;
  std::string_view query = url.query;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    const size_t value = std::min(equals + 1, pair.size());
    values[Lower(PercentDecode(pair.substr(0, equals)))].push_back(
        PercentDecode(pair.substr(value)));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  std::string out = fmt::format("/{}{}", account, url.path);
  for (auto& [name, list] : values) {
    std::sort(list.begin(), list.end());
    out += fmt::format("\n{}:{}", name, fmt::join(list, ","));
  }
  return out;
}

}  // namespace

HttpHeaders SignAzure(const AzureKey& key, const AzureRequest& request) {
  HttpHeaders added = {{"x-ms-date", HttpDate(request.unix_seconds)}};
  HttpHeaders headers = request.headers;
  headers.insert(headers.end(), added.begin(), added.end());
  std::string to_sign = request.method + "\n";
  for (const std::string_view name : kSignedHeaders) {
    to_sign += ValueOf(headers, name) + "\n";
  }
  to_sign += ServiceHeaders(headers) + Resource(key.account, request.url);
  added.push_back(
      {"authorization", fmt::format("SharedKey {}:{}", key.account,
                                    Base64(HmacSha256(key.key, to_sign)))});
  return added;
}

}  // namespace muster::io
