#!/bin/bash
# Read by scripts/bench.sh: the page, with what is measured where it stands.

ABSENT=()

machine() {
  local cpu memory
  cpu=$(awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo)
  memory=$(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1024 / 1024 }' /proc/meminfo)
  echo "| | |"
  echo "| --- | --- |"
  echo "| date | $(date -u +%Y-%m-%d) |"
  echo "| processor | ${cpu:-$(uname -m)}, $(nproc) cores$(grep -qm1 '^flags.* hypervisor' /proc/cpuinfo && echo ', a virtual machine') |"
  echo "| memory | $memory |"
  echo "| system | Linux $(uname -r), $(df --output=fstype "$STAGE" | tail -1) |"
  echo "| compiler | $(rustc --version) |"
  echo "| other work | load average $(cut -d' ' -f1 /proc/loadavg) when the run began, on $(nproc) cores; idle is 0 |"
  echo "| beside it | $(beside) |"
}
beside() {
  { "$(python)" --version; node --version | sed 's/^/node /'; jq --version; bash -c 'echo "bash ${BASH_VERSION%%(*}"'; } 2>/dev/null | paste -sd, | sed 's/,/, /g'
}

page() {
  cat <<'TEXT'
# Performance

Made by `scripts/bench.sh --page` in one run; `scripts/bench.sh` prints it anew for your machine. What was promised stands
beside what was measured, also where it was not met. Milliseconds move from machine to machine and from day to day; ratios
within one run hold better, instruction counts hold. So the tests gate instructions, sizes, and the list of what the hooks
link (`tests/dependencies.txt`), and never a millisecond.

## The machine

TEXT
  machine
  cat <<TEXT

The rounds are paired: the programs of a row start in turn, round after round, so that what else the machine does falls on all
of them. $ROUNDS rounds for our own fast cases, $FEW where something is synced, restored or slow, fewer for what takes seconds. Timed from
the start of the process to its end, pages warm. The **floor** is a static program that does nothing. Verdicts go by the **median**.
The **quickest tenth** is what a program takes when nothing holds it up: on a machine that has other work it says more, and a
program that runs long is held up more than ours, so comparisons with others go by it. Peak memory is what the kernel says
of the process; the largest of all rounds.

## What a hook costs

TEXT
  cases
  cat <<TEXT

The largest peak memory of these is $(mb "$WORST_PEAK") (promised: 4 MB; $(held "$WORST_PEAK" 4096)). The turn that is written: $DURABLE. Before each round of the rows with
fsync everything else is on the disk, so that only the program's own syncs are timed. A checkpoint syncs the handoff, the state,
the state's copy and two folders, and starts git, once even outside a repository; what was promised was measured with one
synced write. The record is never synced: it can be had again. The wait for the client's transcript writer is [below](#the-wait-for-the-client), not in here.

## Instructions and sizes

Counted by callgrind: the same with these programs in every checkout, for every user, at every time (\`scripts/cost.sh\`, a gate of the tests).
Where a promise is not met the tests hold a limit that is 5 to 10 % above the figure of the day it was set.

TEXT
  counts
  cat <<'TEXT'

## Many at once

Hooks of one session start together and a level is reached: exactly one may announce it, and record and journal must be whole
after each round. That is checked in this run, and with kills in between by `tests/tests/hooks/contention.rs`.

TEXT
  contention
  cat <<'TEXT'

## The same logic in other languages

[Hooks of our own writing](../scripts/bench/) with the monitor's logic, as a good user would write them: the payload, the last usage
from the transcript's end, the percent, the levels, a small state under a lock, rewritten when it has changed. They are shorter than
ours because they leave out what nights taught: no turn log, no handoff, no wait for the writer, no foreign field that may be broken.
Before they are timed each must give our answer and our percent on six payloads. Times are those of the quickest tenth.

TEXT
  hooks
  cat <<'TEXT'

## A longer transcript

The same session at each size: calls and results of about 9 KB, a usage at the end. Peers at the versions named, each in a
home of its own that holds this one transcript; the last column is what they show, so that nobody is timed who gave up. Times are those of the quickest tenth.

TEXT
  growth
  cat <<TEXT

Promised: $LARGEST MB against 1 MB at most 1.10. The monitor: $OUR_GROWTH; $(held "$OUR_GROWTH" 1.10).

## The turn log

A transcript of $CAPTURE_SIZE MB that no hook has seen yet, read whole; scan and capture in turn.

| | speed | peak memory |
| --- | ---: | ---: |
$CAPTURED

That its memory does not grow with the session is in \`tests/tests/hooks/turn_log_size.rs\` (500 MB against 50 MB).

## The wait for the client

A hook that answers in a millisecond is usually faster than the client's own transcript writer. Near a level, and only there, the
monitor waits for the line that it is asked about, at most 250 ms (\`freshness_wait_ms\`).

TEXT
  waits
  if [ ${#ABSENT[@]} -gt 0 ]; then
    printf '\n## Left out here\n\n'
    printf -- '- %s\n' "${ABSENT[@]}"
  fi
}

counts() {
  local status=0
  [ -z "$QUICK" ] || { echo "Not counted in a quick run."; return; }
  note "instructions"
  PLIMSOLL_BIN_DIR=$BIN scripts/cost.sh || status=$?
  [ "$status" != 75 ] || { ABSENT+=("instructions (scripts/cost.sh cannot count here)"); echo "Not counted: scripts/cost.sh cannot count here."; }
}

# One session of the real client with a scripted model, rising through all levels (tests/examples/waits.rs).
waits() {
  [ -z "$QUICK" ] || { echo "Not measured in a quick run."; return; }
  note "the real client"
  PLIMSOLL_BIN_DIR=$BIN cargo run --quiet --locked -p plimsoll-tests --example waits ||
    { ABSENT+=("the wait for the client (the client cannot be had)"); echo "Not measured here: the client is not to be had."; }
}
