#!/bin/bash
# Times our programs against a program that does nothing, hooks of the same logic in Python, node and bash with jq,
# and status lines from npm: paired rounds in one run, medians, ratios, and what was promised beside them. Prints a
# page; milliseconds never fail it. What is not to be had here is named and left out. It takes some ten minutes.
#
# Usage: scripts/bench.sh [--quick] [--page]    PLIMSOLL_BIN_DIR names programs that are already built.
#   --quick    a few rounds, small files, nothing from npm, no client: does it work at all?
#   --page     write docs/performance.md as well
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "bench.sh is for Linux: it reads /proc, and its figures are compared with those of Linux" >&2; exit 1; }
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8
QUICK="" PAGE=""
for word; do
  case $word in
    --quick) QUICK=yes ;;
    --page) PAGE=docs/performance.md ;;
    *) echo "Usage: scripts/bench.sh [--quick] [--page]" >&2; exit 2 ;;
  esac
done
[ -z "$QUICK" ] || [ -z "$PAGE" ] || { echo "bench.sh: a quick run is not worth a page" >&2; exit 2; }

TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
STAGE=$TARGET/bench
PEERS=$TARGET/peers
BUILT=$(realpath "${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}") BIN=$STAGE/bin
if [ -n "$QUICK" ]; then
  ROUNDS=3 FEW=2 SIZES=(1 10) CROWDS=(1 8)
else
  ROUNDS=200 FEW=20 SIZES=(1 10 100 500) CROWDS=(1 8 32)
fi
LARGEST=${SIZES[-1]}

note() { echo "bench.sh: $*" >&2; }
die() { note "$@"; exit 1; }
for program in git jq rustc; do command -v "$program" >/dev/null || die "missing: $program"; done

# --- figures ------------------------------------------------------------------------------------------------

# Runs the stopwatch; MEDIAN, TENTH (the quickest tenth) and PEAK have a figure for each program.
race() { # as scripts/bench/stopwatch.rs
  local median tenth peak faults
  MEDIAN=() TENTH=() PEAK=()
  timeout 900 env -i "${ENVIRONMENT[@]}" "$STAGE/stopwatch" "$@" >"$STAGE/laps" || die "the stopwatch failed: $*"
  # shellcheck disable=SC2034  # scripts/cost.sh counts the faults
  while read -r median tenth peak faults; do MEDIAN+=("$median") TENTH+=("$tenth") PEAK+=("$peak"); done <"$STAGE/laps"
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { r = a / b; printf (r < 10 ? "%.2f" : r < 1000 ? "%.0f" : "%d"), r }'; }
ms() { awk -v us="$1" 'BEGIN { t = us / 1000; printf (t < 10 ? "%.2f ms" : t < 1000 ? "%.0f ms" : ""), t; if (t >= 1000) printf "%.1f s", t / 1000 }'; }
mb() { awk -v kb="$1" 'BEGIN { printf "%.1f MB", kb / 1024 }'; }
held() { awk -v is="$1" -v limit="$2" 'BEGIN { print (is <= limit ? "met" : "**not met**") }'; }

# --- the stage ----------------------------------------------------------------------------------------------

rm -rf "$STAGE"
mkdir -p "$BIN"
# Copied, as whoever installs them does: what a linker or strip has written lies in memory in another way, and starts slower.
find "$BUILT" -maxdepth 1 -name 'plimsoll*' -type f -perm -u+x -exec cp -a -t "$BIN" {} +
# shellcheck source=scripts/stage.sh
. scripts/stage.sh
# shellcheck source=scripts/stopwatch.sh
. scripts/stopwatch.sh
repository() { # folder: a repository with one commit and one new file
  git -C "$1" -c init.defaultBranch=main init -q
  git -C "$1" -c user.name=dev -c user.email=dev@example.invalid -c commit.gpgsign=false commit -q --allow-empty -m first
  echo "a change" >"$1/new.txt"
}
repository "$STAGE/project"
conversation 698000 >"$STAGE/warning.jsonl"
batch warning.jsonl "ok" >"$STAGE/warning.json"
RECORD=$STAGE/project/.claude/plimsoll/sessions/$SESSION.json
# The marker of each reply: the user's message is a line of plain words and the marker below it.
replies() { jq -r '[.systemMessage // "" | split("\n")[] | select(startswith("CCS_"))][0] // ""' "$1"; }

# shellcheck source=scripts/bench/cases.sh
. scripts/bench/cases.sh
# shellcheck source=scripts/bench/hooks.sh
. scripts/bench/hooks.sh
# shellcheck source=scripts/bench/growth.sh
. scripts/bench/growth.sh
# shellcheck source=scripts/bench/page.sh
. scripts/bench/page.sh

trap 'rm -rf "$STAGE"/growth*' EXIT
if [ -n "$PAGE" ]; then
  page >"$STAGE/page.md"
  cp "$STAGE/page.md" "$PAGE"
  cat "$PAGE"
else
  page
fi
