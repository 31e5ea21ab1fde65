#!/usr/bin/env bash
# Every check of the project. On a fresh machine with Rust and npm it installs what else it needs, or says
# exactly what is missing. The quick tests need a C linker, git, jq and npm, and no other package of the system.
#
# Usage: scripts/test.sh            everything
#        scripts/test.sh --quick    while you work: format, lints, units and tables, the hooks, one whole run
#        scripts/test.sh --tests    the tests alone: no format, no lints, nothing of what is released
#        scripts/test.sh --long     what takes too long for every change: the tests of research/, the hooks and whole runs with what
#                                   macOS answers, and the programs for Windows under wine
#
# On macOS there is only --quick: the other tests need programs that only Linux has.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:---all}
case "$what" in
  --all | --quick | --tests | --long) ;;
  *) echo "Usage: scripts/test.sh [--quick | --tests | --long]" >&2; exit 2 ;;
esac

system=$(uname -s)
[ "$system" != Darwin ] || [ "$what" = --quick ] || { echo "test.sh: on macOS there is only --quick: ${what#--} needs strace, valgrind and bubblewrap" >&2; exit 1; }
missing=()
need() { # program, Debian package
  command -v "$1" >/dev/null || missing+=("$2")
}
need_library() { # library, Debian package; for one that it does not find, the compiler says the bare name
  command -v cc >/dev/null && [ -e "$(cc -print-file-name="$1.so")" ] || missing+=("$2")
}
need_file() { # pattern of a program that Debian has outside of the PATH, Debian package
  compgen -G "$1" >/dev/null || missing+=("$2")
}
# Each step prints how long it took.
begun=$SECONDS name=""
step() {
  [ -z "$name" ] || printf '   %s: %d s\n' "$name" $((SECONDS - begun))
  begun=$SECONDS name=$1
  printf '\n== %s\n' "$1"
}

