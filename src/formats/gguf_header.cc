#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <unordered_set>

#include "base/checked_math.h"
#include "formats/cursor.h"
#include "formats/gguf.h"

namespace muster::formats {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;  // the specification's limit
constexpr uint64_t kMaxNameBytes = 63;    // ggml's, without the zero
constexpr uint64_t kMaxStringBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxAlignment = 65536;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDims = 4;

// The specification's gguf_metadata_value_type.
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// Types that other programs know and this one does not, and numbers that mean
// different things to different programs.
std::string DescribeUnknownType(uint32_t type) {
  struct Known {
    uint32_t number;
    const char* name;
  };
  static constexpr Known kKnown[] = {
      {9, "Q8_1"},     {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
      {18, "IQ3_XXS"}, {19, "IQ1_S"}, {21, "IQ3_S"},   {22, "IQ2_S"},
      {29, "IQ1_M"},   {34, "TQ1_0"}, {35, "TQ2_0"},   {40, "NVFP4"}};
  for (const Known& known : kKnown) {
    if (known.number == type) {
      return fmt::format("{} ({}), which this build does not compute with",
                         type, known.name);
    }
  }
  if (type == 4 || type == 5 || (type >= 31 && type <= 33) ||
      (type >= 36 && type <= 38)) {
    return fmt::format("{}, which was withdrawn: convert the model again",
                       type);
  }
  if (type >= 97) {
    return fmt::format(
        "{}, which stands in a fork's own numbering: its meaning is not known "
        "here, and guessing would give wrong numbers",
        type);
  }
  return fmt::format("{}, which is unknown here: it needs a newer build", type);
}

class HeaderReader {
 public:
  explicit HeaderReader(const io::File& file) : file_(file), in_(file) {}

  Result<GgufHeader> Read() {
    ASSIGN_OR_RETURN(const auto magic, in_.Read<uint32_t>("the magic number"));
    if (magic != 0x46554747u) {
      return in_.Error("the magic number is not 'GGUF'");
    }
    ASSIGN_OR_RETURN(header_.version, in_.Read<uint32_t>("the version"));
    RETURN_IF_ERROR(CheckVersion());
    ASSIGN_OR_RETURN(const auto num_tensors,
                     in_.Read<uint64_t>("the number of tensors"));
    ASSIGN_OR_RETURN(const auto num_keys,
                     in_.Read<uint64_t>("the number of keys"));
    // The smallest tensor takes 33 bytes of header, the smallest key 14.
    RETURN_IF_ERROR(in_.CheckCount(num_tensors, 33, "tensors"));
    RETURN_IF_ERROR(in_.CheckCount(num_keys, 14, "keys"));
    for (uint64_t i = 0; i < num_keys; ++i) RETURN_IF_ERROR(ReadKey());
    header_.metadata_end_offset = in_.offset();
    ASSIGN_OR_RETURN(alignment_, Alignment());
    for (uint64_t i = 0; i < num_tensors; ++i) RETURN_IF_ERROR(ReadTensor());
    RETURN_IF_ERROR(PlaceTensors());
    return std::move(header_);
  }

 private:
  Status CheckVersion() const {
    if (header_.version == 2 || header_.version == 3) return {};
    if (__builtin_bswap32(header_.version) <= 3) {
      return in_.Error("the file is big-endian, expected little-endian");
    }
    return in_.Error(
        fmt::format("GGUF version {}, expected 2 or 3", header_.version));
  }

  Status ReadKey() {
    ASSIGN_OR_RETURN(auto key, in_.ReadString(kMaxKeyBytes, "a key"));
    ASSIGN_OR_RETURN(const auto type, in_.Read<uint32_t>("a value's type"));
    ASSIGN_OR_RETURN(auto value, ReadValue(key, type));
    if (key == "general.alignment" && type != 4) {
      return in_.Error(fmt::format(
          "general.alignment has value type {}, expected 4 (UINT32)", type));
    }
    if (Status status = header_.metadata.Add(std::move(key), std::move(value));
        !status.ok()) {
      return in_.Error(status.message());
    }
    return {};
  }

  Result<MetadataValue> ReadValue(const std::string& key, uint32_t type) {
    if (type == static_cast<uint32_t>(ValueType::kArray)) return ReadArray(key);
    return ReadScalar(key, type);
  }

  template <class Stored, class Wide>
  Result<MetadataValue> Number() {
    ASSIGN_OR_RETURN(const auto value, in_.Read<Stored>("a value"));
    return MetadataValue(static_cast<Wide>(value));
  }

  // Non-negative signed integers are kept as unsigned ones, so that readers
  // need not care which a writer chose.
  template <class Stored>
  Result<MetadataValue> SignedNumber() {
    ASSIGN_OR_RETURN(const auto value, in_.Read<Stored>("a value"));
    if (value < 0) return MetadataValue(static_cast<int64_t>(value));
    return MetadataValue(static_cast<uint64_t>(value));
  }

  Result<MetadataValue> ReadScalar(const std::string& key, uint32_t type) {
    switch (static_cast<ValueType>(type)) {
      case ValueType::kUint8:
        return Number<uint8_t, uint64_t>();
      case ValueType::kInt8:
        return SignedNumber<int8_t>();
      case ValueType::kUint16:
        return Number<uint16_t, uint64_t>();
      case ValueType::kInt16:
        return SignedNumber<int16_t>();
      case ValueType::kUint32:
        return Number<uint32_t, uint64_t>();
      case ValueType::kInt32:
        return SignedNumber<int32_t>();
      case ValueType::kFloat32:
        return Number<float, double>();
      case ValueType::kBool: {
        ASSIGN_OR_RETURN(const auto value, in_.Read<uint8_t>("a boolean"));
        if (value > 1) {
          return in_.Error(fmt::format(
              "key '{}': a boolean is {}, expected 0 or 1", key, value));
        }
        return MetadataValue(value == 1);
      }
      case ValueType::kString: {
        ASSIGN_OR_RETURN(auto text,
                         in_.ReadString(kMaxStringBytes, "a string"));
        return MetadataValue(std::move(text));
      }
      case ValueType::kUint64:
        return Number<uint64_t, uint64_t>();
      case ValueType::kInt64:
        return SignedNumber<int64_t>();
      case ValueType::kFloat64:
        return Number<double, double>();
      case ValueType::kArray:
        return in_.Error(
            fmt::format("key '{}': arrays of arrays are not supported", key));
    }
    return in_.Error(
        fmt::format("key '{}': value type {}, expected 0 to 12", key, type));
  }

  // Elements of one scalar type, widened into a vector of `Wide`.
  template <class Stored, class Wide>
  Result<MetadataValue> Numbers(uint64_t count) {
    RETURN_IF_ERROR(in_.CheckCount(count, sizeof(Stored), "array elements"));
    std::vector<Wide> values;
    values.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const auto value, in_.Read<Stored>("an element"));
      values.push_back(static_cast<Wide>(value));
    }
    return MetadataValue(std::move(values));
  }

