#!/usr/bin/env bash
# Runs the whole test suite again and again, to find the tests that fail only now and then. It may be stopped at any
# time (Ctrl-C) and started again: a later start continues the count.
#
# Usage: scripts/soak.sh [ROUNDS]    until this commit has so many rounds, default 20
#
# Below target/soak/:
#   ledger.tsv    one line per round: date, commit, seconds, tests run, tests failed, their names
#   failures/     the output of each failed test, by commit and round
#   round.log     what the suite printed in the last round; `tail -f` it to watch
#
# Uncommitted changes of tracked files make it another commit (`0123456789ab+01234567`).
# SOAK_COMMAND is run by bash in place of the suite; it writes a JUnit report to the file named by SOAK_JUNIT.
# Exit 1 when a round of this commit had a failure, 3 when a round could not be counted, 130 when interrupted.
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "soak.sh is for Linux: it runs the whole suite, and holds its round by flock" >&2; exit 1; }
cd "$(dirname "$0")/.."

# The one line that starts the suite, and where nextest leaves its report (its store ignores CARGO_TARGET_DIR).
suite() { scripts/test.sh --tests; }
SOAK_JUNIT=${SOAK_JUNIT:-$PWD/target/nextest/${NEXTEST_PROFILE:-default}/junit.xml}
export SOAK_JUNIT
# A test that fails and then passes is what is looked for here.
export NEXTEST_RETRIES=0

