#!/usr/bin/env bash
# Builds Plimsoll as users get it: small static binaries, and prints where they are.
#
# A static musl build starts four times faster than a dynamic glibc one, and a hook
# runs after every batch of tools. If the musl target is not available, it links glibc statically instead.
#
# Usage: scripts/build.sh [--target TRIPLE]    for another machine: its musl target, linked by Rust's own linker.
set -euo pipefail
cd "$(dirname "$0")/.."

machine=$(uname -m)
target="$machine-unknown-linux-musl"
other=""
case "${1:-} ${2:-}" in
  " ") ;;
  "--target $target") ;;
  "--target "?*) target=$2 other=yes ;;
  *) echo "Usage: scripts/build.sh [--target TRIPLE]" >&2; exit 2 ;;
esac

command -v cargo >/dev/null || { echo "missing: Rust (cargo). Install it from https://rustup.rs" >&2; exit 1; }
# Rust links with it.
command -v cc >/dev/null || scripts/debian.sh gcc libc6-dev

if [ "$(uname -s)" != Linux ] && [ -z "$other" ]; then
  target=""
elif ! rustc --print target-libdir --target "$target" 2>/dev/null | xargs -r test -d; then
  command -v rustup >/dev/null && rustup target add "$target" >&2 || target=""
fi
if [ -n "$other" ]; then
  [ -n "$target" ] || { echo "the target $2 is not available here" >&2; exit 1; }
  linker=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_LINKER
  # Rust's own linker will do: the target brings its own libc.
  export "$linker=${!linker:-rust-lld}"
fi
if [ -n "$target" ]; then
  # TLS, which plimsoll-linear and plimsoll-otel speak, is partly C. It wants a compiler for the target's processor and some
  # headers of any libc, so that this machine's own compiler will do, or the common cross compiler for another one.
  compiler=CC_${target//-/_} flags=CFLAGS_${target//-/_}
  if [ -n "${!compiler:-}" ]; then
    :
  elif [ -z "$other" ]; then
    export "$compiler=cc"
  else
    cross=${target%%-*}-linux-gnu-gcc
    command -v "$cross" >/dev/null || {
      scripts/debian.sh "gcc-$(tr _ - <<<"${target%%-*}")-linux-gnu" || {
        echo "missing: $cross. Or name a compiler in $compiler" >&2
        exit 1
      }
    }
    export "$compiler=$cross"
  fi
  # Some compilers check copies by functions that musl does not have.
  export "$flags=${!flags:-} -U_FORTIFY_SOURCE"
fi

# On a terminal cargo shows its progress.
quiet=--quiet
[ ! -t 2 ] || quiet=""
# All at once, so that what they share is compiled once: what one of them does not use, its link leaves out.
if [ -n "$target" ]; then
  cargo build $quiet --release --locked --target "$target" -p plimsoll --bins
  folder=${CARGO_TARGET_DIR:-$PWD/target}/$target/release
else
  echo "the musl target is not available here: linking glibc statically" >&2
  export RUSTFLAGS="-C target-feature=+crt-static"
  cargo build $quiet --release --locked -p plimsoll --bins
  folder=${CARGO_TARGET_DIR:-$PWD/target}/release
fi
# The hook programs are one file under several names.
while read -r name; do ln -f "$folder/plimsoll-hook" "$folder/$name"; done <crates/hooks/programs.txt
echo "$folder"
