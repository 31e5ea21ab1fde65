#!/usr/bin/env bash
# Plays the nights of docs/nights.md: every way with every character, for each seed. What is finished is kept in
# target/nights.jsonl; stopped and started again, it goes on where it was. Rows of other builds are never mixed in. A seed is 60
# nights, about ten minutes on two cores.
#
# Usage: scripts/nights.sh [FIRST LAST [WAY,… [CHARACTER,…]]]   play (141 to 145 by default; 1 to 20 and 101 to 140 are for development)
#        scripts/nights.sh --report [FIRST LAST [BUILD]]        write docs/nights.md and docs/nights.tsv
#        scripts/nights.sh --page                               write docs/nights.md again from docs/nights.tsv
#        scripts/nights.sh --harder FIRST LAST [NAME]
#
# --harder plays the nights that measure what the next session is told (about half a minute for each seed), and writes their
# part of docs/nights.md. With a NAME other than `now`, such as `before`, it only prints it, so that two sets of programs can
# be compared (outcomes are kept in target/handovers.jsonl). PLIMSOLL_BIN_DIR says where the programs are that are played with; by
# default they are built.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" != --page ]; then
  scripts/client.sh > /dev/null
  PLIMSOLL_BIN_DIR=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}
  export PLIMSOLL_BIN_DIR
fi
run_program() { # program of research/, its arguments
  exec cargo run --quiet --locked --manifest-path research/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-$PWD/target}" --bin "$1" -- "${@:2}"
}
case "${1:-}" in
  --harder) run_program handovers "${4:-now}" "${2:?the first seed}" "${3:?the last seed}" ;;
  --page) run_program nights page ;;
  --report) run_program nights report "${2:-141}" "${3:-145}" "${@:4}" ;;
  *) run_program nights play "${1:-141}" "${2:-145}" "${@:3}" ;;
esac
