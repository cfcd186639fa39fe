#!/usr/bin/env bash
# Install boto3 and the AWS CLI for the tests of SDKs, with apt-get: only as root, and only if they are missing. Other versions, such as
# those of pip, are used where the python3 that is first in PATH has them.
# If they can't be installed, it prints so, and their tests are skipped. Where CI is set, that is an error.
set -euo pipefail

packages=()
for pair in boto3:python3-boto3 awscli:awscli; do
  python3 -c "import ${pair%%:*}" 2>/dev/null || /usr/bin/python3 -c "import ${pair%%:*}" 2>/dev/null || packages+=("${pair##*:}")
done
((${#packages[@]})) || exit 0

without() {
  echo "tests of $1 are skipped: they need ${packages[*]} (on Debian, as root: $install)" >&2
  [[ -z ${CI:-} ]] || exit 1
  exit 0
}
install="apt-get install -y --no-install-recommends ${packages[*]}"
if [[ $(uname -s) != Linux || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  without "AWS's programs in Python"
fi
echo "installing ${packages[*]} for the tests of SDKs"
"$(dirname "$0")/apt-get.sh" "${packages[@]}" >/dev/null || without "AWS's programs in Python"
