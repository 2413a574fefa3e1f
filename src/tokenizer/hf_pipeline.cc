#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tokenizer/hf_spec_parts.h"
#include "tokenizer/pre_tokenizer_table.h"
#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

// How deep sequences may stand in sequences.
constexpr int kMaxDepth = 8;

Status Unknown(std::string_view part, std::string_view type) {
  return Unsupported(
      fmt::format("tokenizer.json: {} '{}' is not supported", part, type));
}

// Calls read(component) for `component`, or for each one in it where it is a
// "Sequence" with its parts in `list`.
template <typename Read>
Status ForEachComponent(JsonObject component, std::string_view list,
                        const Read& read, int depth = 0) {
  if (depth > kMaxDepth) return Corrupt("components are nested too deeply");
  ASSIGN_OR_RETURN(const auto type, TypeOf(component));
  if (type != "Sequence") return read(component, type);
  ASSIGN_OR_RETURN(const auto parts, ArrayMember(component, list));
  for (const JsonElement part : parts) {
    ASSIGN_OR_RETURN(const auto object, AsObject(part, list));
    RETURN_IF_ERROR(ForEachComponent(object, list, read, depth + 1));
  }
  return {};
}

template <typename Read>
Status ReadPart(JsonObject root, std::string_view part, std::string_view list,
                const Read& read) {
  const auto member = FindMember(root, part);
  if (!member) return {};
  ASSIGN_OR_RETURN(const auto object, AsObject(*member, part));
  return ForEachComponent(object, list, read);
}

struct Pattern {
  std::string text;
  bool is_regex = false;
};

// {"String": "..."} or {"Regex": "..."}
Result<Pattern> ReadPattern(JsonObject component) {
  const auto member = FindMember(component, "pattern");
  if (!member) return Corrupt("a component has no 'pattern'");
  ASSIGN_OR_RETURN(const auto object, AsObject(*member, "pattern"));
  ASSIGN_OR_RETURN(const auto literal, StringMember(object, "String"));
  if (literal) return Pattern{std::string(*literal), false};
  ASSIGN_OR_RETURN(const auto regex, StringMember(object, "Regex"));
  if (regex) return Pattern{std::string(*regex), true};
  return Unsupported("a 'pattern' is neither 'String' nor 'Regex'");
}

Status ReadReplace(JsonObject component, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(component));
  ASSIGN_OR_RETURN(const auto content, StringMember(component, "content"));
  spec.normalizer.push_back({.kind = NormalizerKind::kReplace,
                             .pattern = std::move(pattern.text),
                             .is_regex = pattern.is_regex,
                             .content = std::string(content.value_or(""))});
  return {};
}

Status ReadStrip(JsonObject component, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const bool left, BoolMember(component, "strip_left", true));
  ASSIGN_OR_RETURN(const bool right,
                   BoolMember(component, "strip_right", true));
  if (left) spec.normalizer.push_back({.kind = NormalizerKind::kStripLeft});
  if (right) spec.normalizer.push_back({.kind = NormalizerKind::kStripRight});
  return {};
}

Status ReadNormalizer(JsonObject component, std::string_view type,
                      TokenizerSpec& spec) {
  static constexpr auto kPlain =
      std::to_array<std::pair<std::string_view, NormalizerKind>>(
          {{"NFC", NormalizerKind::kNfc},
           {"NFD", NormalizerKind::kNfd},
           {"NFKC", NormalizerKind::kNfkc},
           {"NFKD", NormalizerKind::kNfkd},
           {"Lowercase", NormalizerKind::kLowercase}});
  for (const auto& [name, kind] : kPlain) {
    if (type != name) continue;
    spec.normalizer.push_back({.kind = kind});
    return {};
  }
  if (type == "Replace") return ReadReplace(component, spec);
  if (type == "Strip") return ReadStrip(component, spec);
  if (type == "Prepend") {
    ASSIGN_OR_RETURN(const auto content, StringMember(component, "prepend"));
    spec.normalizer.push_back({.kind = NormalizerKind::kPrepend,
                               .content = std::string(content.value_or(""))});
    return {};
  }
  if (type == "Precompiled") {
    ASSIGN_OR_RETURN(const auto map,
                     StringMember(component, "precompiled_charsmap"));
    if (map.value_or("").empty()) return {};
  }
  return Unknown("normalizer", type);
}