  Result<MetadataValue> ReadArray(const std::string& key) {
    ASSIGN_OR_RETURN(const auto type, in_.Read<uint32_t>("an array's type"));
    ASSIGN_OR_RETURN(const auto count, in_.Read<uint64_t>("an array's length"));
    switch (static_cast<ValueType>(type)) {
      case ValueType::kUint8:
        return Numbers<uint8_t, uint64_t>(count);
      case ValueType::kInt8:
        return Numbers<int8_t, int64_t>(count);
      case ValueType::kUint16:
        return Numbers<uint16_t, uint64_t>(count);
      case ValueType::kInt16:
        return Numbers<int16_t, int64_t>(count);
      case ValueType::kUint32:
        return Numbers<uint32_t, uint64_t>(count);
      case ValueType::kInt32:
        return Numbers<int32_t, int64_t>(count);
      case ValueType::kFloat32:
        return Numbers<float, double>(count);
      case ValueType::kBool:
        return Numbers<uint8_t, bool>(count);
      case ValueType::kString:
        return ReadStrings(count);
      case ValueType::kUint64:
        return Numbers<uint64_t, uint64_t>(count);
      case ValueType::kInt64:
        return Numbers<int64_t, int64_t>(count);
      case ValueType::kFloat64:
        return Numbers<double, double>(count);
      case ValueType::kArray:
        return in_.Error(
            fmt::format("key '{}': arrays of arrays are not supported", key));
    }
    return in_.Error(
        fmt::format("key '{}': array type {}, expected 0 to 12", key, type));
  }

