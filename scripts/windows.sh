#!/usr/bin/env bash
# The tests on Windows, in Git Bash: unit tests, and what a user does first with the real client. Nobody has run it there yet. It builds
# the programs as users get them; everything that it installs lies in target/.
#
# Usage: scripts/windows.sh
set -euo pipefail
case $(uname -s) in
  MINGW* | MSYS*) ;;
  *) echo "windows.sh is for Windows, in Git Bash: on Linux there is scripts/wine.sh" >&2; exit 1 ;;
esac
[ $# = 0 ] || { echo "Usage: scripts/windows.sh" >&2; exit 2; }
cd "$(dirname "$0")/.."

# The crates whose unit tests also run under wine.
crates=(domain protocol policy secrets system store flows hooks terminal cli mcp linear otel network scripted-model)

PATH=$(scripts/nextest.sh):$PATH
PLIMSOLL_TEST_CLIENT=$(scripts/client.sh)
PLIMSOLL_BIN_DIR=$(scripts/build.sh)
export PATH PLIMSOLL_TEST_CLIENT PLIMSOLL_BIN_DIR INSTA_UPDATE=no

run_tests() {
  cargo nextest run --locked --cargo-quiet --show-progress none --no-fail-fast "$@"
}
status=0
run_tests --profile windows "${crates[@]/#/--package=plimsoll-}" || status=$?
# Of the tests of the whole, only this one compiles for Windows.
run_tests --package plimsoll-tests --test first_session || status=$?
exit "$status"
