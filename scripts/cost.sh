#!/bin/bash
# What our programs cost that is the same on every computer: instructions by callgrind against their budgets, and sizes
# against their limits. Exit 1 when a limit is exceeded, 75 when valgrind cannot be had. Time is in scripts/bench.sh.
#
# Usage: scripts/cost.sh    PLIMSOLL_BIN_DIR names programs that are already built.
set -euo pipefail
cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
STAGE=$TARGET/cost

if ! command -v valgrind >/dev/null; then
  (apt-get install -y valgrind || sudo -n apt-get install -y valgrind) >/dev/null 2>&1 || true
fi
if ! command -v valgrind >/dev/null; then
  echo "cost.sh: valgrind is missing and cannot be installed here: nothing was measured" >&2
  exit 75
fi

BIN=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}
# shellcheck source=scripts/stage.sh
. scripts/stage.sh

instructions() { # program, payload, further variables
  # The first variable that valgrind adds would otherwise be the only difference between two computers.
  env -i "${ENVIRONMENT[@]}" "${@:3}" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$BIN/$1" <"$STAGE/$2" 2>&1 >/dev/null | awk '/Collected/ { print $NF }'
}

# valgrind does not know openat2: here each path in the project is walked part by part, some 20,000 instructions more
# than a kernel of 2020 or later takes.
FAILED=0
row() { # case, count, budget (- for none), what is held until the budget is met
  local verdict=met limit="${4:-$3}"
  if [ "$3" = - ]; then
    verdict=""
  elif [ "$2" -gt "$limit" ]; then
    verdict="**OVER** $limit" FAILED=1
  elif [ "$2" -gt "$3" ]; then
    verdict="**not met**, held at $limit"
  fi
  printf '| %-50s | %10s | %10s | %s |\n' "$1" "$2" "$3" "$verdict"
}
heading() { # the columns
  printf '| %-50s | %10s | %10s | %s |\n' "$@"
  printf '| %s | ---: | ---: | --- |\n' ---
}
heading case instructions budget ""

plain plimsoll-session-start start.json "$RUN"
settled plimsoll-post-tool quiet.json "$RUN"
row "monitor in a run, nothing to change" "$(instructions plimsoll-post-tool quiet.json "$RUN")" 75000 185000
settled plimsoll-post-tool quiet.json "$RUN"
row "monitor in a run, record rewritten" "$(instructions plimsoll-post-tool busier.json "$RUN")" 150000 250000
settled plimsoll-post-tool quiet.json "$RUN"
row "monitor in a run, one new turn for the turn log" "$(instructions plimsoll-post-tool turn.json "$RUN")" 700000 880000
settled plimsoll-post-tool far.json "$RUN"
row "monitor in a run, last usage 470 KB from the end" "$(instructions plimsoll-post-tool far.json "$RUN")" 500000 580000
settled plimsoll-post-tool large.json "$RUN"
row "monitor in a run, payload of 114 KB" "$(instructions plimsoll-post-tool large.json "$RUN")" 1600000
settled plimsoll-post-tool 1-mb.json "$RUN"
SMALL=$(instructions plimsoll-post-tool 1-mb.json "$RUN")
settled plimsoll-post-tool 500-mb.json "$RUN"
LARGE=$(instructions plimsoll-post-tool 500-mb.json "$RUN")
row "monitor in a run, transcript of 1 MB" "$SMALL" -
row "monitor in a run, transcript of 500 MB" "$LARGE" $((SMALL * 102 / 100))
plain plimsoll-session-start status-start.json
# The first call asks git, whose counts are then kept for a few seconds.
settled plimsoll-statusline status.json
row "status line, nothing new, git counted, a run shown" "$(instructions plimsoll-statusline status.json)" 90000 295000
plain plimsoll-post-tool quiet.json
row "monitor in an ordinary session, nothing to change" "$(instructions plimsoll-post-tool quiet.json)" 75000 185000
plain plimsoll-post-tool quiet.json
row "monitor in an ordinary session, record rewritten" "$(instructions plimsoll-post-tool busier.json)" 150000 250000

# The working memory comes last: with it there is more to look at everywhere.
printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","hook_event_name":"PreToolUse","tool_name":"mcp__plimsoll__update_registers","tool_input":{"R2_NEXT":"Look at src/report.rs","R7_STATUS":"tests pass"},"tool_use_id":"toolu_50"}\n' \
  "$SESSION" "$STAGE/quiet.jsonl" "$STAGE/project" >"$STAGE/write.json"
remember() { (cd "$STAGE/project" && env -i "${ENVIRONMENT[@]}" "$BIN/plimsoll" memory "$@") >/dev/null; }
row "memory after a batch, none there" "$(instructions plimsoll-memory quiet.json)" 60000
for register in goal plan next constraints open_questions status; do
  remember set "$register" "What stands in the register $register of a session at work, in a line or two."
done
for chunk in 1 2 3 4 5 6 7; do remember alloc "chunk-$chunk" "$(head -c 1100 "$STAGE/quiet.jsonl")"; done
settled plimsoll-memory quiet.json
row "memory after a batch, 8 KB of it, nothing new" "$(instructions plimsoll-memory quiet.json)" 800000 980000
row "frame before a write to the memory" "$(instructions plimsoll-frame write.json)" 350000

# About a tenth above what each program is today: a library that slips in is seen.
echo
heading program bytes limit ""
while read -r program limit; do
  [ -x "$BIN/$program" ] || { echo "cost.sh: there is no $BIN/$program" >&2; exit 1; }
  row "$program" "$(stat -c %s "$BIN/$program")" "$limit"
done <<'LIMITS'
plimsoll-frame 2450000
plimsoll-memory 2400000
plimsoll-post-tool 3350000
plimsoll-pre-compact 2950000
plimsoll-session-end 3400000
plimsoll-session-start 2900000
plimsoll-statusline 2300000
plimsoll-stop-gate 3500000
plimsoll 14000000
plimsoll-mcp 3600000
LIMITS
exit "$FAILED"
