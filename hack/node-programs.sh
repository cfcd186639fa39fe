#!/usr/bin/env bash
# Install what a node on this machine, and the tests of the guard's units, need beside what is built, with apt-get: only as root, and only if it is missing.
# If it can't be installed, it prints so, and the tests that need it are skipped.
set -euo pipefail

packages=()
for pair in containerd:containerd runc:runc busybox:busybox-static nft:nftables ptp:containernetworking-plugins systemd-analyze:systemd; do
  PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/cni:/opt/cni/bin command -v "${pair%%:*}" >/dev/null || packages+=("${pair##*:}")
done
((${#packages[@]})) || exit 0

install="apt-get install -y --no-install-recommends ${packages[*]}"
if [[ $(uname -s) != Linux || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "tests of a real node, or of the units of the guard, are skipped: they need Linux, root, and ${packages[*]} ($install)" >&2
  exit 0
fi
echo "installing ${packages[*]} for the tests of a real node and of the units of the guard"
"$(dirname "$0")/apt-get.sh" "${packages[@]}" >/dev/null
