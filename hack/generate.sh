#!/usr/bin/env bash
# Makes the generated code anew: deep copies and OpenAPI definitions of the API types, and the custom resources.
set -euo pipefail
cd "$(dirname "$0")/.."
tool() { go tool -modfile=tools/go.mod "$@"; }

# The types are a module of their own, which a path of a folder does not find.
api=github.com/credence-id/credence/api
types=($api/authentication/v1alpha1 $api/identity/v1alpha1)
windows=($api/windows/v1)
accounts=$api/accounts/v1alpha1
machinery=(k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version)

tool deepcopy-gen --go-header-file /dev/null --output-file zz_generated.deepcopy.go "${types[@]}" "${windows[@]}" $accounts
tool openapi-gen --go-header-file /dev/null \
  --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
  --output-dir internal/apiserver/openapi --output-pkg github.com/credence-id/credence/internal/apiserver/openapi \
  --report-filename /dev/null "${machinery[@]/#/--readonly-pkg=}" "${types[@]}" "${machinery[@]}"

# One file of all custom resources: a folder of deploy is not a place for generated files. Deleting them deletes their objects, so nothing of Credence does.
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
tool controller-gen crd paths=$accounts output:crd:dir="$made"
{
  echo "# Made by make generate from api/accounts/v1alpha1."
  sed '/controller-gen.kubebuilder.io\/version/s|.*|    helm.sh/resource-policy: keep|' "$made"/*.yaml | tail -n +2 # without the first separator
} > deploy/base/71-profiles.yaml
