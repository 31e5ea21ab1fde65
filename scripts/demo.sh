#!/usr/bin/env bash
# Shows a complete run: a real run with the real client and real hooks, from the first item over a
# checkpoint and a resume to completion. The model is scripted on this machine: no key, no network.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v git >/dev/null || scripts/debian.sh git
command -v cargo >/dev/null || { echo "missing: Rust (cargo). Install it from https://rustup.rs" >&2; exit 1; }
# Rust links with it.
command -v cc >/dev/null || scripts/debian.sh gcc libc6-dev

# The client is downloaded while the compiler works.
told=$(mktemp)
trap 'rm -f "$told"' EXIT
scripts/client.sh >"$told" &
downloading=$!

# Built like the tests' programs, for whoever waits for them: optimized ones take six minutes instead of two. The optional
# programs, which the demo does not start, are half of the code.
echo "building Plimsoll for the demo (the first time takes about two minutes)" >&2
progress=(--quiet)
[ ! -t 2 ] || progress=()
CARGO_INCREMENTAL=0 cargo build ${progress[@]+"${progress[@]}"} --locked -p plimsoll --no-default-features --bins
target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target/demo"
ln -f "$target/debug/plimsoll" "$target/demo/plimsoll"
while read -r name; do ln -f "$target/debug/plimsoll-hook" "$target/demo/$name"; done <crates/hooks/programs.txt

wait "$downloading"
claude=$(cat "$told")
rm -f "$told"
exec "$target/demo/plimsoll" demo --client "$claude" "$@"
