#include "io/object/object_settings.h"

#include <cstdlib>

#include "io/object/ascii.h"

namespace muster::io {
namespace {

constexpr ObjectVariable kVariables[] = {
    {"AWS_ACCESS_KEY_ID", &ObjectSettings::aws_access_key_id,
     "s3: the key's id; without it, requests are anonymous"},
    {"AWS_SECRET_ACCESS_KEY", &ObjectSettings::aws_secret_access_key,
     "s3: the key's secret"},
    {"AWS_SESSION_TOKEN", &ObjectSettings::aws_session_token,
     "s3: the token of temporary keys"},
    {"AWS_REGION", &ObjectSettings::aws_region,
     "s3: the bucket's region (us-east-1)"},
    {"AWS_DEFAULT_REGION", &ObjectSettings::aws_region,
     "s3: the same, where AWS_REGION is not set"},
    {"AWS_ENDPOINT_URL_S3", &ObjectSettings::aws_endpoint,
     "s3: another server; buckets are then the first part of the path"},
    {"AWS_ENDPOINT_URL", &ObjectSettings::aws_endpoint,
     "s3: the same, where AWS_ENDPOINT_URL_S3 is not set"},
    {"AZURE_STORAGE_ACCOUNT", &ObjectSettings::azure_account,
     "az: the account that the key, the SAS token and the endpoint are of"},
    {"AZURE_STORAGE_KEY", &ObjectSettings::azure_key,
     "az: the account's key, base64"},
    {"AZURE_STORAGE_SAS_TOKEN", &ObjectSettings::azure_sas_token,
     "az: a shared access signature; used rather than the key"},
    {"AZURE_STORAGE_BLOB_ENDPOINT", &ObjectSettings::azure_endpoint,
     "az: another server, such as http://127.0.0.1:10000/devstoreaccount1"},
    {"HF_ENDPOINT", &ObjectSettings::hf_endpoint,
     "hf: another server (https://huggingface.co)"},
    {"HF_TOKEN", &ObjectSettings::hf_token,
     "hf: the token for private and gated repositories"},
    {"SSL_CERT_FILE", &ObjectSettings::ca_file,
     "a file of certificate authorities to trust, rather than the system's"},
};

}  // namespace

std::span<const ObjectVariable> ObjectVariables() { return kVariables; }

ObjectSettings ReadObjectSettings(
    const std::function<const char*(const char* name)>& get) {
  ObjectSettings settings;
  for (const ObjectVariable& variable : kVariables) {
    const char* value = get(variable.name);
    std::string& field = settings.*variable.field;
    if (value != nullptr && field.empty()) field = Trim(value);
  }
  return settings;
}

ObjectSettings ObjectSettingsFromEnvironment() {
  return ReadObjectSettings([](const char* name) { return std::getenv(name); });
}

}  // namespace muster::io
