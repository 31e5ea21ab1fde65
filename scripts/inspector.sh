#!/usr/bin/env bash
# Installs the MCP Inspector, a client of other people, into target/ (never anywhere else) and says where its
# programs lie. It needs Node.js 22.19; where that is not to be had, npm brings one beside it.
set -euo pipefail
cd "$(dirname "$0")/.."

version=2.12.0
node=22.23.3
folder="${CARGO_TARGET_DIR:-$PWD/target}/inspector-$version"
if [ ! -e "$folder/complete" ]; then
  command -v npm >/dev/null || { echo "missing: npm (Node.js). Debian: apt-get install npm; or https://nodejs.org" >&2; exit 1; }
  packages=("@modelcontextprotocol/inspector@$version")
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 19) ? 0 : 1)' || packages+=("node@$node")
  echo "installing ${packages[*]} into $folder" >&2
  mkdir -p "$folder"
  npm install --prefix "$folder" --no-audit --no-fund --no-save --loglevel=error "${packages[@]}" >&2
  touch "$folder/complete"
fi
echo "$folder/node_modules/.bin"
