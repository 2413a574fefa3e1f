#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include "base/checked_math.h"
#include "formats/safetensors.h"

namespace muster::formats {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxDepth = 8;                    // a header nests three deep

// Reads the JSON header field by field, so that a key that stands there twice
// is seen (CASES T02).
class HeaderReader {
 public:
  explicit HeaderReader(const io::File& file) : file_(file) {}

  Result<std::vector<TensorInfo>> Read() {
    RETURN_IF_ERROR(LoadText());
    if (!Parse()) return Error("the header is not valid JSON of its kind");
    RETURN_IF_ERROR(status_);
    RETURN_IF_ERROR(CheckLayout());
    return std::move(tensors_);
  }

 private:
  Status Error(const std::string& message) const {
    return Corrupt(fmt::format("{}: {}", file_.path(), message));
  }

  Status LoadText() {
    uint64_t length = 0;
    if (file_.size_bytes() < sizeof(length)) {
      return Error(fmt::format("{} bytes, expected a safetensors header",
                               file_.size_bytes()));
    }
    RETURN_IF_ERROR(
        file_.ReadAt(0, std::as_writable_bytes(std::span(&length, 1))));
    const uint64_t most =
        std::min(kMaxHeaderBytes, file_.size_bytes() - sizeof(length));
    if (length > most) {
      return Error(fmt::format(
          "the header claims {} bytes, expected at most {}", length, most));
    }
    text_.resize(length);
    data_start_ = sizeof(length) + length;
    return file_.ReadAt(sizeof(length),
                        std::as_writable_bytes(std::span(text_)));
  }

  // False: not JSON of the expected kind. A fault with a better message is in
  // status_.
  bool Parse() {
    simdjson::ondemand::parser parser;
    if (parser.allocate(text_.size() + 64, kMaxDepth) != simdjson::SUCCESS) {
      return false;
    }
    const simdjson::padded_string padded(text_);
    simdjson::ondemand::document document;
    if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return false;
    simdjson::ondemand::object root;
    if (document.get_object().get(root) != simdjson::SUCCESS) return false;
    for (auto field : root) {
      std::string_view name;
      if (field.unescaped_key().get(name) != simdjson::SUCCESS) return false;
      if (!names_.insert(std::string(name)).second) {
        status_ = Error(fmt::format("'{}' stands there twice", name));
        return true;
      }
      simdjson::ondemand::value value;
      if (field.value().get(value) != simdjson::SUCCESS) return false;
      if (name == "__metadata__") continue;
      // The key's bytes may be reused by what is parsed next.
      simdjson::ondemand::object entry;
      std::string owned(name);
      if (value.get_object().get(entry) != simdjson::SUCCESS) return false;
      if (!ParseTensor(std::move(owned), entry)) return false;
      if (!status_.ok()) return true;
    }
    // Nothing may stand behind the object.
    return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  }

  bool ParseTensor(std::string name, simdjson::ondemand::object& entry) {
    TensorInfo tensor;
    tensor.name = std::move(name);
    bool has_type = false, has_shape = false;
    std::vector<uint64_t> offsets;
    std::unordered_set<std::string> seen;
    for (auto field : entry) {
      std::string_view key;
      if (field.unescaped_key().get(key) != simdjson::SUCCESS) return false;
      if (!seen.insert(std::string(key)).second) {
        status_ = Error(fmt::format("tensor '{}': '{}' stands there twice",
                                    tensor.name, key));
        return true;
      }
      if (key == "dtype") {
        std::string_view type;
        if (field.value().get_string().get(type) != simdjson::SUCCESS) {
          return false;
        }
        const auto dtype = DTypeFromSafetensors(type);
        if (!dtype) {
          status_ = Status(
              Code::kUnsupported,
              fmt::format("{}: tensor '{}' has dtype '{}', which this build "
                          "does not read",
                          file_.path(), tensor.name, type));
          return true;
        }
        tensor.type = *dtype;
        has_type = true;
      } else if (key == "shape") {
        if (!ParseNumbers(field.value(), tensor.shape)) return false;
        has_shape = true;
      } else if (key == "data_offsets") {
        if (!ParseNumbers(field.value(), offsets)) return false;
      } else {
        status_ = Error(
            fmt::format("tensor '{}' has a field '{}'", tensor.name, key));
        return true;
      }
    }
    if (!has_type || !has_shape || offsets.size() != 2) {
      status_ = Error(fmt::format(
          "tensor '{}' lacks dtype, shape or two data_offsets", tensor.name));
      return true;
    }
    status_ = Place(tensor, offsets[0], offsets[1]);
    tensors_.push_back(std::move(tensor));
    return true;
  }

  static bool ParseNumbers(
      simdjson::simdjson_result<simdjson::ondemand::value> value,
      std::vector<uint64_t>& out) {
    simdjson::ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return false;
    for (auto element : array) {
      uint64_t number = 0;
      if (element.get_uint64().get(number) != simdjson::SUCCESS) return false;
      if (out.size() >= 16) return false;  // no tensor has so many dimensions
      out.push_back(number);
    }
    return true;
  }

  // CASES T01: the range must be exactly what shape and type need.
  Status Place(TensorInfo& tensor, uint64_t begin, uint64_t end) {
    const DTypeTraits& traits = Traits(tensor.type);
    std::optional<uint64_t> size = traits.block_bytes;
    for (const uint64_t dim : tensor.shape) {
      if (size) size = CheckedMul(*size, dim);
    }
    if (!size || end < begin || end - begin != *size) {
      return Error(fmt::format(
          "tensor '{}': data_offsets [{}, {}] hold {} bytes, and {} of shape "
          "[{}] needs {}",
          tensor.name, begin, end, static_cast<int64_t>(end - begin),
          traits.name, fmt::join(tensor.shape, ", "),
          size ? std::to_string(*size) : "more than any file"));
    }
    const uint64_t data_bytes = file_.size_bytes() - data_start_;
    if (end > data_bytes) {
      return Error(fmt::format(
          "tensor '{}' ends at byte {} of the data, and the file has {}: {} "
          "bytes are missing (an interrupted download?)",
          tensor.name, end, data_bytes, end - data_bytes));
    }
    tensor.offset = data_start_ + begin;
    tensor.size_bytes = *size;
    return {};
  }

  // The format allows no overlap and no holes.
  Status CheckLayout() {
    std::vector<const TensorInfo*> by_offset;
    for (const TensorInfo& tensor : tensors_) by_offset.push_back(&tensor);
    std::sort(by_offset.begin(), by_offset.end(),
              [](const TensorInfo* a, const TensorInfo* b) {
                return a->offset != b->offset ? a->offset < b->offset
                                              : a->size_bytes < b->size_bytes;
              });
    uint64_t expected = data_start_;
    for (const TensorInfo* tensor : by_offset) {
      if (tensor->offset != expected) {
        return Error(fmt::format(
            "tensor '{}' starts at byte {}, expected {}: tensors overlap or "
            "leave a hole",
            tensor->name, tensor->offset, expected));
      }
      expected += tensor->size_bytes;
    }
    if (expected == file_.size_bytes()) return {};
    return Error(fmt::format("{} bytes stand behind the last tensor",
                             file_.size_bytes() - expected));
  }

  const io::File& file_;
  std::string text_;
  uint64_t data_start_ = 0;
  Status status_;
  std::vector<TensorInfo> tensors_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Result<std::vector<TensorInfo>> ReadSafetensorsHeader(const io::File& file) {
  return HeaderReader(file).Read();
}

}  // namespace muster::formats
