#!/usr/bin/env bash
# Installs Debian packages, as root or with sudo. What apt prints is shown only if it fails.
#
# Usage: scripts/debian.sh PACKAGE …
set -euo pipefail

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
# Several scripts may install at once: apt waits for the one before it.
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" </dev/null; }

[ "$(uname -s)" = Linux ] || { echo "missing: $* (Debian's names; debian.sh is for Linux. On macOS Homebrew has most of them)" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "missing: $* (Debian's names; this system has no apt-get)" >&2; exit 1; }
echo "installing the Debian packages $*" >&2
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
{ apt update && apt install "$@"; } >"$printed" 2>&1 || {
  cat "$printed" >&2
  echo "missing: the Debian packages $* (the reason is above)" >&2
  exit 1
}
