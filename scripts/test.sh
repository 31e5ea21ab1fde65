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
# Claude Code's sandbox stands on these.
need bwrap bubblewrap
need socat socat
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
# With libjq the table of `plimsoll query` is held against both engines; the programs for users know nothing of it.
workspace=(--workspace --locked --features plimsoll/libjq)
TEST_LOGS=$(mktemp -d)
export TEST_LOGS
trap 'rm -rf "$TEST_LOGS"' EXIT
# Most tests wait for a client: programs run side by side. Each one's output is kept apart, and told where it failed.
run_program() { # folder, tab, executable
  local folder program name log begun=$SECONDS
  IFS=$'\t' read -r folder program <<<"$1"
  name=$(basename "${program%-*}")
  log=$TEST_LOGS/$(basename "$program")
  if (cd "$folder" && CARGO_MANIFEST_DIR=$folder "$program" --quiet --test-threads="${TEST_THREADS:-2}") >"$log" 2>&1; then
    printf '  %4d s  %s\n' $((SECONDS - begun)) "$name"
  else
    printf '  %4d s  %s FAILED\n' $((SECONDS - begun)) "$name"
    echo "$log" >>"$TEST_LOGS/failed"
  fi
}
export -f run_program
cargo test --quiet "${workspace[@]}" --no-run --message-format=json-render-diagnostics |
  jq -r 'select(.profile.test and .executable) | [(.manifest_path | rtrimstr("/Cargo.toml")), .executable] | @tsv' |
  sort -r >"$TEST_LOGS/programs"
# shellcheck disable=SC2016  # the shell that runs a program reads its word
xargs -P "${TEST_PROGRAMS:-$(nproc)}" -d '\n' -n 1 bash -c 'run_program "$1"' _ <"$TEST_LOGS/programs"
cargo test --quiet "${workspace[@]}" --doc
if [ -e "$TEST_LOGS/failed" ]; then
  while read -r log; do
    printf '\n== failed: %s\n' "$(basename "${log%-*}")"
    cat "$log"
  done <"$TEST_LOGS/failed"
  exit 1
fi
step "all checks passed"
