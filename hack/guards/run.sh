#!/usr/bin/env bash
# Breaks guards one at a time, in a copy of the checkout, and expects the tests that a patch names to fail: run.sh [NAME...].
# With --check, only whether each patch applies.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
bin=${CREDENCE_BIN:-$top/bin}
export CGO_ENABLED=${CGO_ENABLED:-0} GOFLAGS="${GOFLAGS:--trimpath -gcflags=all=-dwarf=false}"

names=("$@")
if [[ ${1:-} == --check || $# == 0 ]]; then
  names=()
  for patch in hack/guards/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi
if [[ ${1:-} == --check ]]; then
  for name in "${names[@]}"; do
    git apply --check "hack/guards/$name.patch" || { echo "hack/guards/$name.patch no longer applies: make it anew for the code of today" >&2; exit 1; }
  done
  exit 0
fi

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# Uncommitted files are part of what is tested.
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy" 2>/dev/null || true
cd "$copy"
git init -q .
mkdir bin

missed=()
for name in "${names[@]}"; do
  patch=$top/hack/guards/$name.patch
  command=$(sed -n 's/^# found by: //p' "$patch")
  git apply "$patch"
  case $command in
  *./test/e2e*)
    ln -sf "$bin"/* bin/
    rm -f bin/credence bin/credence-*
    ln -sf "$bin/credence-devcluster" bin/
    GOGC=off GOMEMLIMIT=1GiB go build -ldflags "-s -w" -o bin/ ./cmd/...
    ;;
  esac
  started=$SECONDS
  if CREDENCE_BIN=$copy/bin bash -c "$command" >output 2>&1; then
    missed+=("$name")
    echo "NOT FOUND  $name ($command)"
  elif ! grep -qE '^\s*--- FAIL' output; then
    missed+=("$name")
    echo "NO TEST FAILED  $name ($command)" && tail -n 5 output
  else
    echo "found      $name by $(grep -oE -- '--- FAIL: \S+' output | head -n 1 | cut -d ' ' -f 3) in $((SECONDS - started)) s"
  fi
  git apply -R "$patch"
done
((${#missed[@]} == 0)) && echo "${#names[@]} guards were broken, and each was found"