Result<SplitBehavior> ReadBehavior(JsonObject component,
                                   std::string_view otherwise) {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, SplitBehavior>>(
          {{"Removed", SplitBehavior::kRemoved},
           {"Isolated", SplitBehavior::kIsolated},
           {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
           {"MergedWithNext", SplitBehavior::kMergedWithNext},
           {"Contiguous", SplitBehavior::kContiguous}});
  ASSIGN_OR_RETURN(const auto behavior, StringMember(component, "behavior"));
  const std::string_view name = behavior.value_or(otherwise);
  for (const auto& [known, value] : kNames) {
    if (name == known) return value;
  }
  return Unknown("split behavior", name);
}

Status ReadSplit(JsonObject component, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(component));
  ASSIGN_OR_RETURN(const bool invert, BoolMember(component, "invert", false));
  ASSIGN_OR_RETURN(const auto behavior, ReadBehavior(component, "Isolated"));
  spec.pre_tokenizer.push_back({.kind = PreTokenizerKind::kSplit,
                                .pattern = std::move(pattern.text),
                                .is_regex = pattern.is_regex,
                                .invert = invert,
                                .behavior = behavior});
  return {};
}

Status ReadByteLevel(JsonObject component, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const bool prefix,
                   BoolMember(component, "add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool regex, BoolMember(component, "use_regex", true));
  spec.byte_level = true;
  if (prefix) {
    spec.pre_tokenizer.push_back({.kind = PreTokenizerKind::kPrefixSpace});
    spec.strip_first_space = true;
  }
  if (regex) {
    spec.pre_tokenizer.push_back({.pattern = std::string(ByteLevelPattern())});
  }
  return {};
}

Status CheckReplacement(JsonObject component) {
  ASSIGN_OR_RETURN(const auto sign, StringMember(component, "replacement"));
  if (sign.value_or(kSpaceMark) == kSpaceMark) return {};
  return Unknown("Metaspace replacement", *sign);
}

Result<Prepend> ReadPrepend(JsonObject component) {
  ASSIGN_OR_RETURN(const auto scheme,
                   StringMember(component, "prepend_scheme"));
  if (!scheme) {  // older files
    ASSIGN_OR_RETURN(const bool prefix,
                     BoolMember(component, "add_prefix_space", true));
    return prefix ? Prepend::kAlways : Prepend::kNever;
  }
  if (*scheme == "always") return Prepend::kAlways;
  if (*scheme == "first") return Prepend::kFirst;
  if (*scheme == "never") return Prepend::kNever;
  return Unknown("prepend scheme", *scheme);
}

Status ReadMetaspace(JsonObject component, TokenizerSpec& spec) {
  RETURN_IF_ERROR(CheckReplacement(component));
  ASSIGN_OR_RETURN(const Prepend prepend, ReadPrepend(component));
  ASSIGN_OR_RETURN(const bool split, BoolMember(component, "split", true));
  spec.pre_tokenizer.push_back({.kind = PreTokenizerKind::kMetaspace,
                                .prepend = prepend,
                                .split = split});
  return {};
}

Status ReadPreTokenizer(JsonObject component, std::string_view type,
                        TokenizerSpec& spec) {
  if (spec.byte_level) {
    // It would see the byte alphabet instead of the text.
    return Unknown("a pre-tokenizer behind ByteLevel:", type);
  }
  const auto add = [&](std::string pattern, SplitBehavior behavior) -> Status {
    spec.pre_tokenizer.push_back(
        {.pattern = std::move(pattern), .behavior = behavior});
    return {};
  };
  if (type == "Split") return ReadSplit(component, spec);
  if (type == "ByteLevel") return ReadByteLevel(component, spec);
  if (type == "Metaspace") return ReadMetaspace(component, spec);
  if (type == "Digits") {
    ASSIGN_OR_RETURN(const bool individual,
                     BoolMember(component, "individual_digits", false));
    return add("\\p{N}", individual ? SplitBehavior::kIsolated
                                    : SplitBehavior::kContiguous);
  }
  if (type == "Punctuation") {
    ASSIGN_OR_RETURN(const auto behavior, ReadBehavior(component, "Isolated"));
    return add("[\\p{P}$+<=>^`|~]", behavior);
  }
  if (type == "WhitespaceSplit") return add("\\s", SplitBehavior::kRemoved);
  if (type == "Whitespace") {
    spec.pre_tokenizer.push_back({.pattern = "\\w+|[^\\w\\s]+",
                                  .invert = true,
                                  .behavior = SplitBehavior::kRemoved});
    return {};
  }
  return Unknown("pre-tokenizer", type);
}

// The ids that a template's special token stands for.
Status AppendTemplateIds(JsonObject component, std::string_view name,
                         std::vector<TokenId>& out) {
  const auto table = FindMember(component, "special_tokens");
  if (!table) return Corrupt("a template has no 'special_tokens'");
  ASSIGN_OR_RETURN(const auto tokens, AsObject(*table, "special_tokens"));
  const auto entry = FindMember(tokens, name);
  if (!entry) return Corrupt(fmt::format("a template lacks '{}'", name));
  ASSIGN_OR_RETURN(const auto token, AsObject(*entry, name));
  ASSIGN_OR_RETURN(const auto ids, ArrayMember(token, "ids"));
  for (const JsonElement element : ids) {
    int64_t id = 0;
    if (element.get(id) != simdjson::SUCCESS || id < 0 || id > INT32_MAX) {
      return Corrupt("a template's token has an id that is no number");
    }
    out.push_back(static_cast<TokenId>(id));
  }
  return {};
}

Status ReadTemplate(JsonObject component, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const auto parts, ArrayMember(component, "single"));
  bool seen_text = false;
  for (const JsonElement part : parts) {
    ASSIGN_OR_RETURN(const auto object, AsObject(part, "single"));
    if (FindMember(object, "Sequence")) {
      seen_text = true;
      continue;
    }
    const auto special = FindMember(object, "SpecialToken");
    if (!special) return Unsupported("a template has an unknown part");
    ASSIGN_OR_RETURN(const auto token, AsObject(*special, "SpecialToken"));
    ASSIGN_OR_RETURN(const auto name, StringMember(token, "id"));
    RETURN_IF_ERROR(AppendTemplateIds(component, name.value_or(""),
                                      seen_text ? spec.suffix : spec.prefix));
  }
  return {};
}

