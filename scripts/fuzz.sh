#!/usr/bin/env bash
# Runs the fuzz targets of tests/fuzzing under libFuzzer, one after another, and prints the result of each.
#   scripts/fuzz.sh [SECONDS for each target, default 10] [TARGET …]
#   scripts/fuzz.sh --runs EXECUTIONS [TARGET …]
# libFuzzer saves an input that breaks a target in fuzz/artifacts/TARGET/: put a small one into tests/fuzzing/found/TARGET/, where
# `cargo test -p plimsoll-fuzzing` tests it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=-max_total_time
if [ "${1:-}" = --runs ]; then
  limit=-runs
  shift
  [ $# -gt 0 ] || set -- missing
fi
amount=${1:-10}
shift || true
[[ $amount =~ ^[0-9]+$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS | --runs EXECUTIONS] [TARGET …]" >&2; exit 2; }

cargo +nightly --version >/dev/null 2>&1 || {
  echo "missing: a nightly compiler (rustup toolchain install nightly --profile minimal)" >&2
  exit 1
}
built=$PWD/fuzz/target
tools=$built/tools
PATH=$tools/bin:$PATH
command -v cargo-fuzz >/dev/null || {
  echo "cargo-fuzz is missing: installing it into fuzz/target/tools" >&2
  cargo install --quiet --locked --root "$tools" cargo-fuzz
}

all=$(cargo run --quiet --locked -p plimsoll-fuzzing --example write_seeds fuzz/seeds)
# shellcheck disable=SC2086  # a name on each line
[ $# -gt 0 ] || set -- $all
# Safe Rust alone is run here: an address sanitizer would only cost time. Sums that overflow are faults.
CARGO_INCREMENTAL=0 cargo +nightly fuzz build --fuzz-dir fuzz --sanitizer none --target-dir "$built" 2>&1 |
  { grep -E '^(error|warning: unused)' -A5 || true; }
programs=$built/$(rustc +nightly -vV | sed -n 's/^host: //p')/release

broken=0
printf '%-20s %12s %8s %8s  %s\n' target executions per_sec cover result
for target in "$@"; do
  mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
  log=fuzz/artifacts/$target.log
  result=ok
  dictionary=()
  [ ! -s "fuzz/seeds/$target.dict" ] || dictionary=("-dict=fuzz/seeds/$target.dict")
  # Long inputs only cost time here; the seeded ones of `cargo test` are longer.
  "$programs/$target" "fuzz/corpus/$target" "fuzz/seeds/$target" ${dictionary[@]+"${dictionary[@]}"} \
    -artifact_prefix="fuzz/artifacts/$target/" "$limit=$amount" -max_len=4096 -timeout=20 \
    -print_final_stats=1 >"$log" 2>&1 || { result="BROKEN: $log"; broken=1; }
  count=$(sed -n 's/^stat::number_of_executed_units: //p' "$log" | tail -1)
  pace=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log" | tail -1)
  cover=$(grep -oE ' cov: [0-9]+' "$log" | tail -1 | grep -oE '[0-9]+' || true)
  printf '%-20s %12s %8s %8s  %s\n' "$target" "${count:-?}" "${pace:-?}" "${cover:-?}" "$result"
done
exit "$broken"
