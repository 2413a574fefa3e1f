// Stop strings, found in text and not in tokens: a string may begin in one
// token and end in another (CASES A01, A03).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

// Feed text as it comes; what is returned may be shown. The start of what might
// become a stop string is held back. One thread at a time.
class StopMatcher {
 public:
  // Empty strings are left out.
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that may be shown now. After a match nothing more is returned.
  std::string Feed(std::string_view text);

  // What was held back, when no more text will come.
  std::string Flush();

  bool stopped() const { return stopped_; }
  const std::string& matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string matched_;
  bool stopped_ = false;
};

}  // namespace muster::tokenizer
