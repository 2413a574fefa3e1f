// http:// and https:// URLs, parsed once and strictly, so that what was checked
// is what is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::io {

struct HttpUrl {
  bool tls = true;
  std::string host;  // lower case: a name, "192.0.2.1" or "[2001:db8::1]"
  uint16_t port = 443;
  std::string path = "/";  // begins with '/'; percent-encoded
  std::string query;       // without '?'; percent-encoded; empty: none

  // Whole, as it goes to the server. The query may hold a secret.
  std::string Text() const;
  // For people: no query.
  std::string Name() const;
  // host, and the port unless it is the scheme's own.
  std::string HostHeader() const;
  // Path and query.
  std::string Target() const;
  bool HostIsAddress() const;
};

// Same scheme, host and port: credentials may go to both or to neither.
bool SameOrigin(const HttpUrl& a, const HttpUrl& b);

// Refuses control characters, spaces, backslashes, user names, fragments, dot
// segments, bad percent codes, encoded NULs, and hosts that are numbers other
// than in the usual form ("2130706433", "0x7f.1", "127.1", "010.0.0.1"). Other
// bytes that a URL may not hold as they are become percent codes. Fails with
// kInvalidArgument, or kUnsupported on another scheme; never repeats a query or
// a password.
Result<HttpUrl> ParseHttpUrl(std::string_view text);

// Where a Location header leads: absolute or relative to `base`.
Result<HttpUrl> ResolveLocation(const HttpUrl& base, std::string_view location);

// `text` without what may be secret or unprintable, for an error.
std::string UrlForPeople(std::string_view text);

// All but letters, digits and "-._~" (and '/', if it is kept) as %XX.
std::string PercentEncode(std::string_view bytes, bool keep_slash);
// REQUIRES: its percent codes are well-formed, as those of an HttpUrl are.
std::string PercentDecode(std::string_view text);

// Whether a part of `path` between slashes is "." or "..".
bool HasDotSegment(std::string_view path);

}  // namespace muster::io
