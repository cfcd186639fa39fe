#!/usr/bin/env bash
# Checks what a reviewer should not have to: each check prints what to run to mend what it found.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
fail() { echo "verify: $*" >&2; exit 1; }
# A compiler is done before its memory needs to be collected: see hack/build.sh.
compiling() { GOGC=off GOMEMLIMIT=1GiB "$@"; }
vet() { compiling go vet "$@"; }
# One process that reads every dependency the first time: collecting its memory as often as usual takes a third of its time.
lint() { GOGC=400 GOMEMLIMIT=3GiB "$scratch/staticcheck" "$@"; }

echo "verify: format"
unformatted=$(gofmt -l $(git ls-files --cached --others --exclude-standard '*.go'))
[ -z "$unformatted" ] || fail "not formatted, run gofmt -w on: $unformatted"

# The packages that other programs import are modules of their own. "./..." leaves them out: the main module has them by import path.
importable="api execcredential execcredential/clientgo"
ours="./... github.com/credence-id/credence/api/... github.com/credence-id/credence/execcredential/..."

# Downloads what the rest of this script and the tests need. The go command does not repeat a download that fails.
thrice() { "$@" || { sleep 5; "$@"; } || { sleep 30; "$@"; }; }

# A module with the versions that its own go.mod states.
module() {
  local module=$1 run=(go)
  case " $importable " in *" $module "*) run=(hack/alone.sh "$module") ;; *) cd "$module" ;; esac
  thrice "${run[@]}" mod tidy -diff >/dev/null || fail "go.mod or go.sum of $module is not tidy, run ${run[*]} mod tidy"
  "${run[@]}" mod verify >/dev/null || fail "modules of $module do not match go.sum"
}

echo "verify: modules"
export importable
export -f fail thrice module
# Several at a time: most of it waits for downloads.
git ls-files --cached --others --exclude-standard go.mod '*/go.mod' | xargs dirname | xargs -P 4 -I{} bash -euo pipefail -c 'module {}' || fail "see above"

echo "verify: versions of modules"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
list() { hack/modules.sh >"$scratch/modules"; }
thrice list
(cd release && compiling go run . modules --source ..) <"$scratch/modules" || fail "take other versions, or add the line to hack/refused.txt with its reason"

echo "verify: vet"
vet $ours
(cd devcluster && vet ./...)
for module in $importable; do
  compiling hack/alone.sh "$module" build ./...
  compiling hack/alone.sh "$module" vet ./...
done
# Built here once: "go tool" builds a program anew for CGO_ENABLED=1.
compiling go -C tools build -o "$scratch/" ./sourcevet honnef.co/go/tools/cmd/staticcheck
for os in darwin windows; do
  GOOS=$os "$scratch/sourcevet" github.com/credence-id/credence/api/... ./cmd/credence/... ./cmd/credence-credential/... ./internal/identity/... ./internal/issuer/... ./internal/keyring/keys/... ./internal/relyingparty/... ./internal/discovery/... github.com/credence-id/credence/execcredential/... ./internal/credential/... ./internal/securitycontext/... ./internal/gmsa/... ./internal/app/cli/... ./internal/app/up/... ./cmd/credence-node/... ./internal/endpoint/... ./internal/node/... ./internal/app/node/... ./cmd/credence-image-credentials/... ./internal/registry/... ./internal/app/imagecredentials/...
done

echo "verify: lint"
lint $ours
(cd devcluster && lint ./...)

echo "verify: generated code"
generated=$(git ls-files --cached --others --exclude-standard '*zz_generated*' deploy/base/71-profiles.yaml)
tar cf "$scratch/before.tar" $generated
hack/generate.sh
stale=
for file in $generated; do
  tar xOf "$scratch/before.tar" "$file" | cmp -s - "$file" || stale="$stale $file"
done
[ -z "$stale" ] || fail "generated code was stale and has been made anew, commit:$stale"

echo "verify: alerts"
(cd test/alerts && vet ./... && lint ./... && go test -vet=off -count=1 ./...)

for module in release test/bench test/csi test/install test/sdk test/securitycontext tools; do
  echo "verify: $module"
  (cd "$module" && vet ./... && lint ./...)
done

echo "verify: keys in devices"
command -v "${CC:-gcc}" >/dev/null || fail "test/pkcs11 needs cgo, and so a C compiler: install gcc, or name yours in CC"
(cd test/pkcs11 && vet ./... && CGO_ENABLED=1 vet ./... && CGO_ENABLED=1 lint ./...)

echo "verify: import rules"
go test -vet=off -count=1 ./test/arch

echo "verify: names and links in documents"
go test -vet=off -count=1 ./test/documents

echo "verify: plain words"
go test -vet=off -count=1 ./test/words || fail "write it as the messages above suggest"
echo "verify: ok"
