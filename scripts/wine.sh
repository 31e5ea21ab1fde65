#!/usr/bin/env bash
# Tests the programs for Windows on Linux, under wine. They are built with mingw; wine plays the kernel and the system's libraries. It
# has no symbolic links, no junctions and no console: what needs these is tested on Windows alone.
#
# Usage: scripts/wine.sh                      the tests of the programs, Linux programs that start the Windows programs
#        scripts/wine.sh --units [CRATE …]    the unit tests of the crates that build for Windows, themselves Windows programs
#
# On Debian it installs wine and mingw. Everything else lies in target/wine: a prefix with a home of its own and one wineserver, which
# is ended at the end. The second run of several waits for the first.
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "wine.sh is for Linux: Windows needs no wine" >&2; exit 1; }
cd "$(dirname "$0")/.."

fail() { printf 'wine.sh: %s\n' "$1" >&2; exit 1; }
target=x86_64-pc-windows-gnu
# The crates whose unit tests run under wine. The launcher's need git, the fleet's PostgreSQL.
crates=(domain protocol policy secrets system store flows hooks terminal cli mcp linear otel network scripted-model)
case ${1:-} in
  "") [ $# = 0 ] ;;
  --units) [ $# = 1 ] || crates=("${@:2}") ;;
  *) false ;;
esac || { echo "Usage: scripts/wine.sh [--units [CRATE …]]" >&2; exit 2; }

build_folder=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$build_folder/wine"
wine_folder=$(cd "$build_folder/wine" && pwd -P)
export wine_folder
missing=()
compgen -G '/usr/lib/wine/wine64' >/dev/null || command -v wine64 wine >/dev/null || missing+=(wine64)
command -v x86_64-w64-mingw32-gcc >/dev/null || missing+=(gcc-mingw-w64-x86-64)
command -v perl >/dev/null || missing+=(perl)
[ ${#missing[@]} = 0 ] || scripts/debian.sh "${missing[@]}"
[ -d "$(rustc --print target-libdir --target "$target")" ] || rustup target add "$target" >&2 || fail "rustup has no $target"
PATH=$(scripts/nextest.sh):$PATH
export PATH INSTA_UPDATE=no

# shellcheck source=scripts/wine/environment.sh
. scripts/wine/environment.sh
drive=$wine_folder/prefix/drive_c
exec {lock}>"$wine_folder/lock"
flock -w 3600 "$lock" || fail "another run has been at work in $wine_folder for an hour"
wine() { env "${wine_variables[@]}" timeout 300 "$WINELOADER" "$@" </dev/null {lock}>&-; }
# Both find the server by the prefix: no other one is meant.
server() { env "${wine_variables[@]}" timeout 60 "$WINESERVER" "$@" >/dev/null 2>&1 {lock}>&-; }
trap 'server -k || true' EXIT

mkdir -p "$wine_folder/home"
[ -e "$wine_folder/complete" ] || rm -rf "$wine_folder/prefix"
mkdir -p "$wine_folder/prefix"
# A run that was killed has left its server.
server -k || true
server -p || fail "no wineserver starts"
if [ ! -e "$wine_folder/complete" ]; then
  wine wineboot --init >"$wine_folder/log" 2>&1 || { cat "$wine_folder/log" >&2; fail "wine makes no prefix"; }
  # It would play Windows 7, which Rust does not support.
  wine reg add 'HKCU\Software\Wine' /v Version /d win10 /f >>"$wine_folder/log" 2>&1 || fail "wine does not play Windows 10"
  touch "$wine_folder/complete"
fi
x86_64-w64-mingw32-gcc -O2 -Wall -Wextra -Werror -shared -s -o "$drive/windows/system32/bcryptprimitives.dll" scripts/wine/bcryptprimitives.c -ladvapi32
rm -rf "$drive/t"
mkdir -p "$drive/t" "$drive/plimsoll"
# wine ends its services with the last program: one that waits saves each test their start.
exec {_}> >(exec env "${wine_variables[@]}" "$WINELOADER" 'C:\windows\system32\cmd.exe' /c pause >/dev/null 2>&1 {lock}>&-)

run_tests() {
  cargo nextest run --locked --cargo-quiet --show-progress none --no-fail-fast --test-threads "${TEST_THREADS:-$(($(getconf _NPROCESSORS_ONLN) * 2))}" "$@"
}
if [ "${1:-}" = --units ]; then
  CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$PWD/scripts/wine/run-test.sh \
    run_tests --profile wine-units --target "$target" "${crates[@]/#/--package=plimsoll-}"
  exit
fi

# The tests start the real client and the MCP Inspector, and compare the usage with ccusage.
scripts/client.sh >/dev/null
scripts/judges.sh >/dev/null
scripts/inspector.sh >/dev/null
cargo build --quiet --locked --target "$target" --package plimsoll --no-default-features --features optional-programs --bins
cargo build --quiet --locked --package plimsoll-testkit --bin replayed-client
built=$build_folder/$target/debug programs=$wine_folder/programs
rm -rf "$programs" "$wine_folder/started"
mkdir -p "$programs"
touch "$wine_folder/started"
ln -f "$built/plimsoll.exe" "$built/plimsoll-mcp.exe" "$drive/plimsoll/"
while read -r hook; do ln -f "$built/plimsoll-hook.exe" "$drive/plimsoll/$hook.exe"; done <crates/hooks/programs.txt
# Also by the paths that `plimsoll init` writes into the settings: for Linux they are names, which the client finds on its PATH.
while read -r program; do
  ln -s "$PWD/scripts/wine/start.sh" "$programs/$program"
  ln -s "$program" "$programs/C:\\plimsoll\\$program.exe"
done < <(printf "%s\n" plimsoll plimsoll-mcp && cat crates/hooks/programs.txt)
export PLIMSOLL_BIN_DIR=$programs PLIMSOLL_REPLAYED_CLIENT=$build_folder/debug/replayed-client TMPDIR=$drive/t
tests=(--package plimsoll-tests --test hooks --test memory --test commands)
status=0
run_tests --profile wine "${tests[@]}" || status=$?
# A test of this list that has started nothing under wine says nothing about Windows.
untried=$(comm -23 <(cargo nextest list --locked --cargo-quiet --profile wine --message-format oneline "${tests[@]}" | awk '{ print $NF }' | sort) \
  <(cut -d ' ' -f 1 "$wine_folder/started" | sort -u))
[ -z "$untried" ] || fail "these tests have started no program for Windows: $(paste -s -d' ' <<<"$untried")"
exit "$status"
