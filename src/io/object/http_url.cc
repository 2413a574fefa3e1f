#include "io/object/http_url.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "io/object/ascii.h"

namespace muster::io {
namespace {

constexpr size_t kMaxUrlBytes = 8192;
constexpr std::string_view kUnreservedMarks = "-._~";
constexpr std::string_view kPathMarks = "-._~!$&'()*+,;=:@/";

Status Refuse(std::string_view text, std::string_view reason) {
  return InvalidArgument(fmt::format("{}: {}", UrlForPeople(text), reason));
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = ToLower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Why a URL with this byte is refused; null: it is not.
const char* BadByte(char c) {
  if (c == '\\') return "a backslash; URLs have forward slashes";
  if (c == ' ') return "a space; write %20";
  if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
    return "a control character";
  }
  return nullptr;
}

Status CheckBytes(std::string_view text) {
  if (text.size() > kMaxUrlBytes) {
    return Refuse(text, fmt::format("{} bytes long, the limit is {}",
                                    text.size(), kMaxUrlBytes));
  }
  for (const char c : text) {
    if (const char* reason = BadByte(c)) return Refuse(text, reason);
  }
  return {};
}

// `part` with what may not stand in it as %XX; nothing if a percent code in it
// is broken or is that of NUL.
std::optional<std::string> Canonical(std::string_view part,
                                     std::string_view marks) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == '%') {
      if (i + 2 >= part.size() || HexValue(part[i + 1]) < 0 ||
          HexValue(part[i + 2]) < 0 || part.substr(i, 3) == "%00") {
        return std::nullopt;
      }
      out += c;
    } else if (IsAlnum(c) || marks.find(c) != marks.npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

// An address in brackets in its one usual form.
std::optional<std::string> CanonicalIpv6(std::string_view inside) {
  in6_addr address;
  char text[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, std::string(inside).c_str(), &address) != 1 ||
      inet_ntop(AF_INET6, &address, text, sizeof text) == nullptr) {
    return std::nullopt;
  }
  return fmt::format("[{}]", text);
}

bool IsDottedQuad(const std::string& host) {
  in_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

// What resolvers read as an address: its last label is a number.
bool EndsInNumber(std::string_view host) {
  const std::string_view last = host.substr(host.rfind('.') + 1);
  return std::all_of(last.begin(), last.end(), IsDigit) ||
         last.substr(0, 2) == "0x";
}

const char* BadName(std::string_view host) {
  if (host.empty()) return "no host after '//'";
  if (host.size() > 253) return "a host name longer than 253 bytes";
  size_t label = 0;
  for (const char c : host) {
    if (c == '.') {
      if (label == 0) return "an empty part in the host name";
      label = 0;
    } else if (IsAlnum(c) || c == '-' || c == '_') {
      if (++label > 63) return "a part of the host name is longer than 63";
    } else if (c == '%') {
      return "a percent code in the host name";
    } else {
      return "an odd character in the host name (write xn--... for names "
             "beyond ASCII)";
    }
  }
  return label == 0 ? "a dot at the end of the host name" : nullptr;
}

Status ParseHost(std::string_view text, std::string_view host, HttpUrl* url) {
  if (host.substr(0, 1) == "[") {
    const auto canonical = host.back() == ']'
                               ? CanonicalIpv6(host.substr(1, host.size() - 2))
                               : std::nullopt;
    if (!canonical) return Refuse(text, "not an IPv6 address in brackets");
    url->host = *canonical;
    return {};
  }
  if (const char* reason = BadName(host)) return Refuse(text, reason);
  url->host = Lower(host);
  if (EndsInNumber(url->host) && !IsDottedQuad(url->host)) {
    return Refuse(text, "a number as its host; write addresses as 192.0.2.1");
  }
  return {};
}

Status ParsePort(std::string_view text, std::string_view digits, HttpUrl* url) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, url->port);
  if (error != std::errc() || stop != end || url->port == 0) {
    return Refuse(text, "the port is not a number from 1 to 65535");
  }
  return {};
}

Status ParseAuthority(std::string_view text, std::string_view authority,
                      HttpUrl* url) {
  if (authority.find('@') != authority.npos) {
    return Refuse(text,
                  "holds a user name or password; credentials come from the "
                  "environment");
  }
  const size_t bracket = authority.rfind(']');
  const size_t colon =
      authority.find(':', bracket == authority.npos ? 0 : bracket);
  if (colon != authority.npos) {
    RETURN_IF_ERROR(ParsePort(text, authority.substr(colon + 1), url));
  }
  return ParseHost(text, authority.substr(0, colon), url);
}

Status ParseTarget(std::string_view text, std::string_view target,
                   HttpUrl* url) {
  const size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  const std::string_view query =
      question == target.npos ? "" : target.substr(question + 1);
  if (HasDotSegment(path)) {
    return Refuse(text, "a '.' or '..' between slashes; write the path itself");
  }
  const auto clean_path = Canonical(path, kPathMarks);
  const auto clean_query = Canonical(query, fmt::format("{}?", kPathMarks));
  if (!clean_path || !clean_query) {
    return Refuse(text, "a '%' without two hexadecimal digits, or %00");
  }
  url->path = clean_path->empty() ? "/" : *clean_path;
  url->query = *clean_query;
  return {};
}

