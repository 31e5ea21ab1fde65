#!/usr/bin/env bash
# Installs the judges of our exports: the Python packages of the formats into target/, and a browser for the page.
# Says where their Python lies.
set -euo pipefail
cd "$(dirname "$0")/.."

fetch() { # Debian packages
  echo "installing the Debian packages $*" >&2
  { apt-get update -qq && apt-get install -qq -y "$@"; } >&2 || { echo "missing: the packages $*" >&2; exit 1; }
}

command -v chromium >/dev/null || fetch chromium
command -v python3 >/dev/null || fetch python3 python3-venv
folder="${CARGO_TARGET_DIR:-$PWD/target}/judges"
if ! cmp -s tests/judges/requirements.txt "$folder/installed.txt"; then
  rm -rf "$folder"
  python3 -m venv "$folder" >/dev/null 2>&1 || { fetch python3-venv; python3 -m venv --clear "$folder" >&2; }
  "$folder/bin/pip" install --quiet --disable-pip-version-check -r tests/judges/requirements.txt >&2
  cp tests/judges/requirements.txt "$folder/installed.txt"
fi
echo "$folder/bin/python"
