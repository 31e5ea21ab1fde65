#!/usr/bin/env bash
# Tries versions of the client: installs each from npm into target/, plays the same short sessions with it, writes what was
# found (tests/tests/client/client_matrix/expected/), makes docs/clients.md of that, and prints the matrix. Exit 1 when something
# lacks that must never lack, or a version cannot be installed. What has changed, `git diff` shows. The tests of the module run with
# 2.1.287 and each newer version of the list.
#
# Usage: scripts/client-matrix.sh [VERSION…]    without one: the list below; `newest` asks npm for it
set -euo pipefail
cd "$(dirname "$0")/.."

versions=("$@")
[ ${#versions[@]} -gt 0 ] || versions=(1.0.84 1.0.85 1.0.128 2.0.65 2.0.77 2.1.101 2.1.118 2.1.131 2.1.132 2.1.138 2.1.139 2.1.207 2.1.329 2.1.331 2.1.332 newest)
command -v npm >/dev/null || { echo "missing: npm (Node.js 18 or newer). Debian: apt-get install npm; or https://nodejs.org" >&2; exit 1; }

target=${CARGO_TARGET_DIR:-$PWD/target}
failed=0
installed=()
for version in "${versions[@]}"; do
  if [ "$version" = newest ]; then
    version=$(npm view @anthropic-ai/claude-code version 2>/dev/null) || { echo "npm does not report the newest version" >&2; failed=1; continue; }
  fi
  case " ${installed[*]-} " in *" $version "*) continue ;; esac
  folder="$target/client-$version"
  if [ ! -e "$folder/complete" ]; then
    echo "installing @anthropic-ai/claude-code@$version into $folder" >&2
    mkdir -p "$folder"
    if ! npm install --prefix "$folder" --no-audit --no-fund --no-save --loglevel=error "@anthropic-ai/claude-code@$version" >&2; then
      echo "$version cannot be installed and is left out (npm's message is above)" >&2
      failed=1
      continue
    fi
  fi
  installed+=("$version")
done
[ ${#installed[@]} -gt 0 ] || exit 1

PLIMSOLL_BIN_DIR=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}
export PLIMSOLL_BIN_DIR PLIMSOLL_UPDATE_GOLDEN=1
matrix() { cargo test --quiet --locked -p plimsoll-tests --test client client_matrix -- --nocapture "$@"; }
PLIMSOLL_CLIENT_VERSIONS="${installed[*]-}" matrix the_clients_that_were_asked_for || failed=1
# Modules exist from 2.1.287 on.
for version in 2.1.287 ${installed[*]-}; do
  case $version in 1.* | 2.0.* | 2.1.? | 2.1.?? | 2.1.1?? | 2.1.2[0-7]? | 2.1.28[0-6]) continue ;; esac
  client=$(scripts/client.sh "$version")
  env -u PLIMSOLL_UPDATE_GOLDEN PLIMSOLL_TEST_CLIENT="$client" cargo test --quiet --locked -p plimsoll-tests --test client module:: || failed=1
done
PLIMSOLL_MATRIX_DAY=$(date -u +%F) matrix the_page_shows_what_is_known >/dev/null
exit "$failed"
