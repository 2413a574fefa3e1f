#!/usr/bin/env bash
# Runs `make demo` and `make test` in a bare Debian 12, from this repository's
# last commit. Needs root and debootstrap.   usage: bare_debian_test.sh FOLDER
# FOLDER becomes the system's root; remove it afterwards. MIRROR names another
# mirror than debootstrap's own; apt's settings are this machine's.
set -euo pipefail
root=$(realpath -m "$1")
source=$(cd "$(dirname "$0")/.." && pwd)
if [[ ! -x $root/usr/bin/apt-get ]]; then
  debootstrap --variant=minbase bookworm "$root" ${MIRROR:+"$MIRROR"}
  cp -L /etc/apt/sources.list "$root/etc/apt/" 2> /dev/null || true
  cp -L /etc/apt/sources.list.d/debian.sources "$root/etc/apt/sources.list.d/" 2> /dev/null || true
  cp -rL /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
  mkdir -p "$root/etc/ssl/certs" && cp -rL /etc/ssl/certs/. "$root/etc/ssl/certs/"
fi
cp -L /etc/resolv.conf "$root/etc/" 2> /dev/null || true
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mountpoint -q "$root/dev" || mount --rbind /dev "$root/dev"
trap 'umount -l "$root/dev" "$root/proc"' EXIT
chroot "$root" sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends make git ca-certificates > /dev/null'
rm -rf "$root/muster" && git clone -q "file://$source" "$root/muster"
chroot "$root" sh -c 'cd /muster && make demo && make test'
