// What `muster bench` found, as a markdown table and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/measure.h"
#include "runtime/loaded_model.h"

namespace muster::cli {

// What the figures are of.
struct BenchSubject {
  std::string path;
  uint64_t file_bytes = 0;
  double load_seconds = 0;
  const runtime::LoadedModel* model = nullptr;
};

// "pp512 behind 4096: 101.2 tokens/s"
std::string MeasurementLine(const Measurement& measurement);

std::string BenchTable(const BenchSubject& subject,
                       const std::vector<Measurement>& measurements);

nlohmann::ordered_json BenchJson(const BenchSubject& subject,
                                 const std::vector<Measurement>& measurements);

}  // namespace muster::cli
