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
# A download that fails is repeated, and another apt-get, such as that of a machine that has just started, is waited for.
patiently=(-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)
if [[ $(uname -s) != Linux || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "tests of keys in devices are skipped: they need ${packages[*]} (on Debian, as root: $install)" >&2
  exit 0
fi
echo "installing ${packages[*]} for the tests of keys in devices"
export DEBIAN_FRONTEND=noninteractive
$install "${patiently[@]}" >/dev/null || { apt-get "${patiently[@]}" update >/dev/null && $install "${patiently[@]}" >/dev/null; }
