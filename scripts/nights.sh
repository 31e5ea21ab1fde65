#!/usr/bin/env bash
# Plays the nights of so many seeds (default 20) in five ways, and writes docs/nights.md. It takes about a minute and a half
# for each seed.
#
# --harder plays the nights that measure what the next session is told (about half a minute for each seed), and writes their
# part of docs/nights.md once there are outcomes of both sets of programs, `before` and `now` (kept in
# target/handovers.jsonl). PLIMSOLL_BIN_DIR says where the programs are that are played with; by default they are built.
#
# Usage: scripts/nights.sh [SEEDS]
#        scripts/nights.sh FIRST LAST    the nights of these seeds, for instance others than the page has
#        scripts/nights.sh --harder FIRST LAST [before|now]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/client.sh > /dev/null
PLIMSOLL_BIN_DIR=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}
export PLIMSOLL_BIN_DIR
if [ "${1:-}" = --harder ]; then
    exec cargo run --quiet --locked -p plimsoll-tests --example handovers -- "${4:-now}" "${2:?the first seed}" "${3:?the last seed}"
fi
[ $# -eq 2 ] || set -- 1 "${1:-20}"
exec cargo run --quiet --locked -p plimsoll-tests --example nights -- "$1" "$2"
