#!/usr/bin/env bash
# Installs the judges of what we give out: the Python package of OTLP, zizmor and actionlint for the workflows and Linear's own
# package into target/, and a browser for the page. Prints where their Python lies.
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
linear=@linear/sdk@98.0.0
modules="${CARGO_TARGET_DIR:-$PWD/target}/judges-node"
if [ "$(cat "$modules/installed.txt" 2>/dev/null)" != "$packages" ]; then
  command -v npm >/dev/null || { echo "missing: npm (Node.js 20 or newer). Debian: apt-get install npm; or https://nodejs.org" >&2; exit 1; }
  rm -rf "$modules"
  mkdir -p "$modules"
  npm install --prefix "$modules" --no-audit --no-fund --ignore-scripts --loglevel=error "$linear" >&2
  echo "$linear" >"$modules/installed.txt"
fi
echo "$folder/bin/python"
