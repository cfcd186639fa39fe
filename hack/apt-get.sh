#!/usr/bin/env bash
# Install Debian packages, as root: apt-get.sh PACKAGE... A download that fails is repeated, and another apt-get, such as that of a machine
# that has just started, is waited for.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
get() { apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 "$@"; }
install() { get install -y --no-install-recommends "$@"; }
install "$@" || { get update && install "$@"; }
