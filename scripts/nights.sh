#!/usr/bin/env bash
# Plays the nights of so many seeds (default 20) in five ways, and writes docs/nights.md. It takes about a minute and a half
# for each seed.
#
# Usage: scripts/nights.sh [SEEDS]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/client.sh > /dev/null
PLIMSOLL_BIN_DIR=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}
export PLIMSOLL_BIN_DIR
exec cargo run --quiet --locked -p plimsoll-tests --example nights -- 1 "${1:-20}"
