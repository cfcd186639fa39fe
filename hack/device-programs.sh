#!/usr/bin/env bash
# Install what the tests of keys in devices need beside what is built, with apt-get: only as root, and only if it is missing.
# If it can't be installed, it prints so, and the tests that need it are skipped.
set -euo pipefail

packages=()
for pair in softhsm2-util:softhsm2 swtpm:swtpm "${CC:-gcc}:gcc libc6-dev"; do
  PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || packages+=(${pair##*:})
done
((${#packages[@]})) || exit 0

install="apt-get install -y --no-install-recommends ${packages[*]}"
if [[ $(uname -s) != Linux || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "tests of keys in devices are skipped: they need ${packages[*]} (on Debian, as root: $install)" >&2
  exit 0
fi
echo "installing ${packages[*]} for the tests of keys in devices"
"$(dirname "$0")/apt-get.sh" "${packages[@]}" >/dev/null
