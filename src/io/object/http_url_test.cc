#include "io/object/http_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::io {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Parsed(std::string_view text) {
  const auto url = ParseHttpUrl(text);
  return url.ok() ? url->Text() : url.status().message();
}

TEST(HttpUrlTest, PartsAreTakenApart) {
  const auto url = ParseHttpUrl("HTTPS://Models.Example:8443/a/b%20c?x=1&y");
  ASSERT_TRUE(url.ok()) << url.status().message();
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "models.example");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->path, "/a/b%20c");
  EXPECT_EQ(url->query, "x=1&y");
  EXPECT_EQ(url->HostHeader(), "models.example:8443");
  EXPECT_EQ(url->Name(), "https://models.example:8443/a/b%20c");
}

TEST(HttpUrlTest, TheUsualPortIsLeftOut) {
  EXPECT_EQ(Parsed("http://h:80"), "http://h/");
  EXPECT_EQ(Parsed("https://h:443/x"), "https://h/x");
  EXPECT_EQ(Parsed("http://h:443/x"), "http://h:443/x");
}

TEST(HttpUrlTest, AddressesHaveOneForm) {
  EXPECT_EQ(Parsed("http://[0:0::0001]:9/"), "http://[::1]:9/");
  EXPECT_EQ(Parsed("http://192.0.2.1/"), "http://192.0.2.1/");
  EXPECT_TRUE(ParseHttpUrl("http://[::1]/")->HostIsAddress());
  EXPECT_FALSE(ParseHttpUrl("http://localhost/")->HostIsAddress());
}

// CASES, SSRF: the forms of 127.0.0.1 and 169.254.169.254 that resolvers read.
TEST(HttpUrlTest, HostsThatAreNumbersInDisguiseAreRefused) {
  for (const char* host :
       {"2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1",
        "127.0.0.1.", "127.0.0.0x1", "2852039166", "[::ffff:127.0.0.1",
        "[::1%25eth0]", "1.2.3.256", "1.2.3", "[127.0.0.1]"}) {
    const auto url = ParseHttpUrl(std::string("http://") + host + "/");
    EXPECT_EQ(url.status().code(), Code::kInvalidArgument) << host;
  }
}

TEST(HttpUrlTest, OddUrlsAreRefusedWithAReason) {
  const struct {
    std::string text;
    const char* reason;
  } cases[] = {
      {"http://h\\@evil/", "backslash"},
      {"http://h/a b", "write %20"},
      {std::string("http://h/a\0b", 12), "control character"},
      {"http://h/a\r\nX: y", "control character"},
      {"http://", "no host"},
      {"http:///x", "no host"},
      {"http://h:/", "port"},
      {"http://h:0/", "port"},
      {"http://h:65536/", "port"},
      {"http://h:8a/", "port"},
      {"http://a..b/", "empty part"},
      {"http://h./", "dot at the end"},
      {"http://h%2e/", "percent code in the host"},
      {"http://b\xc3\xbc"
       "cher.example/",
       "xn--"},
      {"http://h/%zz", "hexadecimal"},
      {"http://h/%2", "hexadecimal"},
      {"http://h/%00", "%00"},
      {"http://h/a/../b", "'..'"},
      {"http://h/x#y", "'#'"},
  };
  for (const auto& c : cases) {
    const auto url = ParseHttpUrl(c.text);
    EXPECT_EQ(url.status().code(), Code::kInvalidArgument) << c.text;
    EXPECT_THAT(url.status().message(), HasSubstr(c.reason));
  }
}

TEST(HttpUrlTest, LengthsHaveLimits) {
  const std::string label(64, 'a'), path(9000, 'a');
  EXPECT_THAT(Parsed("http://" + label), HasSubstr("longer than 63"));
  EXPECT_THAT(Parsed("http://h/" + path), HasSubstr("the limit is"));
}

TEST(HttpUrlTest, OtherSchemesAreRefused) {
  for (const char* text : {"file:///etc/passwd", "ftp://h/", "gopher://h/",
                           "javascript:1", "h/x", ""}) {
    EXPECT_EQ(ParseHttpUrl(text).status().code(), Code::kUnsupported) << text;
  }
}

TEST(HttpUrlTest, ErrorsHoldNoPasswordAndNoQuery) {
  for (const char* text :
       {"https://user:secret@h/", "https://user:sec/secret@h/",
        "https://user:a#secret@h/", "https://h:x/?sig=secret",
        "http://h:x/p?x=@secret", "odd://a:secret@h/"}) {
    EXPECT_THAT(Parsed(text), Not(HasSubstr("secret"))) << text;
  }
}

TEST(HttpUrlTest, WhatAUrlMayNotHoldBecomesPercentCodes) {
  EXPECT_EQ(Parsed("http://h/\xc3\xa4[1]?q=\"x\""),
            "http://h/%C3%A4%5B1%5D?q=%22x%22");
}

TEST(HttpUrlTest, LocationsAreResolvedAgainstTheirBase) {
  const HttpUrl base = ParseHttpUrl("https://h:8443/a/b/c?q=1").value();
  const struct {
    const char* location;
    const char* whole;
  } cases[] = {
      {"http://other/x", "http://other/x"},
      {"//other/x?y", "https://other/x?y"},
      {"/x/y?z", "https://h:8443/x/y?z"},
      {"d", "https://h:8443/a/b/d"},
      {"./d", "https://h:8443/a/b/d"},
      {"../d", "https://h:8443/a/d"},
      {"../../../../d", "https://h:8443/d"},
      {"..", "https://h:8443/a/"},
      {"?z", "https://h:8443/a/b/c?z"},
      {"/x#fragment", "https://h:8443/x"},
  };
  for (const auto& c : cases) {
    const auto url = ResolveLocation(base, c.location);
    ASSERT_TRUE(url.ok()) << c.location << ": " << url.status().message();
    EXPECT_EQ(url->Text(), c.whole) << c.location;
  }
}

TEST(HttpUrlTest, LocationsOfOtherSchemesAreRefused) {
  const HttpUrl base = ParseHttpUrl("http://h/").value();
  for (const char* location :
       {"file:///etc/passwd", "javascript:alert(1)", "http:\\\\evil",
        "http://a@b/", "", "data:x", "/\\evil"}) {
    EXPECT_FALSE(ResolveLocation(base, location).ok()) << location;
  }
}

TEST(HttpUrlTest, AnOriginIsSchemeHostAndPort) {
  const HttpUrl url = ParseHttpUrl("https://h/x").value();
  EXPECT_TRUE(SameOrigin(url, ParseHttpUrl("https://H:443/y").value()));
  for (const char* other : {"http://h/x", "https://h:444/x", "https://i/x"}) {
    EXPECT_FALSE(SameOrigin(url, ParseHttpUrl(other).value())) << other;
  }
}

TEST(HttpUrlTest, EncodingAndDecodingAreInverse) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(PercentDecode(PercentEncode(all, false)), all);
  EXPECT_EQ(PercentEncode("a/b c~", true), "a/b%20c~");
  EXPECT_EQ(PercentEncode("a/b", false), "a%2Fb");
}

}  // namespace
}  // namespace muster::io