Status ReadPostProcessor(JsonObject component, std::string_view type,
                         TokenizerSpec& spec) {
  if (type == "ByteLevel") return {};  // moves offsets only
  if (type == "TemplateProcessing") return ReadTemplate(component, spec);
  return Unknown("post-processor", type);
}

Status ReadDecoder(JsonObject component, std::string_view type,
                   TokenizerSpec& spec) {
  if (type == "ByteLevel" || type == "Fuse") return {};
  if (type == "ByteFallback") return {};  // a property of the vocabulary, too
  if (type == "Metaspace") {
    RETURN_IF_ERROR(CheckReplacement(component));
    ASSIGN_OR_RETURN(const Prepend prepend, ReadPrepend(component));
    spec.metaspace = true;
    spec.strip_first_space = prepend != Prepend::kNever;
    return {};
  }
  if (type == "Replace") {
    ASSIGN_OR_RETURN(const Pattern pattern, ReadPattern(component));
    ASSIGN_OR_RETURN(const auto content, StringMember(component, "content"));
    if (pattern.text == kSpaceMark && content.value_or("") == " ") {
      spec.metaspace = true;
      return {};
    }
  }
  if (type == "Strip") {
    int64_t start = 0;
    int64_t stop = 0;
    const auto start_member = FindMember(component, "start");
    const auto stop_member = FindMember(component, "stop");
    ASSIGN_OR_RETURN(const auto content, StringMember(component, "content"));
    if (start_member && start_member->get(start) == simdjson::SUCCESS &&
        stop_member && stop_member->get(stop) == simdjson::SUCCESS &&
        start <= 1 && stop == 0 && content.value_or("") == " ") {
      spec.strip_first_space = start == 1;
      return {};
    }
  }
  return Unknown("decoder", type);
}

}  // namespace

Status ReadHfNormalizer(JsonObject root, TokenizerSpec& spec) {
  return ReadPart(root, "normalizer", "normalizers",
                  [&](JsonObject component, std::string_view type) {
                    return ReadNormalizer(component, type, spec);
                  });
}

Status ReadHfPreTokenizer(JsonObject root, TokenizerSpec& spec) {
  return ReadPart(root, "pre_tokenizer", "pretokenizers",
                  [&](JsonObject component, std::string_view type) {
                    return ReadPreTokenizer(component, type, spec);
                  });
}

Status ReadHfPostProcessor(JsonObject root, TokenizerSpec& spec) {
  return ReadPart(root, "post_processor", "processors",
                  [&](JsonObject component, std::string_view type) {
                    return ReadPostProcessor(component, type, spec);
                  });
}

Status ReadHfDecoder(JsonObject root, TokenizerSpec& spec) {
  return ReadPart(root, "decoder", "decoders",
                  [&](JsonObject component, std::string_view type) {
                    return ReadDecoder(component, type, spec);
                  });
}

}  // namespace muster::tokenizer
