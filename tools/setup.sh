#!/usr/bin/env bash
# Installs what a group of tasks needs from the distribution, and only what is
# missing.   usage: tools/setup.sh build|bench|check
# Debian 12 and Ubuntu 24.04; uses sudo when not root.
set -euo pipefail

build=(cmake ninja-build g++ pkg-config python3 libhwy-dev libhwloc-dev libfmt-dev
  nlohmann-json3-dev libcli11-dev libpcre2-dev libutf8proc-dev libsimdjson-dev
  liburing-dev libxxhash-dev libcurl4-openssl-dev libssl-dev libgtest-dev libgmock-dev)
bench=(libbenchmark-dev)
check=(clang clang-tidy clang-format llvm)

case "${1:-}" in
  build) wanted=("${build[@]}") ;;
  bench) wanted=("${build[@]}" "${bench[@]}") ;;
  check) wanted=("${build[@]}" "${check[@]}") ;;
  *)
    echo "usage: $0 build|bench|check" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null; then
  echo "setup: this system has no apt; install by hand: ${wanted[*]}" >&2
  exit 0
fi

# install PACKAGE...: those of them that are missing
install() {
  local missing=() package status as_root=()
  for package in "$@"; do
    status=$(dpkg-query -W -f '${Status}' "$package" 2> /dev/null || true)
    [[ $status == *"ok installed"* ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo > /dev/null; then
      echo "setup: missing ${missing[*]}; neither root nor sudo to install them" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}

install "${wanted[@]}"
if [[ $1 == check ]]; then
  # The sanitizers' and the fuzzers' runtime is a package of the compiler's
  # version that nothing above depends on.
  version=$(clang -dumpversion)
  install "libclang-rt-${version%%.*}-dev"
fi
