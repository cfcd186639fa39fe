#!/usr/bin/env bash
# Build packages of a module into a folder: build.sh FOLDER LDFLAGS PACKAGE... in the module's folder.
# The first build compiles a thousand packages and takes minutes, so the count of those that are done is shown twice a minute.
set -euo pipefail
into=$1 ldflags=$2
shift 2

# A compiler is done before its memory needs to be collected, which would take a third of its time. The limit holds for each
# process; there is one for each CPU.
export GOGC=off GOMEMLIMIT=1GiB
total=$(go list -deps "$@" | wc -l)
go build -v -ldflags "$ldflags" -o "$into/" "$@" 2>&1 | {
  done=0 shown=$SECONDS
  while IFS= read -r line; do
    # -v prints a line with the path of each package that is compiled. All other lines are for the reader.
    if [[ $line == *[[:space:]]* || $line != */* && $line == *:* ]]; then
      [[ $line == "go: downloading "* ]] || printf '%s\n' "$line" >&2
      continue
    fi
    done=$((done + 1))
    if ((SECONDS - shown >= 30)); then
      echo "  compiled $done of at most $total packages"
      shown=$SECONDS
    fi
  done
}
