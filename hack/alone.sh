#!/usr/bin/env bash
# Runs the go command in a module that other people's programs import, with the versions that its own go.mod states and the
# execcredential of this checkout: alone.sh MODULE GO-ARGUMENT...
# No release of execcredential is needed for that, and no replace in the go.mod.
set -euo pipefail
cd "$(dirname "$0")/../$1"
root=$(git rev-parse --show-toplevel)
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp go.mod go.sum "$scratch"
if grep -q credence-id/credence/execcredential\  go.mod; then
  go mod edit -replace="github.com/credence-id/credence/execcredential=$root/execcredential" "$scratch/go.mod"
fi
# An entry with spaces is quoted.
GOFLAGS="${GOFLAGS:-} '-modfile=$scratch/go.mod'" go "$@"
