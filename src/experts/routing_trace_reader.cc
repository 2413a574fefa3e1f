#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <istream>

#include "experts/routing_trace.h"

namespace muster::experts {
namespace {

constexpr size_t kMaxDepth = 8;  // a line nests three deep
constexpr size_t kShownBytes = 60;

// A line's beginning, safe to print.
std::string Excerpt(std::string_view line) {
  std::string shown(line.substr(0, kShownBytes));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return line.size() > kShownBytes ? shown + "..." : shown;
}

}  // namespace

class TraceReader::Parser {
 public:
  Parser(std::istream& in, std::string name)
      : in_(in),
        name_(std::move(name)),
        line_(kMaxTraceLineBytes + 1 + simdjson::SIMDJSON_PADDING),
        seen_(kMaxTraceExperts) {}

  const TraceHeader& header() const { return header_; }

  Result<bool> Next(TokenRouting* out) {
    while (true) {
      ASSIGN_OR_RETURN(const bool there_is_one, ReadLine());
      if (!there_is_one) return false;
      if (Text().find_first_not_of(" \t\r") == std::string_view::npos) continue;
      ASSIGN_OR_RETURN(const Kind kind, ParseLine(out));
      if (kind == Kind::kToken) return true;
    }
  }

 private:
  enum class Kind { kHeader, kToken };

  std::string_view Text() const { return {line_.data(), length_}; }

  // False: the end.
  Result<bool> ReadLine() {
    in_.getline(line_.data(), kMaxTraceLineBytes + 1);
    ++number_;
    if (in_.bad()) return IoError(fmt::format("{}: cannot be read", name_));
    const auto got = static_cast<size_t>(in_.gcount());
    if (in_.eof()) {
      length_ = got;
      return got != 0;
    }
    if (in_.fail()) {
      return Corrupt(fmt::format("{} line {}: longer than {} bytes", name_,
                                 number_, kMaxTraceLineBytes));
    }
    length_ = got - 1;  // the line's end counts, too
    return true;
  }

  Status Expected(const std::string& what) const {
    return Corrupt(fmt::format("{} line {}: expected {}, found {}", name_,
                               number_, what, Excerpt(Text())));
  }

  // The first line may be a header instead of a token.
  Result<Kind> ParseLine(TokenRouting* out) {
    has_token_ = has_experts_ = has_header_ = false;
    out->ids.clear();
    out->ends.clear();
    status_ = {};
    if (!ParseFields(out)) {
      return Expected(R"({"token": n, "experts": [[id, ...] per layer]})");
    }
    RETURN_IF_ERROR(status_);
    const bool is_first = !has_first_line_;
    has_first_line_ = true;
    if (is_first && has_header_ && !has_token_ && !has_experts_) {
      RETURN_IF_ERROR(CheckHeader());
      return Kind::kHeader;
    }
    if (has_header_) return Expected("a header on the first line only");
    if (!has_token_ || !has_experts_) return Expected("'token' and 'experts'");
    RETURN_IF_ERROR(CheckLayers(*out));
    return Kind::kToken;
  }

  // False: not JSON of the expected kind. A fault with a better message is in
  // status_.
  bool ParseFields(TokenRouting* out) {
    namespace json = simdjson::ondemand;
    if (parser_.capacity() == 0 &&
        parser_.allocate(kMaxTraceLineBytes + 1, kMaxDepth) !=
            simdjson::SUCCESS) {
      return false;
    }
    json::document document;
    if (parser_.iterate(line_.data(), length_, line_.size()).get(document) !=
        simdjson::SUCCESS) {
      return false;
    }
    json::object root;
    if (document.get_object().get(root) != simdjson::SUCCESS) return false;
    for (auto field : root) {
      std::string_view key;
      json::value value;
      if (field.unescaped_key().get(key) != simdjson::SUCCESS) return false;
      if (field.value().get(value) != simdjson::SUCCESS) return false;
      if (!ParseField(key, value, out)) return false;
      if (!status_.ok()) return true;
    }
    // Nothing may stand behind the object.
    return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  }

  // Unknown keys are left aside.
  bool ParseField(std::string_view key, simdjson::ondemand::value value,
                  TokenRouting* out) {
    if (key == "token") {
      has_token_ = true;
      return value.get_uint64().get(out->token) == simdjson::SUCCESS;
    }
    if (key == "experts") {
      if (has_experts_) status_ = Expected("'experts' once");
      has_experts_ = true;
      return status_.ok() ? ParseExperts(value, out) : true;
    }
    if (key == "model") {
      has_header_ = true;
      std::string_view model;
      if (value.get_string().get(model) != simdjson::SUCCESS) return false;
      if (!has_first_line_) header_.model = model;
      return true;
    }
    if (key == "num_experts") {
      has_header_ = true;
      return ParseNumbers(value, kMaxTraceExperts, &header_.num_experts);
    }
    if (key == "expert_bytes") {
      has_header_ = true;
      return ParseNumbers(value, uint64_t{1} << 40, &header_.expert_bytes);
    }
    return true;
  }

