#!/usr/bin/env bash
# Checks what a reviewer should not have to: each check prints what to run to mend what it found.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
fail() { echo "verify: $*" >&2; exit 1; }
# A compiler is done before its memory needs to be collected: see hack/build.sh.
vet() { GOGC=off GOMEMLIMIT=1GiB go vet "$@"; }

echo "verify: format"
unformatted=$(gofmt -l $(git ls-files --cached --others --exclude-standard '*.go'))
[ -z "$unformatted" ] || fail "not formatted, run gofmt -w on: $unformatted"

# The packages that other programs import are modules of their own. "./..." leaves them out: the main module has them by import path.
importable="api execcredential execcredential/clientgo"
ours="./... github.com/credence-id/credence/api/... github.com/credence-id/credence/execcredential/..."

# Downloads what the rest of this script and the tests need. The go command does not repeat a download that fails.
thrice() { "$@" || { sleep 5; "$@"; } || { sleep 30; "$@"; }; }

echo "verify: modules"
for module in $importable; do
  thrice hack/alone.sh "$module" mod tidy -diff >/dev/null || fail "go.mod or go.sum of $module is not tidy, run hack/alone.sh $module mod tidy -diff"
  hack/alone.sh "$module" mod verify >/dev/null || fail "modules of $module do not match go.sum"
done
for module in . devcluster release tools test/alerts test/alerts/prometheus test/bench test/csi test/e2e/registry test/install test/install/certmanager test/sdk test/sdk/minio test/securitycontext test/pkcs11; do
  (cd "$module" && thrice go mod tidy -diff >/dev/null) || fail "go.mod or go.sum of $module is not tidy, run go mod tidy in it"
  (cd "$module" && go mod verify >/dev/null) || fail "modules of $module do not match go.sum"
done

echo "verify: versions of modules"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
list() { hack/modules.sh >"$scratch/modules"; }
thrice list
(cd release && go run . modules --source ..) <"$scratch/modules" || fail "take other versions, or add the line to hack/refused.txt with its reason"

echo "verify: vet"
vet $ours
(cd devcluster && vet ./...)
for module in $importable; do
  hack/alone.sh "$module" build ./...
  hack/alone.sh "$module" vet ./...
done
for os in darwin windows; do
  GOOS=$os vet github.com/credence-id/credence/api/... ./cmd/credence/... ./cmd/credence-credential/... ./internal/identity/... ./internal/issuer/... ./internal/keyring/keys/... ./internal/relyingparty/... ./internal/discovery/... github.com/credence-id/credence/execcredential/... ./internal/credential/... ./internal/securitycontext/... ./internal/gmsa/... ./internal/app/cli/... ./internal/app/up/... ./cmd/credence-node/... ./internal/node/... ./internal/app/node/... ./cmd/credence-image-credentials/... ./internal/registry/... ./internal/app/imagecredentials/...
done

echo "verify: lint"
go tool -modfile=tools/go.mod staticcheck $ours
(cd devcluster && go tool -modfile=../tools/go.mod staticcheck ./...)

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
(cd test/alerts && vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./... && go test -count=1 ./...)

echo "verify: benchmarks"
(cd test/bench && vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./...)

echo "verify: releases"
(cd release && vet ./... && go tool -modfile=../tools/go.mod staticcheck ./...)

echo "verify: the chart"
(cd test/install && vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./...)

echo "verify: the CSI suite"
(cd test/csi && vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./...)

echo "verify: SDKs"
(cd test/sdk && vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./...)

echo "verify: Kubernetes' own rules"
(cd test/securitycontext && vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./...)

echo "verify: keys in devices"
command -v "${CC:-gcc}" >/dev/null || fail "test/pkcs11 needs cgo, and so a C compiler: install gcc, or name yours in CC"
(cd test/pkcs11 && vet ./... && CGO_ENABLED=1 vet ./... && CGO_ENABLED=1 go tool -modfile=../../tools/go.mod staticcheck ./...)

echo "verify: import rules"
go test -count=1 ./test/arch

echo "verify: names and links in documents"
go test -count=1 ./test/documents

echo "verify: plain words"
go test -count=1 ./test/words || fail "write it as the messages above suggest"
echo "verify: ok"
