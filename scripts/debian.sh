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
# Tests start servers of their own: no package makes a database or starts a service while this runs.
quiet=(/usr/sbin/policy-rc.d /etc/postgresql-common/createcluster.d/plimsoll.conf) made=()
trap 'rm -f "$printed"; [ ${#made[@]} = 0 ] || as_root rm -f "${made[@]}"' EXIT
case " $* " in *" postgresql "* | *" pgbouncer "*)
  for file in "${quiet[@]}"; do
    [ ! -e "$file" ] || continue
    as_root mkdir -p "$(dirname "$file")"
    case "$file" in *.d) said='#!/bin/sh\nexit 101\n' ;; *) said='create_main_cluster = false\n' ;; esac
    # shellcheck disable=SC2059  # the text has its own line ends
    printf "$said" | as_root tee "$file" >/dev/null
    as_root chmod 755 "$file"
    made+=("$file")
  done
  ;;
esac
{ apt update && apt install "$@"; } >"$printed" 2>&1 || {
  cat "$printed" >&2
  echo "missing: the Debian packages $* (the reason is above)" >&2
  exit 1
}
