#!/bin/bash
# Read by scripts/bench.sh: the page, with what is measured where it stands.

ABSENT=()

machine() {
  local cpu memory
  cpu=$(awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo)
  memory=$(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1024 / 1024 }' /proc/meminfo)
  echo "| | |"
  echo "|---|---|"
  echo "| date | $(date -u +%Y-%m-%d) |"
  echo "| machine | ${cpu:-$(uname -m)}, $(nproc) cores$(grep -qm1 '^flags.* hypervisor' /proc/cpuinfo && echo ', virtual'), $memory |"
  echo "| system | Linux $(uname -r), $(df --output=fstype "$STAGE" | tail -1) |"
  echo "| load average at the start | $(cut -d' ' -f1 /proc/loadavg) |"
}

# Counted by a test and not by this script: it stays as it is on the page.
growth_over_years() { sed -n '/^## Growth$/,/^## Many at once$/ { /^## Many/! p }' docs/performance.md; }

page() {
  cat <<'TEXT'
# Performance

`scripts/bench.sh` prints these figures for your machine; `--page` writes this page. Times differ between machines, ratios
differ less, and instruction counts do not.

## The machine

TEXT
  machine
  cat <<TEXT

The **floor** is a static program that does nothing. Programs start in turn, in $ROUNDS rounds (slow cases: $FEW). The median decides
whether a budget is met. Comparisons with other programs use the fastest tenth. So compare figures only within a table.

## What a hook costs

The **monitor** is the hook that runs after each batch (the tool calls of one response).

TEXT
  cases
  cat <<TEXT

The largest peak memory is $(mb "$WORST_PEAK") (budget: 4 MB, $(held "$WORST_PEAK" 4096)). Of these cases, only the checkpoints sync files.
A hook may also [wait for the transcript](#waiting-for-the-transcript).

### On a Mac

The programs were never started on a Mac. \`scripts/macos-answers.sh\` runs them on Linux and imitates what a Mac
reports. The hooks of a batch then make 83 more system calls, or 214 with a new turn and memory. As on Linux, they sync no file.

## Instructions and sizes

Counted by callgrind (\`scripts/cost.sh\`). A processor with SHA instructions executes fewer.

TEXT
  counts
  echo
  growth_over_years
  cat <<'TEXT'
## Many at once

When many hooks reach a threshold together, one must announce it:

TEXT
  contention
  cat <<'TEXT'

## The same logic in other languages

[These hooks](../scripts/bench/) do what the monitor does, without turn log, handoff and error handling.

TEXT
  hooks
  cat <<'TEXT'

## A longer transcript

The same session at several sizes:

TEXT
  growth
  cat <<TEXT

Budget for the monitor: at most 1.10 times as long, $(held "$OUR_GROWTH" 1.10).

## The turn log

With a transcript of $CAPTURE_SIZE MB that no hook has read yet:
$CAPTURED

## Waiting for the transcript

Near a threshold, or while usage is unknown, the monitor waits until Claude Code has written the response, at most 250 ms
(\`freshness_wait_ms\`).

TEXT
  sessions waits
  cat <<TEXT

## A whole session

TEXT
  sessions whole_session
  if [ ${#ABSENT[@]} -gt 0 ]; then
    printf '\n## Left out here\n\n'
    printf -- '- %s\n' "${ABSENT[@]}"
  fi
}

counts() {
  local status=0
  [ -z "$QUICK" ] || { echo "Not counted in a quick run."; return; }
  note "instructions"
  PLIMSOLL_BIN_DIR=$BIN scripts/cost.sh | main_counts || status=${PIPESTATUS[0]}
  [ "$status" != 75 ] || { ABSENT+=("instructions (scripts/cost.sh cannot count here)"); echo "Not counted: scripts/cost.sh cannot count here."; }
}

# The main rows of scripts/cost.sh, and the sizes in one sentence.
main_counts() {
  awk -F ' *[|] *' '
    $2 == "case" { print "| instructions | count | budget |\n|---|---:|---|" }
    $2 == "program" { is_size = 1; next }
    $2 == "---" { next }
    is_size && NF > 3 { sizes = sizes (sizes == "" ? "" : ",\n") sprintf("`%s` %.1f MB", $2, $3 / 1e6); over += $3 > $4; next }
    $2 ~ /^(monitor in a run, (nothing|one new)|status line|typical batch)/ {
      sub(/,? held at.*/, "", $5)
      printf "| %s | %d | %d, %s |\n", $2, $3, $4, $5
    }
    END { if (sizes != "") printf "\nSizes: %s (%s).\n", sizes, over ? "some above their limits" : "all within their limits" }'
}

# Sessions of the real client with a scripted model: an example of the tests.
sessions() { # its name
  [ -z "$QUICK" ] || { echo "Not measured in a quick run."; return; }
  note "the real client: $1"
  PLIMSOLL_BIN_DIR=$BIN cargo run --quiet --locked -p plimsoll-tests --example "$1" ||
    { ABSENT+=("$1 (the client cannot be had)"); echo "Not measured here: the client is not to be had."; }
}
