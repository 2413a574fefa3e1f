#!/usr/bin/env bash
# `muster pull` against other people's servers: Azurite for az://, moto for
# s3://, both on this machine. Needs npm, python3 and their registries; they are
# installed into FOLDER, which can be removed afterwards.
# usage: tools/object_stores_test.sh PROGRAM FOLDER
set -euo pipefail
program=$(realpath "$1")
folder=$(realpath -m "$2")
tools=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"

[[ -d $folder/node_modules/azurite ]] ||
  npm install --prefix "$folder" -E --ignore-scripts --no-audit --no-fund azurite@3.37.0 > "$folder/npm.log" 2>&1
if [[ ! -x $folder/venv/bin/moto_server ]]; then
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install -q 'moto[server,s3]==5.2.5' azure-storage-blob==12.31.1
fi
exec "$folder/venv/bin/python" "$tools/object_stores_test.py" "$program" "$folder"
