#!/usr/bin/env bash
# Installs the pinned client into target/ (never anywhere else) and says where it lies.
#
# Usage: scripts/client.sh [VERSION]    another version instead
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-2.1.332}
folder="${CARGO_TARGET_DIR:-$PWD/target}/client-$version"
claude="$folder/node_modules/.bin/claude"
case $(uname -s) in
  # There .bin has scripts that start the program. The path is one that programs of Windows read, too.
  MINGW* | MSYS*) claude=$(cygpath -m "$folder/node_modules/@anthropic-ai/claude-code/bin/claude.exe") ;;
esac
if [ ! -x "$claude" ]; then
  command -v npm >/dev/null || { echo "missing: npm (Node.js 18 or newer). Debian: apt-get install npm; or https://nodejs.org" >&2; exit 1; }
  echo "installing @anthropic-ai/claude-code@$version into $folder" >&2
  mkdir -p "$folder"
  npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "@anthropic-ai/claude-code@$version" >&2 || {
    echo "npm could not install the client (its words are above). With a client of your own: plimsoll demo --client PATH" >&2
    exit 1
  }
fi
echo "$claude"