quick_tools() {
  need cc gcc
  need git git
  need jq jq
  need npm npm
  [ ${#missing[@]} = 0 ] || scripts/debian.sh "${missing[@]}"
}
linux_tools() {
  need git git
  need valgrind valgrind
  need strace strace
  need dash dash
  need jq jq
  need cc gcc
  need python3 python3
  # A verify command of a test runs it in the sandbox.
  /usr/bin/python3 -c 'import pytest' 2>/dev/null || missing+=(python3-pytest)
  # The completions are tested in their shells, the manual pages with man.
  need zsh zsh
  need fish fish
  need man man-db
  # Claude Code's sandbox needs these.
  need bwrap bubblewrap
  need socat socat
  # The fleet's board is tested against these, which the tests start themselves.
  need_file '/usr/lib/postgresql/*/bin/postgres' postgresql
  need_file '/usr/sbin/pgbouncer' pgbouncer
  need openssl openssl
  # Machines of a fleet have networks of their own.
  need ip iproute2
  need_library libjq libjq-dev
  need_library libonig libonig-dev
  [ ${#missing[@]} = 0 ] || scripts/debian.sh "${missing[@]}"
  JQ_LIB_DIR=$(cd "$(dirname "$(cc -print-file-name=libjq.so)")" && pwd -P)
  export JQ_LIB_DIR
}
# What the tests' own scripts need: the agents that they play edit files by GNU's sed. No program of ours needs any of it.
mac_tools() {
  local name
  command -v cc >/dev/null || { echo "missing: cc. Install Apple's command line tools: xcode-select --install" >&2; exit 1; }
  need git git
  need jq jq
  need npm node
  need gsed gnu-sed
  need gtimeout coreutils
  [ ${#missing[@]} = 0 ] || { echo "missing: ${missing[*]}. Install them: brew install ${missing[*]}" >&2; exit 1; }
  for name in gnu-sed coreutils; do PATH=$(brew --prefix "$name")/libexec/gnubin:$PATH; done
}

step "tools"
if [ "$system" = Darwin ]; then mac_tools; elif [ "$what" = --quick ]; then quick_tools; else linux_tools; fi
for part in clippy rustfmt; do
  cargo "${part/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$part"
done
PATH=$(scripts/nextest.sh):$PATH
export PATH

# A snapshot that differs fails its test, and nothing is written beside it.
export INSTA_UPDATE=no

# Downloads run while the compiler works.
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
fetch_all() {
  # The last one is the oldest client that Plimsoll has to do with. The quick tests need only the first.
  local part parts
  parts=(client.sh judges.sh inspector.sh site.sh "client.sh 1.0.128")
  [ "$what" != --quick ] || parts=(client.sh)
  for part in "${parts[@]}"; do
    # shellcheck disable=SC2086  # a name and its argument
    scripts/$part >>"$fetched/log" 2>&1 || echo "$part" >>"$fetched/failed"
  done
}
fetch_all &
fetching=$!

# With libjq the table of `plimsoll query` is checked against both engines; the released programs do not contain it, and the quick
# tests do without it.
workspace=(--workspace --locked --features plimsoll/libjq)
[ "$what" != --quick ] || workspace=(--workspace --locked)
target=${CARGO_TARGET_DIR:-$PWD/target}
research=(--manifest-path research/Cargo.toml --target-dir "$target" --locked)
build="programs and tests, built"
if [ "$what" = --all ] || [ "$what" = --quick ]; then
  step "format"
  cargo fmt --all --check
  cargo fmt --manifest-path research/Cargo.toml --check
  if [ "$what" = --all ]; then
    step "licenses, duplicates and sources of the dependencies"
    scripts/deny.sh
  fi
  # Clippy is the compiler with more lints: it builds the programs and tests, too. `cargo clippy` beside `cargo build`
  # would read all of the code twice.
  export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
  build="lints; $build"
fi

step "$build"
# What is built once and thrown away need not be ready for the next change.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0
# Without libjq, as users get it, for its lints; then the same with it, of which only the command is built again.
[ "$what" != --all ] || cargo build --quiet --workspace --locked --all-targets
# All at once: apart, the programs would be built with fewer features of what they share with the tests, and that twice.
cargo build --quiet "${workspace[@]}" --all-targets
# Apart, so that nothing that a test builds takes their place while others start them.
built=$target/debug programs=$target/programs
mkdir -p "$programs"
replayed=$programs/replayed-client
for program in plimsoll plimsoll-fleet plimsoll-linear plimsoll-mcp plimsoll-otel replayed-client; do ln -f "$built/$program" "$programs/$program"; done
while read -r hook; do ln -f "$built/plimsoll-hook" "$programs/$hook"; done <crates/hooks/programs.txt
cargo nextest run "${workspace[@]}" --no-run --cargo-quiet
if [ -n "${RUSTC_WORKSPACE_WRAPPER:-}" ]; then
  step "lints of research/"
  cargo check --quiet "${research[@]}" --all-targets
  # It is compiled only where there is a nightly compiler.
  cargo update --quiet --workspace --locked --manifest-path fuzz/Cargo.toml
fi
if [ "$what" = --all ]; then
  step "the hook program for Windows, compiled"
  windows=x86_64-pc-windows-gnu
  [ -d "$(rustc --print target-libdir --target "$windows")" ] || rustup target add "$windows"
  # Without the lints: paths are larger there, so clippy finds 27 errors too large that are not on any other system.
  env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS cargo check --quiet --locked --target "$windows" -p plimsoll-hooks
fi

step "what is fetched: client, judges, MCP Inspector"
wait "$fetching"
if [ -e "$fetched/failed" ]; then
  cat "$fetched/log" >&2
  echo "missing: $(paste -s -d' ' "$fetched/failed") (the reason is above)" >&2
  exit 1
fi

# Most tests wait for a session, some for a clock: more than five on a core make the latter late.
run_tests() { # nextest's profile, cargo's arguments
  PLIMSOLL_BIN_DIR=$programs PLIMSOLL_REPLAYED_CLIENT=$replayed \
    cargo nextest run "${@:2}" --profile "$1" --test-threads "${TEST_THREADS:-$(($(getconf _NPROCESSORS_ONLN) * 5))}" \
    --cargo-quiet --show-progress none
}
if [ "$what" = --quick ]; then
  step "the quick tests"
  run_tests quick "${workspace[@]}"
elif [ "$what" = --long ]; then
  step "the tests of research/"
  # Each of them starts several clients.
  TEST_THREADS=${TEST_THREADS:-$(getconf _NPROCESSORS_ONLN)} run_tests default "${research[@]}" --no-fail-fast
  step "hooks and runs with what macOS answers"
  scripts/macos-answers.sh
  step "unit tests and hooks as Windows programs, under wine"
  scripts/wine.sh --units
  scripts/wine.sh
else
  step "examples in the documentation"
  cargo test --quiet "${workspace[@]}" --doc
  profile=default
  if [ "$what" = --all ]; then
    # Not beside the tests: some of them hold a program against the clock.
    step "programs, as users get them"
    programs=$(env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS scripts/build.sh) profile=released
  fi
  step "tests"
  # Those of --quick write to a disk.
  memory=$(scripts/memory-folder.sh)
  trap 'rm -rf "$fetched" ${memory:+"$memory"} || true' EXIT
  TMPDIR=${memory:-${TMPDIR:-/tmp}} run_tests "$profile" "${workspace[@]}"
  step "what queries the system, with what macOS answers"
  TMPDIR=${memory:-${TMPDIR:-/tmp}} scripts/macos-answers.sh --units
fi
step "all checks passed"
