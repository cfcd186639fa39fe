#!/usr/bin/env bash
# Runs every fuzz target for the time given, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: hack/fuzz.sh DURATION}
count=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while IFS=: read -r file target; do
  count=$((count + 1))
  echo "fuzz: $target in ./$(dirname "$file") for $time"
  if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x "github.com/credence-id/credence/$(dirname "$file")" >"$log" 2>&1; then
    # The go command reports its own deadline as a failure now and then; a finding always names the input that it wrote.
    if grep -q 'Failing input written' "$log" || ! grep -q '^    context deadline exceeded$' "$log"; then
      cat "$log" >&2
      exit 1
    fi
  fi
  tail -n 1 "$log"
done < <(grep -roH --include='*_test.go' -E '^func Fuzz[A-Za-z0-9_]*' api cmd deploy execcredential internal test | sed 's/:func /:/')
[ "$count" -gt 0 ] || { echo "fuzz: no target found" >&2; exit 1; }
echo "fuzz: $count targets, none failed"
