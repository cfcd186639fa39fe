#!/usr/bin/env bash
# Prints the build list of each module of this repository as JSON, one after the other: modules.sh [FLAG...] for go list.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
for file in $(git ls-files --cached --others --exclude-standard 'go.mod' '*/go.mod'); do
  folder=$(dirname "$file")
  case $folder in
  # With the versions that these state, and the others of this checkout.
  api | execcredential | execcredential/*) "$root/hack/alone.sh" "$folder" list -m -json "$@" all ;;
  *) (cd "$folder" && go list -m -json "$@" all) ;;
  esac
done
