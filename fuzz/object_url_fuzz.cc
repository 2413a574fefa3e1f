// Object URLs and Location headers of any bytes. What is accepted reads the
// same to libcurl, which connects: same host, port, path and query.
#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/check.h"
#include "io/object/object_location.h"

namespace {

using muster::io::HttpUrl;

std::string PartOf(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) {
    return "";
  }
  std::string out(text);
  curl_free(text);
  return out;
}

void CheckCurlAgrees(const HttpUrl& url) {
  CURLU* theirs = curl_url();
  CHECK_EQ(
      curl_url_set(theirs, CURLUPART_URL, url.Text().c_str(), CURLU_PATH_AS_IS),
      CURLUE_OK);
  CHECK_EQ(PartOf(theirs, CURLUPART_HOST), url.host);
  CHECK_EQ(PartOf(theirs, CURLUPART_PORT), std::to_string(url.port));
  CHECK_EQ(PartOf(theirs, CURLUPART_PATH), url.path);
  CHECK_EQ(PartOf(theirs, CURLUPART_QUERY), url.query);
  CHECK_EQ(PartOf(theirs, CURLUPART_USER), "");
  curl_url_cleanup(theirs);
}

void CheckUrl(const HttpUrl& url) {
  const auto again = muster::io::ParseHttpUrl(url.Text());
  CHECK(again.ok() || url.Text().size() > 8192);
  if (!again.ok()) return;
  CHECK_EQ(again->Text(), url.Text());
  CheckCurlAgrees(url);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto url = muster::io::ParseObjectUrl(text); url.ok()) {
    const std::string name = muster::io::FileNameOf(*url);
    CHECK(name.find('/') == name.npos && name != "..");
    const auto location = muster::io::Locate(*url, {});
    if (location.ok()) CheckUrl(location->url);
  }
  const HttpUrl base{.host = "base", .path = "/a/b", .query = "q"};
  const auto target = muster::io::ResolveLocation(base, text);
  if (target.ok()) CheckUrl(*target);
  return 0;
}
