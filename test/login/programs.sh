#!/usr/bin/env bash
# Install what the tests of logins need beside what is built: Node.js and Chromium with apt-get, only as root and only if they are
# missing, and with npm a certified OpenID provider and what drives the browser, in the versions of package-lock.json.
# If they can't be installed, it prints so, and the tests are skipped. Where CI is set, that is an error.
# With the word "provider" only what the provider needs: people have a browser.
set -euo pipefail
cd "$(dirname "$0")/testdata"

without() { # without WHAT HOW
  echo "tests of logins with a real browser are skipped: $1 ($2)" >&2
  [[ -z ${CI:-} ]] || exit 1
  exit 0
}
have() { command -v "$1" >/dev/null; }

packages=()
have node && have npm || packages+=(nodejs npm)
[[ ${1:-} == provider ]] || have chromium || have chromium-browser || have google-chrome || packages+=(chromium)
if ((${#packages[@]})); then
  install="apt-get install -y --no-install-recommends ${packages[*]}"
  if [[ $(id -u) != 0 ]] || ! have apt-get; then
    without "they need ${packages[*]}" "$install"
  fi
  echo "installing ${packages[*]} for the tests of logins"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  ../../../hack/apt-get.sh "${packages[@]}" >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    without "${packages[*]} could not be installed" "$install"
  }
fi
[[ $(node -p 'parseInt(process.versions.node) >= 20') == true ]] || without "Node.js $(node --version) is too old" "20 or newer is needed"

# The file that is written last marks the rest complete: npm begins by removing everything.
if ! cmp -s package-lock.json node_modules/.installed; then
  echo "installing a certified OpenID provider for the tests of logins"
  npm=(npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --prefer-offline --fetch-retries=5 --fetch-timeout=60000 --fetch-retry-maxtimeout=20000)
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 "${npm[@]}" >/dev/null ||
    without "npm could not install the provider: is there a network, and can $(npm config get registry) be reached?" "in $PWD: ${npm[*]}"
  cp package-lock.json node_modules/.installed
fi
