#!/usr/bin/env bash
# Configures (once) and builds a preset.
# usage: tools/build.sh PRESET [--tests | TARGET ...]   none: the program
# Uses ccache where it is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
launcher=()
if command -v ccache > /dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
mkdir -p build
if [[ ! -f build/$preset/build.ninja ]]; then
  echo "build: configuring $preset"
  cmake --preset "$preset" "${launcher[@]}" > "build/configure-$preset.log" 2>&1 ||
    { cat "build/configure-$preset.log" >&2; exit 1; }
fi
targets=()
case "${1:-}" in
  "") targets=(--target muster) ;;
  --tests) ;;
  *) targets=(--target "$@") ;;
esac
export NINJA_STATUS="build: $preset [%f/%t] "
cmake --build --preset "$preset" "${targets[@]}"
