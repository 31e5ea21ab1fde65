#!/usr/bin/env bash
# Tests on Linux what Plimsoll does with the answers of macOS. It is built so that it sees of processes, locks and files only what a Mac
# reports (the feature `macos-answers` of crates/system); no release can be built like that.
#
# Usage: scripts/macos-answers.sh            the hooks and whole runs, with programs built that way
#        scripts/macos-answers.sh --units    the unit tests of the crates that query the system
#
# scripts/test.sh calls both and installs what they need.
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "macos-answers.sh is for Linux: on a Mac, scripts/test.sh --quick runs these tests" >&2; exit 1; }
cd "$(dirname "$0")/.."

case ${1:-} in
  "" | --units) ;;
  *) echo "Usage: scripts/macos-answers.sh [--units]" >&2; exit 2 ;;
esac
PATH=$(scripts/nextest.sh):$PATH
export PATH INSTA_UPDATE=no
run_tests() {
  cargo nextest run --locked --features plimsoll-system/macos-answers --cargo-quiet --show-progress none \
    --test-threads "${TEST_THREADS:-$(($(getconf _NPROCESSORS_ONLN) * 5))}" "$@"
}

if [ "${1:-}" = --units ]; then
  run_tests -p plimsoll-system -p plimsoll-store -p plimsoll-launcher
  exit
fi
# Apart, so that these programs do not take the place of the usual ones.
built=${CARGO_TARGET_DIR:-$PWD/target}/macos-answers
cargo build --quiet --workspace --locked --features plimsoll-system/macos-answers --all-targets --target-dir "$built"
programs=$built/programs
mkdir -p "$programs"
for program in plimsoll plimsoll-fleet plimsoll-linear plimsoll-mcp plimsoll-otel replayed-client; do ln -f "$built/debug/$program" "$programs/$program"; done
while read -r hook; do ln -f "$built/debug/plimsoll-hook" "$programs/$hook"; done <crates/hooks/programs.txt
export PLIMSOLL_BIN_DIR=$programs PLIMSOLL_REPLAYED_CLIENT=$programs/replayed-client
run_tests --workspace --target-dir "$built" --no-fail-fast -E 'package(plimsoll-tests) & (binary(hooks) | binary(runs))'
