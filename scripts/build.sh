#!/usr/bin/env bash
# Builds Plimsoll as users get it: small static binaries, and says where they lie.
#
# A static musl build starts four times faster than a dynamic glibc one (README, "How fast it is"), and a hook
# runs after every batch of tools. Where the musl target is not to be had, glibc is linked statically instead.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo >/dev/null || { echo "missing: Rust (cargo). Install it from https://rustup.rs" >&2; exit 1; }
command -v cc >/dev/null || {
  echo "a C linker is missing: installing gcc" >&2
  { apt-get update -qq && apt-get install -qq -y gcc libc6-dev; } >&2 || { echo "missing: cc. Install gcc (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }
}

machine=$(uname -m)
target="$machine-unknown-linux-musl"
if [ "$(uname -s)" != Linux ]; then
  target=""
elif ! rustc --print target-libdir --target "$target" 2>/dev/null | xargs -r test -d; then
  command -v rustup >/dev/null && rustup target add "$target" >&2 || target=""
fi

# The server is built apart: what its libraries ask of the shared ones has no place in a hook.
if [ -n "$target" ]; then
  cargo build --quiet --release --locked --target "$target" -p plimsoll-hooks -p plimsoll --bins
  cargo build --quiet --release --locked --target "$target" -p plimsoll-mcp
  echo "${CARGO_TARGET_DIR:-$PWD/target}/$target/release"
else
  echo "the musl target is not to be had here: linking glibc statically" >&2
  export RUSTFLAGS="-C target-feature=+crt-static"
  cargo build --quiet --release --locked -p plimsoll-hooks -p plimsoll --bins
  cargo build --quiet --release --locked -p plimsoll-mcp
  echo "${CARGO_TARGET_DIR:-$PWD/target}/release"
fi