[ $# -le 1 ] && [[ ${1:-20} =~ ^[1-9][0-9]*$ ]] || { echo "Usage: scripts/soak.sh [ROUNDS]" >&2; exit 2; }
WANTED=${1:-20}
for program in git python3 flock; do
  command -v "$program" >/dev/null || { echo "soak.sh: missing: $program" >&2; exit 1; }
done
FOLDER=${CARGO_TARGET_DIR:-$PWD/target}/soak
LEDGER=$FOLDER/ledger.tsv
mkdir -p "$FOLDER/failures"
touch "$LEDGER"
say() { echo "soak.sh: $*" >&2; }

# The suite's shell inherits the lock: when only this script was killed, the suite at work still holds it.
exec 9>>"$FOLDER/lock"
flock -n 9 || { say "a round is still running ($(cat "$FOLDER/running" 2>/dev/null || echo just begun)): wait for it, or end it"; exit 1; }
if [ -e "$FOLDER/running" ]; then
  say "the last round ($(cat "$FOLDER/running")) was interrupted and is not counted"
  rm "$FOLDER/running"
fi

commit() {
  local id
  id=$(git rev-parse --short=12 HEAD)
  git diff --quiet HEAD || id+=+$(git diff --no-ext-diff HEAD | git hash-object --stdin | cut -c1-8)
  echo "$id"
}
rounds() { awk -F '\t' -v commit="$1" '$2 == commit' "$LEDGER" | wc -l; }

# Prints how many tests ran, how many failed and their names; writes what each of these printed into a folder.
read_report() { # JUnit file, folder, the suite's exit status, its log
  python3 - "$@" <<'PYTHON'
import os, re, sys
import xml.etree.ElementTree as xml

report, folder, status, log = sys.argv[1:]
run, failed = 0, []

def keep(name, text):
    failed.append(name)
    os.makedirs(folder, exist_ok=True)
    file = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[-150:]
    with open(os.path.join(folder, f"{file}.txt"), "w", encoding="utf-8") as out:
        out.write(f"{name}\n\n{text}\n")

for suite in xml.parse(report).getroot().iter("testsuite"):
    for case in suite.iter("testcase"):
        if case.find("skipped") is not None:
            continue
        run += 1
        # A test that passed at a second try has failed, too.
        if any(case.find(kind) is not None for kind in ("failure", "error", "flakyFailure", "flakyError")):
            words = [element.get("message") or "" for element in case] + [text.strip() for text in case.itertext()]
            keep(f"{suite.get('name', '?')} {case.get('name', '?')}", "\n\n".join(word for word in words if word))
if status != "0" and not failed:
    with open(log, encoding="utf-8", errors="replace") as lines:
        keep(f"(no test failed but the suite ended with {status})", "".join(lines.readlines()[-200:]))
print(run, len(failed), ",".join(failed) or "-", sep="\t")
PYTHON
}

table() {
  awk -F '\t' -v present="$1" -v wanted="$WANTED" '
    {
      if (!($2 in rounds)) order[++commits] = $2
      rounds[$2]++; bad[$2] += $5 > 0; last[$2] = $1
      if ($2 != present) next
      seconds += $3; tests = $4
      if ($5 > 0) for (i = split($6, names, ","); i > 0; i--) { if (!(names[i] in failures)) name[++count] = names[i]; failures[names[i]]++ }
    }
    END {
      printf "\n%s: %d of %d rounds, %d with failures", present, rounds[present], wanted, bad[present]
      if (rounds[present]) printf "; %d tests, %d s a round", tests, seconds / rounds[present]
      print ""
      for (most = rounds[present]; most > 0; most--)
        for (i = 1; i <= count; i++) if (failures[name[i]] == most) printf "  failed %d of %d: %s\n", most, rounds[present], name[i]
      others = 0
      for (i = 1; i <= commits; i++) if (order[i] != present) {
        if (!others++) print "other commits:"
        printf "  %s: %d round%s, %d with failures, the last at %s\n", order[i], rounds[order[i]], rounds[order[i]] == 1 ? "" : "s", bad[order[i]], last[order[i]]
      }
    }' "$LEDGER"
}

SUITE=""
interrupted() {
  trap '' INT TERM HUP
  if [ -n "$SUITE" ]; then
    say "interrupted: ending the round, which is not counted"
    # nextest ends its tests at the first signal, and itself when they have ended.
    kill -INT -- "-$SUITE" 2>/dev/null || true
    for _ in $(seq 150); do kill -0 -- "-$SUITE" 2>/dev/null || break; sleep 0.1; done
    kill -KILL -- "-$SUITE" 2>/dev/null || true
    wait "$SUITE" 2>/dev/null || true
  fi
  table "$(commit)"
  exit 130
}
trap interrupted INT TERM HUP

PRESENT=$(commit)
while [ "$(rounds "$PRESENT")" -lt "$WANTED" ]; do
  date=$(date -u +%Y-%m-%dT%H:%M:%SZ) begun=$SECONDS number=$(($(rounds "$PRESENT") + 1)) status=0
  rm -f "$SOAK_JUNIT"
  echo "$date, $PRESENT" >"$FOLDER/running"
  # Its own process group: Ctrl-C reaches this script alone, which then ends the whole group.
  set -m
  (if [ -n "${SOAK_COMMAND:-}" ]; then bash -c "$SOAK_COMMAND" 9>&-; else suite 9>&-; fi) >"$FOLDER/round.log" 2>&1 </dev/null &
  SUITE=$!
  set +m
  wait "$SUITE" || status=$?
  SUITE=""
  rm "$FOLDER/running"
  if [ "$(commit)" != "$PRESENT" ]; then
    say "the sources changed during the round, which is not counted: start again when they rest"
    exit 3
  fi
  if [ ! -s "$SOAK_JUNIT" ]; then
    tail -n 20 "$FOLDER/round.log" >&2
    say "the suite ended with $status and left no report in $SOAK_JUNIT: the round is not counted ($FOLDER/round.log)"
    exit 3
  fi
  failures=$FOLDER/failures/$PRESENT/$date-$number
  seconds=$((SECONDS - begun))
  result=$(read_report "$SOAK_JUNIT" "$failures" "$status" "$FOLDER/round.log") ||
    { say "the report in $SOAK_JUNIT cannot be read: the round is not counted"; exit 3; }
  printf '%s\t%s\t%s\t%s\n' "$date" "$PRESENT" "$seconds" "$result" >>"$LEDGER"
  IFS=$'\t' read -r run failed names <<<"$result"
  printf 'round %d of %d: %d s, %d tests, %d failed' "$number" "$WANTED" "$seconds" "$run" "$failed"
  if [ "$failed" -gt 0 ]; then printf ': %s (%s)' "$names" "$failures"; fi
  echo
done
table "$PRESENT"
awk -F '\t' -v commit="$PRESENT" '$2 == commit && $5 > 0 { found = 1 } END { exit found }' "$LEDGER"
