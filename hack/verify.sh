#!/usr/bin/env bash
# Checks what a merge needs beside make check: cross builds, and vet and lint of all modules.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
fail() { echo "verify: $*" >&2; exit 1; }
compiling() { GOGC=off GOMEMLIMIT=1GiB "$@"; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# One process that reads every dependency the first time: collecting its memory as often as usual takes a third of its time.
lint() { GOGC=400 GOMEMLIMIT=3GiB "$scratch/staticcheck" "$@"; }

echo "verify: modules of importers"
for module in api execcredential execcredential/clientgo; do
  compiling hack/alone.sh "$module" build ./...
  compiling hack/alone.sh "$module" vet ./...
done

echo "verify: other systems"
# Built here once: "go tool" builds a program anew for CGO_ENABLED=1.
compiling go -C tools build -o "$scratch/" ./sourcevet honnef.co/go/tools/cmd/staticcheck
for os in darwin windows; do
  GOOS=$os "$scratch/sourcevet" github.com/credence-id/credence/api/... ./cmd/credence/... ./cmd/credence-credential/... ./internal/identity/... ./internal/issuer/... ./internal/keyring/keys/... ./internal/relyingparty/... ./internal/discovery/... github.com/credence-id/credence/execcredential/... ./internal/credential/... ./internal/securitycontext/... ./internal/gmsa/... ./internal/app/cli/... ./internal/app/up/... ./cmd/credence-node/... ./internal/endpoint/... ./internal/node/... ./internal/app/node/... ./cmd/credence-image-credentials/... ./internal/registry/... ./internal/app/imagecredentials/...
done
# The tests of make test are built for macOS, and were never run there.
GOOS=darwin "$scratch/sourcevet" ./test/...

echo "verify: lint"
lint ./... github.com/credence-id/credence/api/... github.com/credence-id/credence/execcredential/...
(cd devcluster && lint ./...)
for module in release tools test/alerts test/bench test/csi test/install test/sdk test/securitycontext test/tools test/tools/argocd test/consumers test/workflows; do
  echo "verify: $module"
  (cd "$module" && compiling go vet ./... && lint ./...)
done

echo "verify: keys in devices"
command -v "${CC:-gcc}" >/dev/null || fail "test/pkcs11 needs cgo, and so a C compiler: install gcc, or name yours in CC"
(cd test/pkcs11 && compiling go vet ./... && CGO_ENABLED=1 compiling go vet ./... && CGO_ENABLED=1 lint ./...)
echo "verify: ok"
