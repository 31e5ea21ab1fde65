#!/usr/bin/env bash
# Every check of the project. On a fresh machine with Rust and npm it installs what else it needs, or says
# exactly what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
fetch() { # what is missing, Debian package
  echo "$1 is missing: installing the Debian package $2" >&2
  { as_root apt-get update -qq && as_root apt-get install -qq -y "$2"; } >&2 || { echo "missing: $1 (package $2)" >&2; exit 1; }
}
need() { # program, Debian package
  command -v "$1" >/dev/null || fetch "$@"
}
need_library() { # library, Debian package; for one that it does not find, the compiler says the bare name
  [ -e "$(cc -print-file-name="$1.so")" ] || fetch "$@"
}
step() { printf '\n== %s\n' "$1"; }

need git git
need valgrind valgrind
need strace strace
need dash dash
need jq jq
need cc gcc
# The completions are tried in the shells they are for, the pages by the reader they are for.
need zsh zsh
need fish fish
need man man-db
need_library libjq libjq-dev
need_library libonig libonig-dev
JQ_LIB_DIR=$(dirname "$(realpath "$(cc -print-file-name=libjq.so)")")
export JQ_LIB_DIR
for part in clippy rustfmt; do
  cargo "${part/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$part"
done

step "format"
cargo fmt --all --check
step "lints"
cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
cargo clippy --quiet --workspace --all-targets --locked --features plimsoll/libjq -- -D warnings
step "judges"
scripts/judges.sh
step "client"
scripts/client.sh
step "MCP Inspector"
scripts/inspector.sh
step "programs, as users get them"
PLIMSOLL_BIN_DIR=$(scripts/build.sh)
export PLIMSOLL_BIN_DIR
echo "$PLIMSOLL_BIN_DIR"
step "tests"
# Each test with the client starts several processes: two at a time are enough for two cores.
# With libjq the table of `plimsoll query` is held against both engines; the programs for users know nothing of it.
# All failures are told, not only those of the first program that has some.
cargo test --quiet --workspace --locked --no-fail-fast --features plimsoll/libjq -- --test-threads="${TEST_THREADS:-$(nproc)}"
step "all checks passed"
