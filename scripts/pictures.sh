#!/usr/bin/env bash
# Draws docs/*.svg anew from what the programs print.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/client.sh > /dev/null
exec cargo run --quiet --locked -p plimsoll-tests --example picture
