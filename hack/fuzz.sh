#!/usr/bin/env bash
# Runs every fuzz target of the module for the time given, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: hack/fuzz.sh DURATION}
count=0
while IFS=: read -r file target; do
  count=$((count + 1))
  echo "fuzz: $target in ./$(dirname "$file") for $time"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x "./$(dirname "$file")"
done < <(grep -roH --include='*_test.go' -E '^func Fuzz[A-Za-z0-9_]*' api cmd deploy internal test | sed 's/:func /:/')
[ "$count" -gt 0 ] || { echo "fuzz: no target found" >&2; exit 1; }
echo "fuzz: $count targets, none failed"
