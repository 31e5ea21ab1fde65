#!/usr/bin/env bash
# Installs the judges of what we give out: the Python package of OTLP, zizmor and actionlint for the workflows, Linear's own
# package and ccusage into target/, and a browser for the page. Prints where their Python lies.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v chromium >/dev/null || scripts/debian.sh chromium
command -v python3 >/dev/null || scripts/debian.sh python3 python3-venv
folder="${CARGO_TARGET_DIR:-$PWD/target}/judges"
if ! cmp -s tests/judges/requirements.txt "$folder/installed.txt"; then
  rm -rf "$folder"
  python3 -m venv "$folder" >/dev/null 2>&1 || { scripts/debian.sh python3-venv; python3 -m venv --clear "$folder" >&2; }
  "$folder/bin/pip" install --quiet --disable-pip-version-check -r tests/judges/requirements.txt >&2
  cp tests/judges/requirements.txt "$folder/installed.txt"
fi
# 20.0.24 is the newest ccusage whose program for Linux is in the registry.
packages="@linear/sdk@98.0.0 ccusage@20.0.24"
modules="${CARGO_TARGET_DIR:-$PWD/target}/judges-node"
if [ "$(cat "$modules/installed.txt" 2>/dev/null)" != "$packages" ]; then
  command -v npm >/dev/null || { echo "missing: npm (Node.js 20 or newer). Debian: apt-get install npm; or https://nodejs.org" >&2; exit 1; }
  rm -rf "$modules"
  mkdir -p "$modules"
  npm install --prefix "$modules" --no-audit --no-fund --ignore-scripts --loglevel=error $packages >&2
  # npm leaves this to a script of the package.
  chmod +x "$modules"/node_modules/@ccusage/*/bin/ccusage
  echo "$packages" >"$modules/installed.txt"
fi
echo "$folder/bin/python"
