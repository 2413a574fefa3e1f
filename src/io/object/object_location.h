// Where an object is asked for, and with what.
#pragma once

#include <string>

#include "base/status.h"
#include "io/object/address_policy.h"
#include "io/object/credentials.h"
#include "io/object/object_settings.h"
#include "io/object/object_url.h"

namespace muster::io {

struct ObjectLocation {
  std::string name;  // for people
  HttpUrl url;       // its query may hold a secret
  HttpHeaders headers;
  Credentials credentials;           // for the origin of `url`, no other
  bool has_checksum_header = false;  // x-linked-etag of this origin is trusted
  std::string if_denied;             // what to do on 401 and 403
};

// Fails with kInvalidArgument on settings that contradict each other or `url`,
// naming the variable.
Result<ObjectLocation> Locate(const ObjectUrl& url,
                              const ObjectSettings& settings);

// How far requests to the operator's own URL may reach.
Reach ReachOf(const HttpUrl& origin);

}  // namespace muster::io
