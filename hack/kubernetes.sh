#!/usr/bin/env bash
# Build kube-apiserver, kube-controller-manager and kubectl of versions of Kubernetes: kubernetes.sh VERSION... (v1.33.13).
# They go into bin/kubernetes/VERSION, beside Credence's programs, and stay there. About 5 minutes for each on two CPUs.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
programs="kube-apiserver kube-controller-manager kubectl"

(($# > 0)) && [[ -n $1 ]] || { echo "usage: kubernetes.sh VERSION..." >&2; exit 2; }
for version in "$@"; do
  into=$top/bin/kubernetes/$version
  mkdir -p "$into"
  for program in "$top"/bin/*; do
    [[ -d $program || ${program##*/} == kubectl ]] || ln -f "$program" "$into/"
  done
  [[ -e $into/built ]] && continue
  echo "building Kubernetes $version"
  cd "$into"
  # Kubernetes' own go.mod replaces the modules of its libraries by folders of its repository: here, by what is published of them.
  upstream=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",\?$/\1/p')
  {
    printf 'module kubernetes\n\nrequire k8s.io/kubernetes %s\n' "$version"
    sed -n "s|^\t\(k8s.io/[^ ]*\) => ./staging/.*|replace \1 => \1 ${version/v1/v0}|p" "$upstream"
    sed -n '/^go /p' "$upstream"
  } > go.mod
  minor=${version#v1.}
  flags=
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
  done
  # Go compares the sums with its checksum database, where it has one.
  GOFLAGS="${GOFLAGS:-} -mod=mod" "$top/hack/build.sh" "$into" "-s -w$flags" $(printf 'k8s.io/kubernetes/cmd/%s ' $programs)
  touch built
done