// RFC 3986, 5.2.4, on a path that begins with '/'.
std::string WithoutDotSegments(std::string_view path) {
  std::vector<std::string_view> kept;
  bool ends_in_folder = false;
  for (size_t at = 1; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    ends_in_folder = part == "." || part == "..";
    if (part == ".." && !kept.empty()) kept.pop_back();
    if (!ends_in_folder) kept.push_back(part);
    at = end + 1;
  }
  std::string out;
  for (const std::string_view part : kept) (out += '/') += part;
  if (ends_in_folder || out.empty()) out += '/';
  return out;
}

std::string_view FolderOf(std::string_view path) {
  return path.substr(0, path.rfind('/') + 1);
}

std::string_view SchemeName(const HttpUrl& url) {
  return url.tls ? "https" : "http";
}

}  // namespace

std::string HttpUrl::HostHeader() const {
  return port == (tls ? 443 : 80) ? host : fmt::format("{}:{}", host, port);
}

std::string HttpUrl::Target() const {
  return query.empty() ? path : fmt::format("{}?{}", path, query);
}

std::string HttpUrl::Text() const {
  return fmt::format("{}://{}{}", SchemeName(*this), HostHeader(), Target());
}

std::string HttpUrl::Name() const {
  return fmt::format("{}://{}{}", SchemeName(*this), HostHeader(), path);
}

bool HttpUrl::HostIsAddress() const {
  return host.front() == '[' || IsDottedQuad(host);
}

bool SameOrigin(const HttpUrl& a, const HttpUrl& b) {
  return a.tls == b.tls && a.host == b.host && a.port == b.port;
}

Result<HttpUrl> ParseHttpUrl(std::string_view text) {
  RETURN_IF_ERROR(CheckBytes(text));
  const size_t colon = text.find("://");
  const std::string scheme = Lower(text.substr(0, colon));
  if (colon == text.npos || (scheme != "http" && scheme != "https")) {
    return Unsupported(
        fmt::format("{}: not an http:// or https:// URL", UrlForPeople(text)));
  }
  const std::string_view rest = text.substr(colon + 3);
  if (rest.find('#') != rest.npos) {
    return Refuse(text, "a '#'; write %23 if it belongs to the name");
  }
  HttpUrl url{.tls = scheme == "https"};
  url.port = url.tls ? 443 : 80;
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  RETURN_IF_ERROR(ParseAuthority(text, rest.substr(0, end), &url));
  RETURN_IF_ERROR(ParseTarget(text, rest.substr(end), &url));
  return url;
}

Result<HttpUrl> ResolveLocation(const HttpUrl& base,
                                std::string_view location) {
  RETURN_IF_ERROR(CheckBytes(location));
  location = location.substr(0, location.find('#'));
  if (location.empty()) return Refuse(base.Name(), "redirects to nowhere");
  const size_t end = std::min(location.find_first_of("/?"), location.size());
  if (location.substr(0, end).find(':') != location.npos) {
    return ParseHttpUrl(location);
  }
  if (location.substr(0, 2) == "//") {
    return ParseHttpUrl(fmt::format("{}:{}", SchemeName(base), location));
  }
  const size_t question = std::min(location.find('?'), location.size());
  const std::string_view path = location.substr(0, question);
  const std::string whole =
      path.empty()          ? base.path
      : path.front() == '/' ? std::string(path)
                            : fmt::format("{}{}", FolderOf(base.path), path);
  HttpUrl url = base;
  RETURN_IF_ERROR(ParseTarget(
      location,
      fmt::format("{}{}", WithoutDotSegments(whole), location.substr(question)),
      &url));
  return url;
}

std::string UrlForPeople(std::string_view text) {
  const std::string scheme = Lower(text.substr(0, text.find("://")));
  const bool at_is_plain = scheme == "hf" || scheme == "s3" || scheme == "az";
  // A password may hold any of "/?#": nothing of such a URL is shown.
  if (!at_is_plain && text.find('@') != text.npos) {
    return scheme == "http" || scheme == "https" ? scheme + "://..."
                                                 : "...@...";
  }
  std::string shown(text.substr(0, text.find_first_of("?#")));
  for (char& c : shown) {
    if (!IsPrintable(c)) c = '?';
  }
  constexpr size_t kShown = 200;
  return shown.size() <= kShown ? shown : shown.substr(0, kShown) + "...";
}

std::string PercentEncode(std::string_view bytes, bool keep_slash) {
  std::string out;
  for (const char c : bytes) {
    const bool plain =
        IsAlnum(c) || kUnreservedMarks.find(c) != kUnreservedMarks.npos;
    if (plain || (c == '/' && keep_slash)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out +=
          static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool HasDotSegment(std::string_view path) {
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "." || part == "..") return true;
    at = end + 1;
  }
  return false;
}

}  // namespace muster::io
