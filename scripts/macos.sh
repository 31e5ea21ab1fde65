#!/usr/bin/env bash
# Builds the programs for macOS on Linux, for Apple silicon and for Intel, and looks at each one as far as that goes without a Mac:
# everything compiles without a lint (the tests, too), every program links, is for its processor, wants nothing that not every Mac has, and on Apple
# silicon bears a signature that holds. Nothing is started. What it needs it installs into target/. Each step has a limit.
#
# Usage: scripts/macos.sh [--check | --programs] [TARGET …]    both targets by default
#   --check      only compile, with the lints
#   --programs   only build and look
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "macos.sh is for Linux: on a Mac scripts/build.sh builds the programs, and scripts/test.sh --quick tests them" >&2; exit 1; }
cd "$(dirname "$0")/.."

fail() { printf 'macos.sh: %s\n' "$1" >&2; exit 1; }
steps="check programs"
case ${1:-} in
  --check | --programs) steps=${1#--}; shift ;;
  -*) echo "Usage: scripts/macos.sh [--check | --programs] [TARGET …]" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || set -- aarch64-apple-darwin x86_64-apple-darwin
for target; do
  case $target in aarch64-apple-darwin | x86_64-apple-darwin) ;; *) fail "$target is no target of macOS" ;; esac
  [ -d "$(rustc --print target-libdir --target "$target")" ] || rustup target add "$target" >&2 || fail "rustup has no $target"
done
zig=$(scripts/zig.sh)
check() { # target; what scripts/build.sh is told it finds out by itself
  # shellcheck source=scripts/macos/linker.sh
  (. scripts/macos/linker.sh && timeout 1800 cargo-zigbuild clippy --quiet --locked --workspace --all-targets --target "$1" -- -D warnings)
}

for target; do
  echo "$target"
  case $steps in *check*)
    check "$target" || fail "not everything compiles for $target without a lint, or not within half an hour"
    echo "  everything compiles without a lint, tests included"
    ;;
  esac
  case $steps in *programs*)
    programs=$(timeout 3600 scripts/build.sh --target "$target") || fail "the programs for $target do not link, or not within an hour"
    system=$(find "$(dirname "$zig")" -name libSystem.tbd -path '*darwin*' | head -n 1)
    [ -n "$system" ] || fail "zig has no libSystem.tbd"
    python3 scripts/macos/programs.py "$target" "$system" scripts/macos/frameworks \
      "$programs"/plimsoll "$programs"/plimsoll-hook "$programs"/plimsoll-mcp "$programs"/plimsoll-fleet "$programs"/plimsoll-linear "$programs"/plimsoll-otel ||
      fail "a Mac would not start every program for $target"
    ;;
  esac
done
