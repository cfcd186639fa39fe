#!/usr/bin/env bash
# Prints what the build and the tests need and this machine lacks, before anything is built.
set -euo pipefail
cd "$(dirname "$0")/.."
. ./versions.env
missing=()

command -v git >/dev/null || missing+=("git is not installed")
if ! command -v go >/dev/null; then
  missing+=("Go is not installed: get Go $GO or newer from https://go.dev/dl")
elif have=$(go env GOVERSION 2>&1); [[ $(printf 'go%s\n%s\n' "$GO" "$have" | sort -V | head -n 1) != "go$GO" ]]; then
  missing+=("Go $GO or newer is needed, and this is $have: get it from https://go.dev/dl, or unset GOTOOLCHAIN, and go downloads it")
fi

# free FOLDER MEGABYTES WHAT: the folder, or the first one above it that exists.
free() {
  local folder=$1 megabytes
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  megabytes=$(df -Pm "$folder" | awk 'NR == 2 {print $4}')
  ((megabytes >= $2)) || missing+=("$folder has $megabytes MB free, and $3 needs about $2 MB")
}
if ((${#missing[@]} == 0)); then
  cache=$(go env GOCACHE)
  # An empty cache grows to this size in the first run.
  wanted=4000
  [[ -d $cache ]] && (($(du -sm "$cache" | cut -f 1) > 3000)) && wanted=500
  free "$cache" "$wanted" "Go's build cache"
fi
free "${TMPDIR:-/tmp}" 1000 "a plane of the tests"
free "$PWD/bin" 600 "the folder of the programs"

instances=/proc/sys/fs/inotify/max_user_instances
if [[ -r $instances ]] && (($(<"$instances") < 64)); then
  missing+=("a user may have $(<"$instances") inotify instances, and a plane needs 12: as root, sysctl -w fs.inotify.max_user_instances=128")
fi

((${#missing[@]} == 0)) && exit 0
printf 'missing: %s\n' "${missing[@]}" >&2
exit 1
