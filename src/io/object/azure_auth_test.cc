#include "io/object/azure_auth.h"

#include <gtest/gtest.h>

#include "io/object/digest.h"

namespace muster::io {
namespace {

const AzureKey kKey = {"myaccount", "the key"};

std::string SignatureOf(const std::string& to_sign) {
  return "SharedKey myaccount:" + Base64(HmacSha256(kKey.key, to_sign));
}

// The text that is signed, written out as the manual gives it.
TEST(AzureAuthTest, SignsTheStringOfTheManual) {
  const AzureRequest request = {
      .url = ParseHttpUrl("https://myaccount.blob.core.windows.net/"
                          "mycontainer/a%20blob?timeout=20&comp=metadata")
                 .value(),
      .headers = {{"range", "bytes=0-9"},
                  {"x-ms-version", "2015-02-21"},
                  {"if-match", "\"0x8D\""}},
      .unix_seconds = 1435361442};
  const HttpHeaders headers = SignAzure(kKey, request);
  ASSERT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers[0].name, "x-ms-date");
  EXPECT_EQ(headers[0].value, "Fri, 26 Jun 2015 23:30:42 GMT");
  EXPECT_EQ(headers[1].value,
            SignatureOf("GET\n\n\n\n\n\n\n\n\"0x8D\"\n\n\nbytes=0-9\n"
                        "x-ms-date:Fri, 26 Jun 2015 23:30:42 GMT\n"
                        "x-ms-version:2015-02-21\n"
                        "/myaccount/mycontainer/a%20blob\n"
                        "comp:metadata\ntimeout:20"));
}

TEST(AzureAuthTest, AnEmulatorsPathHoldsTheAccountTwice) {
  const AzureRequest request = {
      .url = ParseHttpUrl("http://127.0.0.1:10000/myaccount/c/b").value(),
      .unix_seconds = 0};
  EXPECT_EQ(SignAzure(kKey, request)[1].value,
            SignatureOf("GET\n\n\n\n\n\n\n\n\n\n\n\n"
                        "x-ms-date:Thu, 01 Jan 1970 00:00:00 GMT\n"
                        "/myaccount/myaccount/c/b"));
}

}  // namespace
}  // namespace muster::io
