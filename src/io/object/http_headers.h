// Headers of a request, in the order in which they are sent.
#pragma once

#include <string>
#include <vector>

namespace muster::io {

struct HttpHeader {
  std::string name;  // lower case
  std::string value;
};

using HttpHeaders = std::vector<HttpHeader>;

}  // namespace muster::io
