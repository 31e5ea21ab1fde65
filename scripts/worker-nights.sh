#!/usr/bin/env bash
# Plays nights of `plimsoll run --workers 3` with the real client and a scripted model, in which workers, clients and the
# whole run are killed at random moments (the seed names them), and then compares four workers with one. What must hold
# afterwards is asserted: each item landed once, no line lost, no commit that fails was ever the branch's end, nothing left.
#
# Usage: scripts/worker-nights.sh [FIRST..LAST]    the seeds, without the last; default 100..120
#
# It prints a row for each night, a row for each comparison, and how often results were verified. About 20 s a night, and five
# minutes; the comparison wants a machine with nothing else at work. PLIMSOLL_BIN_DIR names programs that are already built. Exit 1 when something did not hold.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${1:-100..120}
[ $# -le 1 ] && [[ $seeds =~ ^[0-9]+\.\.[0-9]+$ ]] || { echo "Usage: scripts/worker-nights.sh [FIRST..LAST]" >&2; exit 2; }
command -v cargo >/dev/null || { echo "missing: Rust (cargo). Install it from https://rustup.rs" >&2; exit 1; }
PLIMSOLL_BIN_DIR=$(cd "${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}" && pwd)
export PLIMSOLL_BIN_DIR PLIMSOLL_SEEDS=$seeds PLIMSOLL_REAL_CLIENT=1
PATH=$(scripts/nextest.sh):$PATH

play() { cargo nextest run --profile workers --locked -p plimsoll-tests --test runs --cargo-quiet --no-capture -E "$1" 2>&1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
table() { # test, then the table's columns
  printf '\n|'
  printf ' %s |' "${@:2}"
  printf '\n|'
  printf ' --: |%.0s' "${@:2}"
  echo
  play "test(/workers::$1/)" >"$log" || { cat "$log" >&2; exit 1; }
  grep -E '^(\| |12 items merged )' "$log"
}
table whatever_is_killed seed items seconds kills sessions
table four_workers_against_one "a response takes" "one worker" "four workers" "times as fast"
