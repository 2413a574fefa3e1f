#!/usr/bin/env bash
# Builds the benchmarks of kernels and runs each briefly; results as JSON too.
# usage: tools/bench.sh [FILTER]   a regular expression on the benchmarks' names
set -euo pipefail
cd "$(dirname "$0")/.."
results=build/bench
seconds=0.05 # for each benchmark
mkdir -p "$results"
cmake --preset release -DMUSTER_BUILD_BENCHMARKS=ON > build/configure-bench.log 2>&1 ||
  { cat build/configure-bench.log >&2; exit 1; }
tools/build.sh release benchmarks
for name in attention_bench products_bench rms_norm_bench router_bench; do
  build/release/bench/$name --benchmark_filter="${1:-.}" --benchmark_min_time=$seconds \
    --benchmark_out="$results/$name.json" --benchmark_out_format=json
done
[[ -n ${1:-} ]] || build/release/bench/thread_pool_bench | tee "$results/thread_pool_bench.txt"
echo "bench: results are in $results/"
