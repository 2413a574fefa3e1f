#!/usr/bin/env bash
# Runs libFuzzer targets, one after another, on a copy of their corpora.
# usage: tools/fuzz.sh FOLDER_OF_TARGETS SECONDS [NAME]
# A crashing input is left in build/fuzz/crashes.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
seconds=$2
only=${3:-}
crashes=build/fuzz/crashes
mkdir -p "$crashes"
ran=0
for target in "$folder"/*_fuzz; do
  name=$(basename "$target" _fuzz)
  [[ -z $only || $only == "$name" ]] || continue
  work=build/fuzz/corpus/$name
  mkdir -p "$work"
  [[ ! -d fuzz/corpus/$name ]] || cp -n fuzz/corpus/"$name"/* "$work"/
  echo "fuzz: $name for $seconds s"
  "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$crashes/$name-" "$work" > "build/fuzz/$name.log" 2>&1 ||
    { tail -n 40 "build/fuzz/$name.log" >&2; echo "fuzz: $name failed" >&2; exit 1; }
  grep -E 'number_of_executed_units|new_units_added' "build/fuzz/$name.log"
  ran=$((ran + 1))
done
[[ $ran -gt 0 ]] || { echo "fuzz: no target${only:+ called $only} in $folder" >&2; exit 1; }
