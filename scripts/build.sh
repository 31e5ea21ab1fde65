#!/usr/bin/env bash
# Builds Plimsoll as users get it: small programs, static on Linux, and prints where they are.
#
# A static musl build starts four times faster than a dynamic glibc one, and a hook
# runs after every batch of tools. If the musl target is not available, it links glibc statically instead.
# macOS has no static programs: there they link what every Mac has. On Windows only C's own library is static, so that users need
# not install one; plimsoll-fleet is left out.
#
# Usage: scripts/build.sh [--target TRIPLE]    for another machine: a musl target is linked by Rust's own linker, one of macOS by
#                                              zig (scripts/zig.sh), on a Mac by Apple's. On Windows, in Git Bash, Visual Studio's
#                                              linker links for both of its processors.
#        scripts/build.sh --names              plimsoll-hook alone, with the names of its functions: for scripts/order.sh
set -euo pipefail
cd "$(dirname "$0")/.."

system=$(uname -s)
machine=$(uname -m)
case $system in
  Darwin) own=${machine/arm64/aarch64}-apple-darwin ;;
  MINGW* | MSYS*) own=$machine-pc-windows-msvc ;;
  *) own=$machine-unknown-linux-musl ;;
esac
target=$own names=""
case "${1:-} ${2:-}" in
  " ") ;;
  "--names ") names=yes ;;
  "--target "?*) target=$2 ;;
  *) echo "Usage: scripts/build.sh [--target TRIPLE | --names]" >&2; exit 2 ;;
esac

command -v cargo >/dev/null || { echo "missing: Rust (cargo). Install it from https://rustup.rs" >&2; exit 1; }
# Rust links with it; on Windows it finds Visual Studio's linker by itself.
[[ $target == *-pc-windows-msvc ]] || command -v cc >/dev/null || {
  [ "$system" != Darwin ] || { echo "missing: cc. Install Apple's command line tools: xcode-select --install" >&2; exit 1; }
  scripts/debian.sh gcc libc6-dev
}
has_target() {
  [ -d "$(rustc --print target-libdir --target "$target" 2>/dev/null)" ] ||
    { command -v rustup >/dev/null && rustup target add "$target" >&2; }
}
# TLS, which plimsoll-fleet, plimsoll-linear and plimsoll-otel speak, is partly C. It wants a compiler for the target's processor and some headers
# of any libc, so that this machine's own compiler will do, or the common cross compiler for another one.
choose_compiler() {
  local compiler=CC_${target//-/_} flags=CFLAGS_${target//-/_} cross
  if [ -n "${!compiler:-}" ]; then
    :
  elif [ "$target" = "$own" ]; then
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
}

# What a hook touches is linked side by side: it starts a third faster. crates/plimsoll/build.rs does it, if the linker takes such
# scripts; not every one does.
link_together() { # the linker, if it is not the compiler's own choice
  local probe
  probe=$(mktemp -d)
  echo 'SECTIONS { .text.together : { *crt1.o(.text) *(.text.main*) } } INSERT BEFORE .text;' >"$probe/script"
  if echo 'fn main() {}' | rustc --target "$target" ${1:+-C "linker=$1"} -C relocation-model=static -C panic=abort \
    -C link-arg=-T -C "link-arg=$probe/script" -C link-arg=-z -C link-arg=noseparate-code -C link-arg=-z -C link-arg=norelro \
    -o "$probe/probe" - 2>"$probe/complaint" && { [ "$target" != "$own" ] || "$probe/probe"; }; then
    export PLIMSOLL_TOGETHER=yes
  else
    echo "build.sh: the linker for $target takes no script to put functions in order: the hooks will start slower" >&2
    cat "$probe/complaint" >&2
  fi
  rm -rf "$probe"
}

if ! has_target; then
  [ "$target" = "$own" ] || { echo "the target $target is not available here" >&2; exit 1; }
  [ "$system" != Linux ] || echo "the musl target is not available here: linking glibc statically" >&2
  target=""
fi
# Programs that name their commit are compiled anew after each commit, which takes minutes: install.sh and release.sh name one.
export PLIMSOLL_COMMIT=${PLIMSOLL_COMMIT-}
build=(build)
case "$system $target" in
  *-apple-darwin)
    # The oldest macOS on which the programs start.
    export MACOSX_DEPLOYMENT_TARGET=${MACOSX_DEPLOYMENT_TARGET:-11.0}
    # A library that only an unused part wanted costs every hook time when it starts.
    flags=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
    export "$flags=${!flags:-} -Clink-arg=-Wl,-dead_strip_dylibs"
    if [ "$system" != Darwin ]; then
      # shellcheck source=scripts/macos/linker.sh
      . scripts/macos/linker.sh
      build=(zigbuild)
    fi
    ;;
  *-pc-windows-*)
    flags=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
    export "$flags=${!flags:-} -Ctarget-feature=+crt-static"
    ;;
  *" ") [ "$system" = Darwin ] || export RUSTFLAGS="-C target-feature=+crt-static" ;;
  *)
    choose_compiler
    linker=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_LINKER
    if [ "$target" != "$own" ]; then
      # Rust's own linker will do: the target brings its own libc.
      export "$linker=${!linker:-rust-lld}"
    fi
    link_together "${!linker:-}"
    ;;
esac
[ -z "$target" ] || build+=(--target "$target")
# On a terminal cargo shows its progress.
[ -t 2 ] || build+=(--quiet)
folder=${CARGO_TARGET_DIR:-$PWD/target}${target:+/$target}/release
programs=(--bins) suffix=""
if [[ $target == *-pc-windows-* ]]; then
  # Fleets need what only Unix has.
  programs=(--bin plimsoll --bin plimsoll-hook --bin plimsoll-linear --bin plimsoll-mcp --bin plimsoll-otel) suffix=.exe
fi
# Programs of Windows read no path of Git Bash.
case $system in MINGW* | MSYS*) folder=$(cygpath -m "$folder") ;; esac
if [ -n "$names" ]; then
  cargo rustc "${build[@]:1}" --release --locked -p plimsoll --bin plimsoll-hook -- -C strip=none
  echo "$folder"
  exit
fi
# All at once, so that what they share is compiled once: what one of them does not use, its link leaves out.
cargo "${build[@]}" --release --locked -p plimsoll "${programs[@]}"
# The hook programs are one file under several names.
while read -r name; do ln -f "$folder/plimsoll-hook$suffix" "$folder/$name$suffix"; done <crates/hooks/programs.txt
echo "$folder"
