#include "io/object/object_location.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/object/ascii.h"
#include "io/object/digest.h"

namespace muster::io {
namespace {

// A value that would break out of its header is no credential.
Status CheckSettings(const ObjectSettings& settings) {
  for (const ObjectVariable& variable : ObjectVariables()) {
    const std::string& value = settings.*variable.field;
    if (!std::all_of(value.begin(), value.end(), IsPrintable)) {
      return InvalidArgument(
          fmt::format("{} holds a control character", variable.name));
    }
  }
  return {};
}

// `path` under an endpoint, which may have a path of its own.
HttpUrl Under(HttpUrl endpoint, std::string_view path) {
  while (!endpoint.path.empty() && endpoint.path.back() == '/') {
    endpoint.path.pop_back();
  }
  endpoint.path += path;
  return endpoint;
}

Result<HttpUrl> ParseEndpoint(std::string_view variable,
                              const std::string& text) {
  Result<HttpUrl> url = ParseHttpUrl(text);
  if (!url.ok()) {
    return InvalidArgument(
        fmt::format("{}: {}", variable, url.status().message()));
  }
  if (!url->query.empty()) {
    return InvalidArgument(
        fmt::format("{}: an endpoint has no query", variable));
  }
  return url;
}

Result<HttpUrl> S3Address(const S3Url& s3, const std::string& region,
                          const std::string& endpoint) {
  const std::string key =
      fmt::format("/{}", PercentEncode(s3.key, /*keep_slash=*/true));
  if (!endpoint.empty()) {
    ASSIGN_OR_RETURN(const HttpUrl base,
                     ParseEndpoint("AWS_ENDPOINT_URL", endpoint));
    return Under(base, fmt::format("/{}{}", s3.bucket, key));
  }
  // A bucket with a dot has no certificate of its own.
  const bool in_path = s3.bucket.find('.') != s3.bucket.npos;
  const std::string server = fmt::format("s3.{}.amazonaws.com", region);
  HttpUrl url{.host = in_path ? server : s3.bucket + "." + server};
  url.path = in_path ? fmt::format("/{}{}", s3.bucket, key) : key;
  return url;
}

Status CheckRegion(const std::string& region) {
  const bool ok = std::all_of(region.begin(), region.end(), [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || c == '-';
  });
  return ok ? Status()
            : InvalidArgument(
                  "AWS_REGION is not a region's name, such as "
                  "eu-central-1");
}

Result<ObjectLocation> LocateS3(const S3Url& s3, const ObjectSettings& set) {
  const bool has_id = !set.aws_access_key_id.empty();
  if (has_id != !set.aws_secret_access_key.empty()) {
    return InvalidArgument(fmt::format(
        "{} is set and {} is not; set both, or neither for anonymous access",
        has_id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
        has_id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"));
  }
  const std::string region =
      set.aws_region.empty() ? "us-east-1" : set.aws_region;
  RETURN_IF_ERROR(CheckRegion(region));
  ObjectLocation at{.name = NameOf(s3)};
  ASSIGN_OR_RETURN(at.url, S3Address(s3, region, set.aws_endpoint));
  if (has_id) {
    at.credentials =
        AwsCredentials{{set.aws_access_key_id, set.aws_secret_access_key,
                        set.aws_session_token},
                       region};
  }
  at.if_denied = has_id ? "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
                          "AWS_SESSION_TOKEN and AWS_REGION"
                        : "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  return at;
}

Result<HttpUrl> AzureAddress(const AzureUrl& azure, const ObjectSettings& set) {
  const std::string path =
      fmt::format("/{}/{}", PercentEncode(azure.container, false),
                  PercentEncode(azure.blob, /*keep_slash=*/true));
  if (set.azure_endpoint.empty()) {
    HttpUrl url{.host = azure.account + ".blob.core.windows.net"};
    url.path = path;
    return url;
  }
  ASSIGN_OR_RETURN(
      const HttpUrl base,
      ParseEndpoint("AZURE_STORAGE_BLOB_ENDPOINT", set.azure_endpoint));
  return Under(base, path);
}

Status AddAzureCredentials(const ObjectSettings& set, ObjectLocation* at) {
  if (!set.azure_sas_token.empty()) {
    const bool marked = set.azure_sas_token.front() == '?';
    const auto with_query = ParseHttpUrl(fmt::format(
        "https://host/?{}", set.azure_sas_token.substr(marked ? 1 : 0)));
    if (!with_query.ok()) {
      return InvalidArgument("AZURE_STORAGE_SAS_TOKEN is not a query string");
    }
    at->url.query = with_query->query;
  } else if (!set.azure_key.empty()) {
    const auto key = DecodeBase64(set.azure_key);
    if (!key.ok()) return InvalidArgument("AZURE_STORAGE_KEY is not base64");
    at->credentials = AzureKey{set.azure_account, *key};
  }
  return {};
}

Result<ObjectLocation> LocateAzure(const AzureUrl& azure,
                                   const ObjectSettings& set) {
  const bool has_own = !set.azure_key.empty() || !set.azure_sas_token.empty() ||
                       !set.azure_endpoint.empty();
  if (has_own && set.azure_account.empty()) {
    return InvalidArgument(
        "AZURE_STORAGE_ACCOUNT is not set: it says whose the key, SAS token "
        "and endpoint are");
  }
  // What is another account's is not shown to this one.
  const bool is_own = set.azure_account == azure.account;
  const ObjectSettings none;
  ObjectLocation at{.name = NameOf(azure)};
  ASSIGN_OR_RETURN(at.url, AzureAddress(azure, is_own ? set : none));
  at.headers = {{"x-ms-version", kAzureVersion}};
  if (is_own) RETURN_IF_ERROR(AddAzureCredentials(set, &at));
  at.if_denied = is_own ? "check AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"
                        : "set AZURE_STORAGE_ACCOUNT to this account and "
                          "AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN";
  return at;
}

Result<ObjectLocation> LocateHuggingFace(const HuggingFaceUrl& hub,
                                         const ObjectSettings& set) {
  if (hub.file.empty()) {
    return InvalidArgument(
        fmt::format("{}: names a repository; add the file, hf://ORG/REPO/FILE",
                    NameOf(hub)));
  }
  ASSIGN_OR_RETURN(const HttpUrl base,
                   ParseEndpoint("HF_ENDPOINT", set.hf_endpoint.empty()
                                                    ? "https://huggingface.co"
                                                    : set.hf_endpoint));
  ObjectLocation at{.name = NameOf(hub), .has_checksum_header = true};
  at.url = Under(base,
                 fmt::format("/{}/{}/resolve/{}/{}", hub.organization,
                             hub.repository, PercentEncode(hub.revision, false),
                             PercentEncode(hub.file, true)));
  if (!set.hf_token.empty()) at.credentials = BearerToken{set.hf_token};
  at.if_denied = set.hf_token.empty()
                     ? "set HF_TOKEN; gated repositories also want their "
                       "terms accepted"
                     : "check HF_TOKEN, and that the repository's terms are "
                       "accepted";
  return at;
}

}  // namespace

Result<ObjectLocation> Locate(const ObjectUrl& url,
                              const ObjectSettings& settings) {
  RETURN_IF_ERROR(CheckSettings(settings));
  if (const auto* s3 = std::get_if<S3Url>(&url)) {
    return LocateS3(*s3, settings);
  }
  if (const auto* azure = std::get_if<AzureUrl>(&url)) {
    return LocateAzure(*azure, settings);
  }
  if (const auto* hub = std::get_if<HuggingFaceUrl>(&url)) {
    return LocateHuggingFace(*hub, settings);
  }
  return ObjectLocation{.name = NameOf(url),
                        .url = std::get<HttpUrl>(url),
                        .if_denied =
                            "the server wants credentials that plain "
                            "URLs have no place for"};
}

Reach ReachOf(const HttpUrl& origin) {
  return origin.HostIsAddress() ? Reach::kAny : Reach::kNetwork;
}

}  // namespace muster::io
