#!/usr/bin/env bash
# Continues a text of each of two kinds with the demo model, so that one sees
# other experts wake.   usage: tools/demo.sh PROGRAM [KIND ...]
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1
shift
kinds=("$@")
[[ ${#kinds[@]} -gt 0 ]] || kinds=(novels code)
for kind in "${kinds[@]}"; do
  printf '\n=== %s: models/demo/prompts/%s.txt, continued ===\n\n' "$kind" "$kind"
  "$program" run -f "models/demo/prompts/$kind.txt" -n 120 --temp 0.7 --seed 1
done
printf '\nThe heat rows show which experts each layer used: compare the kinds.\n'
printf 'Next: %s run --help, %s inspect, or %s run -p "your own text"\n' \
  "$program" "$program" "$program"