  Result<MetadataValue> ReadStrings(uint64_t count) {
    RETURN_IF_ERROR(in_.CheckCount(count, 8, "strings"));
    std::vector<std::string> strings;
    strings.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(auto text, in_.ReadString(kMaxStringBytes, "a string"));
      strings.push_back(std::move(text));
    }
    return MetadataValue(std::move(strings));
  }

  Result<uint64_t> Alignment() const {
    auto found = header_.metadata.GetUint("general.alignment");
    if (!found.ok()) return found.status();
    const uint64_t alignment = found.value().value_or(kDefaultAlignment);
    if (std::has_single_bit(alignment) && alignment <= kMaxAlignment) {
      return alignment;
    }
    return in_.Error(
        fmt::format("general.alignment is {}, expected a power of two up to {}",
                    alignment, kMaxAlignment));
  }

  Status ReadTensor() {
    TensorInfo tensor;
    ASSIGN_OR_RETURN(tensor.name,
                     in_.ReadString(kMaxNameBytes, "a tensor's name"));
    if (!names_.insert(tensor.name).second) {
      return in_.Error(
          fmt::format("tensor '{}' stands there twice", tensor.name));
    }
    ASSIGN_OR_RETURN(const auto num_dims,
                     in_.Read<uint32_t>("a tensor's dimensions"));
    if (num_dims < 1 || num_dims > kMaxDims) {
      return in_.Error(
          fmt::format("tensor '{}' has {} dimensions, expected 1 "
                      "to {}",
                      tensor.name, num_dims, kMaxDims));
    }
    tensor.shape.resize(num_dims);
    for (uint32_t i = 0; i < num_dims; ++i) {  // the fastest stands first
      ASSIGN_OR_RETURN(tensor.shape[num_dims - 1 - i],
                       in_.Read<uint64_t>("a dimension"));
    }
    ASSIGN_OR_RETURN(const auto type, in_.Read<uint32_t>("a tensor's type"));
    const auto dtype = DTypeFromGgml(type);
    if (!dtype) {
      return Status(Code::kUnsupported,
                    fmt::format("{}: tensor '{}' has type {}", file_.path(),
                                tensor.name, DescribeUnknownType(type)));
    }
    tensor.type = *dtype;
    ASSIGN_OR_RETURN(tensor.offset, in_.Read<uint64_t>("a tensor's offset"));
    ASSIGN_OR_RETURN(tensor.size_bytes, SizeOf(tensor));
    header_.tensors.push_back(std::move(tensor));
    return {};
  }

  // Checked: dimensions come from the file. Zero elements are allowed.
  Result<uint64_t> SizeOf(const TensorInfo& tensor) const {
    const DTypeTraits& traits = Traits(tensor.type);
    if (tensor.shape.back() % traits.block_elements != 0) {
      return in_.Error(fmt::format(
          "tensor '{}' has rows of {} elements, expected a multiple of {}'s "
          "block of {}",
          tensor.name, tensor.shape.back(), traits.name,
          traits.block_elements));
    }
    std::optional<uint64_t> elements = 1;
    // Zeros first: [2^60, 2^60, 0] is empty, not an overflow.
    for (const uint64_t dim : tensor.shape) {
      if (dim == 0) return 0;
    }
    for (const uint64_t dim : tensor.shape) {
      if (elements) elements = CheckedMul(*elements, dim);
    }
    if (elements) {
      const auto size =
          CheckedMul(*elements / traits.block_elements, traits.block_bytes);
      if (size && *elements <= INT64_MAX) return *size;
    }
    return in_.Error(
        fmt::format("tensor '{}' has shape [{}]: its size "
                    "overflows",
                    tensor.name, fmt::join(tensor.shape, ", ")));
  }

  // Offsets count from the end of the header, aligned, and leave no gaps.
  Status PlaceTensors() {
    const auto start = CheckedAlignUp(in_.offset(), alignment_);
    uint64_t expected = 0;
    header_.end_offset = in_.offset();
    for (TensorInfo& tensor : header_.tensors) {
      if (tensor.offset != expected) {
        return in_.Error(
            fmt::format("tensor '{}' is at offset {} of the data, expected {}",
                        tensor.name, tensor.offset, expected));
      }
      const auto end = CheckedAdd(expected, tensor.size_bytes);
      const auto next = end ? CheckedAlignUp(*end, alignment_) : std::nullopt;
      const auto file_end = end ? CheckedAdd(*start, *end) : std::nullopt;
      if (!next || !file_end) {
        return in_.Error(fmt::format(
            "tensor '{}' ends beyond any file: sizes overflow", tensor.name));
      }
      if (tensor.size_bytes > 0 && *file_end > file_.size_bytes()) {
        return Corrupt(fmt::format(
            "{}: tensor '{}' ends at byte {}, and the file has {}: {} bytes "
            "are missing (an interrupted download?)",
            file_.path(), tensor.name, *file_end, file_.size_bytes(),
            *file_end - file_.size_bytes()));
      }
      tensor.offset += *start;
      if (tensor.size_bytes > 0) header_.end_offset = *file_end;
      expected = *next;
    }
    return {};
  }

  const io::File& file_;
  Cursor in_;
  GgufHeader header_;
  uint64_t alignment_ = kDefaultAlignment;
  std::unordered_set<std::string> names_;
};

}  // namespace

Result<GgufHeader> ReadGgufHeader(const io::File& file) {
  return HeaderReader(file).Read();
}

}  // namespace muster::formats
