#include "tokenizer/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace muster::tokenizer {

StopMatcher::StopMatcher(std::vector<std::string> stops)
    : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopMatcher::Feed(std::string_view text) {
  if (stopped_) return "";
  held_ += text;
  // The match that begins first wins; of two at one place, the longer.
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos || at > first) continue;
    if (at < first || stop.size() > matched_.size()) matched_ = stop;
    first = at;
  }
  if (first != std::string::npos) {
    stopped_ = true;
    return held_.substr(0, first);
  }
  // Hold back the longest tail that begins a stop string.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    const size_t longest = std::min(stop.size() - 1, held_.size());
    for (size_t n = longest; n > keep; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) {
        keep = n;
        break;
      }
    }
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return shown;
}

std::string StopMatcher::Flush() {
  return stopped_ ? "" : std::exchange(held_, "");
}

}  // namespace muster::tokenizer
