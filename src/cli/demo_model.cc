#include "cli/demo_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kFileName[] = "demo-moe-q8_0.gguf";

// Upwards from the program: build/muster and build/release/src/cli/muster both
// find the tree that they were built from.
std::vector<std::string> Places() {
  std::vector<std::string> places;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return places;
  const fs::path bin = program.parent_path();
  places.push_back(
      (bin.parent_path() / "share" / "muster" / kFileName).string());
  fs::path folder = bin;
  for (int i = 0; i < 5 && folder.has_relative_path(); ++i) {
    places.push_back((folder / "models" / "demo" / kFileName).string());
    folder = folder.parent_path();
  }
  return places;
}

}  // namespace

Result<std::string> ModelOrDemo(const std::string& named) {
  if (!named.empty()) return named;
  if (const char* path = std::getenv("MUSTER_DEMO_MODEL");
      path != nullptr && *path != '\0') {
    return std::string(path);
  }
  const std::vector<std::string> places = Places();
  for (const std::string& place : places) {
    if (fs::exists(place)) return place;
  }
  return NotFound(
      fmt::format("no MODEL was named, and the demo model is not at any of {}",
                  fmt::join(places, ", ")));
}

}  // namespace muster::cli
