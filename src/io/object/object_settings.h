// Endpoints and credentials of the operator, from the environment.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace muster::io {

// Empty: not set. Holds secrets: never printed.
struct ObjectSettings {
  std::string aws_access_key_id;
  std::string aws_secret_access_key;
  std::string aws_session_token;
  std::string aws_region;
  std::string aws_endpoint;
  std::string azure_account;
  std::string azure_key;        // base64
  std::string azure_sas_token;  // with or without its '?'
  std::string azure_endpoint;
  std::string hf_endpoint;
  std::string hf_token;
  std::string ca_file;
};

// Every environment variable of object storage; of several that set the same
// field, the first counts.
struct ObjectVariable {
  const char* name;
  std::string ObjectSettings::*field;
  const char* help;
};
std::span<const ObjectVariable> ObjectVariables();

// `get` returns a variable's value, or null. Space at the ends is left out.
ObjectSettings ReadObjectSettings(
    const std::function<const char*(const char* name)>& get);
ObjectSettings ObjectSettingsFromEnvironment();

}  // namespace muster::io
