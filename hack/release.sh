#!/usr/bin/env bash
# Prints the go.mod that a module has in a release: our other modules of the same version, and no replace. release.sh VERSION MODULE
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: release.sh VERSION MODULE} module=${2:?usage: release.sh VERSION MODULE}
[ -f "$module/go.mod" ] || { echo "release.sh: there is no $module/go.mod, and $module must be a module of the release" >&2; exit 1; }
edits=()
for path in $(grep -o '^	github.com/credence-id/credence/[^ ]*' "$module/go.mod" | sort -u); do
  edits+=("-require=$path@$version" "-dropreplace=$path")
done
go mod edit ${edits[@]+"${edits[@]}"} -print "$module/go.mod"
