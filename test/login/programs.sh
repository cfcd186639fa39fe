#!/usr/bin/env bash
# Install what the login tests need beside what is built: a certified OpenID provider and what drives a browser with npm, and, as root
# on a system with apt-get, Chromium and Node.js. Whoever cannot have them is told so; the tests are skipped then.
set -euo pipefail
cd "$(dirname "$0")/testdata"

packages=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || packages+=(chromium)
command -v npm >/dev/null || packages+=(nodejs npm)
if ((${#packages[@]})); then
  install="apt-get install -y --no-install-recommends ${packages[*]}"
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "tests of logins with a real browser are skipped: they need ${packages[*]} ($install)" >&2
    exit 0
  fi
  echo "installing ${packages[*]} for the tests of logins"
  export DEBIAN_FRONTEND=noninteractive
  $install >/dev/null || { apt-get update >/dev/null && $install >/dev/null; }
fi
if ! cmp -s package-lock.json node_modules/.installed; then
  echo "installing a certified OpenID provider for the tests of logins"
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
  cp package-lock.json node_modules/.installed
fi