  // A number for each layer. Of a later line, nothing is kept.
  template <class T>
  bool ParseNumbers(simdjson::ondemand::value value, uint64_t most,
                    std::vector<T>* out) {
    if (has_first_line_) return true;
    out->clear();
    simdjson::ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return false;
    for (auto element : array) {
      uint64_t number = 0;
      if (element.get_uint64().get(number) != simdjson::SUCCESS) return false;
      if (number > most) {
        status_ = Expected(fmt::format("numbers up to {}", most));
        return true;
      }
      out->push_back(static_cast<T>(number));
    }
    return true;
  }

  bool ParseExperts(simdjson::ondemand::value value, TokenRouting* out) {
    simdjson::ondemand::array layers;
    if (value.get_array().get(layers) != simdjson::SUCCESS) return false;
    for (auto layer : layers) {
      simdjson::ondemand::array ids;
      if (layer.get_array().get(ids) != simdjson::SUCCESS) return false;
      ++num_lists_;
      for (auto element : ids) {
        uint64_t id = 0;
        if (element.get_uint64().get(id) != simdjson::SUCCESS) return false;
        if (!TakeId(id, out)) return true;
      }
      out->ends.push_back(static_cast<uint32_t>(out->ids.size()));
    }
    return true;
  }

  // False: status_ says why not.
  bool TakeId(uint64_t id, TokenRouting* out) {
    const size_t layer = out->ends.size();
    const uint64_t limit = layer < header_.num_experts.size()
                               ? header_.num_experts[layer]
                               : kMaxTraceExperts;
    if (id >= limit) {
      status_ = Expected(
          fmt::format("ids below {} in layer {}, not {}", limit, layer, id));
      return false;
    }
    if (seen_[id] == num_lists_) {
      status_ = Expected(
          fmt::format("each id once in layer {}, not {} twice", layer, id));
      return false;
    }
    seen_[id] = num_lists_;
    out->ids.push_back(static_cast<uint32_t>(id));
    return true;
  }

  Status CheckHeader() {
    const size_t experts = header_.num_experts.size();
    const size_t bytes = header_.expert_bytes.size();
    num_layers_ = std::max(experts, bytes);
    if (experts != 0 && bytes != 0 && experts != bytes) {
      return Expected(
          fmt::format("as many 'expert_bytes' as 'num_experts', not {} and {}",
                      bytes, experts));
    }
    uint64_t in_all = 0;
    for (const uint32_t n : header_.num_experts) in_all += n;
    if (num_layers_ > kMaxTraceLayers || in_all > kMaxTraceExpertsInAll) {
      return Expected(fmt::format("at most {} layers and {} experts",
                                  kMaxTraceLayers, kMaxTraceExpertsInAll));
    }
    return {};
  }

  Status CheckLayers(const TokenRouting& token) {
    if (num_layers_ == 0) num_layers_ = token.num_layers();
    if (token.num_layers() == 0 || token.num_layers() > kMaxTraceLayers) {
      return Expected(fmt::format("1 to {} layers, not {}", kMaxTraceLayers,
                                  token.num_layers()));
    }
    if (token.num_layers() != num_layers_) {
      return Expected(fmt::format("{} layers as before, not {}", num_layers_,
                                  token.num_layers()));
    }
    return {};
  }

  std::istream& in_;
  const std::string name_;
  std::vector<char> line_;  // with the room behind it that simdjson reads
  size_t length_ = 0;       // of the line
  uint64_t number_ = 0;     // of the line, from 1
  simdjson::ondemand::parser parser_;

  TraceHeader header_;
  size_t num_layers_ = 0;  // 0: not known yet
  bool has_first_line_ = false;

  // Of the line that is being read.
  bool has_token_ = false;
  bool has_experts_ = false;
  bool has_header_ = false;
  Status status_;

  // The list of ids, counted over the whole trace, that had the id last.
  std::vector<uint64_t> seen_;  // [kMaxTraceExperts]
  uint64_t num_lists_ = 0;
};

TraceReader::TraceReader(std::istream& in, std::string name)
    : parser_(std::make_unique<Parser>(in, std::move(name))) {}

TraceReader::~TraceReader() = default;

Result<bool> TraceReader::Next(TokenRouting* out) { return parser_->Next(out); }

const TraceHeader& TraceReader::header() const { return parser_->header(); }

}  // namespace muster::experts
