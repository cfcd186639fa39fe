#!/usr/bin/env bash
# Checks what a reviewer should not have to: each check prints what to run to mend what it found.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
fail() { echo "check: $*" >&2; exit 1; }
# A compiler is done before its memory needs to be collected: see hack/build.sh.
compiling() { GOGC=off GOMEMLIMIT=1GiB "$@"; }
files() { git ls-files -z --cached --others --exclude-standard "$@"; }

echo "check: format"
unformatted=$(files '*.go' | xargs -0 gofmt -l)
[ -z "$unformatted" ] || fail "not formatted, run gofmt -w on: $unformatted"

# The packages that other programs import are modules of their own. "./..." leaves them out: the main module has them by import path.
importable="api execcredential execcredential/clientgo"

# Downloads what the rest of this script and the tests need. The go command does not repeat a download that fails.
thrice() { "$@" || { sleep 5; "$@"; } || { sleep 30; "$@"; }; }

# A module with the versions that its own go.mod states.
module() {
  local module=$1 run=(go)
  case " $importable " in *" $module "*) run=(hack/alone.sh "$module") ;; *) cd "$module" ;; esac
  thrice "${run[@]}" mod tidy -diff >/dev/null || fail "go.mod or go.sum of $module is not tidy, run ${run[*]} mod tidy"
  "${run[@]}" mod verify >/dev/null || fail "modules of $module do not match go.sum"
}

echo "check: modules"
export importable
export -f fail thrice module
# Several at a time: most of it waits for downloads.
files go.mod '*/go.mod' | xargs -0 dirname | xargs -P 4 -I{} bash -euo pipefail -c 'module {}' || fail "see above"

echo "check: versions of modules"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
list() { hack/modules.sh >"$scratch/modules"; }
thrice list
(cd release && compiling go run . modules --source ..) <"$scratch/modules" || fail "take other versions, or add the line to hack/refused.txt with its reason"

echo "check: vet"
compiling go vet ./... github.com/credence-id/credence/api/... github.com/credence-id/credence/execcredential/...
(cd devcluster && compiling go vet ./...)

echo "check: generated code"
mapfile -t generated < <(git ls-files --cached --others --exclude-standard '*zz_generated*' deploy/base/71-profiles.yaml)
tar cf "$scratch/before.tar" "${generated[@]}"
hack/generate.sh
stale=
for file in "${generated[@]}"; do
  tar xOf "$scratch/before.tar" "$file" | cmp -s - "$file" || stale="$stale $file"
done
[ -z "$stale" ] || fail "generated code was stale and has been made anew, commit:$stale"

echo "check: broken guards apply"
hack/guards/run.sh --check
git apply --check test/install/testdata/newer-field.patch || fail "make test/install/testdata/newer-field.patch anew, as its first line has it"

echo "check: import rules, names and links in documents, plain words"
go test -vet=off -count=1 ./test/arch ./test/documents ./test/words || fail "do as the messages above suggest"
echo "check: ok"
