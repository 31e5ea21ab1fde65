#!/bin/bash
# What our programs cost, in figures that depend on the programs alone: instructions counted by callgrind, system calls and page
# faults against their budgets, and sizes against their limits. Exit 1 when a limit is exceeded, 75 when nothing can be measured here. Time is
# in scripts/bench.sh.
#
# Usage: scripts/cost.sh [--first | --steps]    PLIMSOLL_BIN_DIR names programs that are already built.
#   --first    only count the first row, and print the bare number: a quick check that two checkouts count the same
#   --steps    also count what this processor executes, step by step: fewer instructions than callgrind counts, which knows
#              neither those for SHA-256 nor all of the kernel's calls; half a minute more, and another number on another processor
set -euo pipefail
nothing() { echo "cost.sh: $*: nothing was measured" >&2; exit 75; }
[ "$(uname -s)" = Linux ] || nothing "this is for Linux, where valgrind counts"
FIRST="" STEPS=""
case "$*" in
  "") ;;
  --first) FIRST=yes ;;
  --steps) STEPS=yes ;;
  *) echo "Usage: scripts/cost.sh [--first | --steps]" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
need() {
  command -v "$1" >/dev/null || scripts/debian.sh "$1" || true
  command -v "$1" >/dev/null || nothing "$1 is missing and cannot be installed here"
}

[ "$(uname -m)" = x86_64 ] || nothing "the limits are for x86_64, and this is $(uname -m)"
# valgrind passes this on to the programs, whose searches for bytes use it where it is there.
grep -qw avx2 /proc/cpuinfo || nothing "the limits are for processors with AVX2"
need valgrind
need strace
PROGRAMS=$(realpath "${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}")

# --- the stage ----------------------------------------------------------------------------------------------

# A gate may depend on nothing but the programs. A character more in a path costs a hook some 200 instructions, so the
# stage and the programs in it have a path of the same length everywhere, whatever the checkout, HOME and TMPDIR are.
export LC_ALL=C
umask 022
# Numbers, not random letters: these are in what is searched for secrets, and some letters take longer.
for number in {10..99}; do
  STAGE=/tmp/plimsoll-cost-$number
  mkdir -m 700 "$STAGE" 2>/dev/null && break
  [ "$number" != 99 ] || { echo "cost.sh: cannot make $STAGE, or any of the 89 before it" >&2; exit 1; }
done
trap 'rm -rf "$STAGE"' EXIT
trap 'exit 130' INT TERM HUP
[ "$(realpath "$STAGE")" = "$STAGE" ] || nothing "/tmp is a link, and what lies in it has a longer path"
# shellcheck source=scripts/stage.sh
. scripts/stage.sh
BIN=$STAGE/bin
mkdir "$BIN"
# In pieces of a page: where a system keeps a file in larger ones, because it was written so, a page fault maps more of it.
for program in plimsoll{,-frame,-memory,-post-tool,-session-start,-statusline}; do
  dd if="$PROGRAMS/$program" of="$BIN/$program" bs=4k status=none && chmod 755 "$BIN/$program" || exit 1
done
# No file is untracked, however git is configured on this computer.
mkdir "$STAGE/project/.git/info"
echo '*' >"$STAGE/project/.git/info/exclude"

# --- counting -----------------------------------------------------------------------------------------------

# What the kernel answers is pinned, too. Random keys decide how a hash table probes (some 200 instructions), the process
# id and the milliseconds of the time are written with leading zeros or without (some 70), and git is asked again when
# seconds have passed. The time is a moment after the transcript's last line: 2026-01-07 11:46:00 UTC. valgrind does not know
# openat2 in all its versions: here each path in the project is walked part by part, some 20,000 instructions more than a
# kernel of 2020 or later takes.
PINNED=("$(command -v strace)" -f --seccomp-bpf -qqq -o /dev/null -e trace=openat2,getrandom,getpid,clock_gettime
  -e inject=openat2:error=ENOSYS -e inject=getpid:retval=4242
  -e inject=getrandom:retval=16:poke_exit=@arg1=000102030405060708090a0b0c0d0e0f
  -e inject=clock_gettime:poke_exit=@arg2=78475e69000000000000000000000000)
"${PINNED[@]}" true 2>/dev/null || nothing "strace cannot trace here"
# Debian's valgrind is a script that adds variables, each of which costs some 400 instructions. valgrind itself adds one,
# with the path of its own folder.
VALGRIND=$(command -v valgrind.bin || command -v valgrind)
ln -s "$(env -i "$VALGRIND" --tool=none /usr/bin/env 2>/dev/null | sed -n 's|^LD_PRELOAD=\(.*\)/vgpreload_core.*|\1|p')" "$STAGE/valgrind"

start() { # valgrind's tool, standard input, program and its arguments; VARIABLES has further variables
  # valgrind reads a .valgrindrc of the home and of the working directory: there is none.
  (
    cd "$STAGE/project"
    # Where the time stands still, a hook that waits would wait for ever.
    env -i "${ENVIRONMENT[@]}" VALGRIND_LIB="$STAGE/valgrind" ${VARIABLES[@]+"${VARIABLES[@]}"} \
      timeout --foreground 120 "${PINNED[@]}" "$VALGRIND" --tool="$1" --log-file="$STAGE/valgrind.log" \
      ${CALLGRIND[@]+"${CALLGRIND[@]}"} "$BIN/$3" "${@:4}" <"$2"
  )
}
start none /dev/null plimsoll-post-tool version >/dev/null 2>"$STAGE/complaint" ||
  nothing "programs in /tmp cannot be started: $(head -n 1 "$STAGE/complaint")"
instructions() { # program (and the arguments of its entry), payload, further variables
  local VARIABLES=("${@:3}") CALLGRIND=(--callgrind-out-file=/dev/null) words
  read -r -a words <<<"$1"
  start callgrind "$STAGE/$2" "${words[@]}" >/dev/null
  awk '/Collected/ { print $NF }' "$STAGE/valgrind.log"
}
# Instead of the stage's own: what is left behind for the next call must not depend on the time either.
plain() { # the same
  local VARIABLES=("${@:3}") words
  read -r -a words <<<"$1"
  start none "$STAGE/$2" "${words[@]}" >/dev/null
}

calls() { # the same: every system call, also the program's start
  local words
  read -r -a words <<<"$1"
  (cd "$STAGE/project" && env -i "${ENVIRONMENT[@]}" "${@:3}" strace -f -qq -o "$STAGE/calls.log" "$BIN/${words[0]}" "${words[@]:1}" \
    <"$STAGE/$2" >/dev/null)
  grep -vc '+++' "$STAGE/calls.log"
}
faults() { # program, payload: the fewest page faults of some starts, all in the program's file are of pages in memory
  (cd "$STAGE/project" && env -i "${ENVIRONMENT[@]}" "$STAGE/stopwatch" 20 -i "$STAGE/$2" "$BIN/$1" | cut -d ' ' -f 4)
}

FAILED=0
row() { # case, count, budget (- for none), the limit if it is not the budget: 5 to 10 % above the count of today
  local verdict=met limit="${4:-$3}"
  [[ $2 =~ ^[0-9]+$ ]] || { cat "$STAGE/valgrind.log" >&2; echo "cost.sh: $1: nothing was counted" >&2; exit 1; }
  if [ "$3" = - ]; then
    verdict=""
  elif [ "$2" -gt "$limit" ]; then
    verdict="**OVER** $limit" FAILED=1
  elif [ "$2" -gt "$3" ]; then
    verdict="**not met**, held at $limit"
  fi
  printf '| %-50s | %10s | %10s | %s |\n' "$1" "$2" "$3" "$verdict"
}
executed() { # program (and the arguments of its entry), payload, budget, limit, further variables: its row, if steps are counted
  local words steps
  [ -n "$STEPS" ] || return 0
  read -r -a words <<<"$1"
  # On one processor, which saves most of the time.
  steps=$(cd "$STAGE/project" && env -i "${ENVIRONMENT[@]}" "${@:5}" taskset -c "$ONE_PROCESSOR" \
    "$STAGE/steps" -i "$STAGE/$2" "$BIN/${words[0]}" "${words[@]:1}") || { echo "cost.sh: no steps are counted here" >&2; return 0; }
  row "the same, as this processor executes it" "$steps" "$3" "$4"
}
heading() { # the columns
  printf '| %-50s | %10s | %10s | %s |\n' "$@"
  printf '| %s | ---: | ---: | --- |\n' ---
}

plain plimsoll-session-start start.json "$RUN"
settled plimsoll-post-tool quiet.json "$RUN"
if [ -n "$FIRST" ]; then
  instructions plimsoll-post-tool quiet.json "$RUN"
  exit
fi
# shellcheck source=scripts/stopwatch.sh
. scripts/stopwatch.sh
if [ -n "$STEPS" ]; then
  ONE_PROCESSOR=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
  rustc --edition 2024 -O -C panic=abort -C strip=symbols -o "$STAGE/steps" scripts/bench/steps.rs
fi
heading case instructions budget ""
row "monitor in a run, nothing to change" "$(instructions plimsoll-post-tool quiet.json "$RUN")" 100000 164000
settled plimsoll-post-tool quiet.json "$RUN"
row "monitor in a run, record rewritten" "$(instructions plimsoll-post-tool busier.json "$RUN")" 150000 235000
settled plimsoll-post-tool quiet.json "$RUN"
row "monitor in a run, one new turn for the turn log" "$(instructions plimsoll-post-tool turn.json "$RUN")" 700000 630000
settled plimsoll-post-tool far.json "$RUN"
row "monitor in a run, last usage 470 KB from the end" "$(instructions plimsoll-post-tool far.json "$RUN")" 500000 555000
settled plimsoll-post-tool large.json "$RUN"
row "monitor in a run, payload of 114 KB" "$(instructions plimsoll-post-tool large.json "$RUN")" 1600000 1025000
settled plimsoll-post-tool 1-mb.json "$RUN"
SMALL=$(instructions plimsoll-post-tool 1-mb.json "$RUN")
settled plimsoll-post-tool 500-mb.json "$RUN"
LARGE=$(instructions plimsoll-post-tool 500-mb.json "$RUN")
row "monitor in a run, transcript of 1 MB" "$SMALL" -
row "monitor in a run, transcript of 500 MB" "$LARGE" $((SMALL * 102 / 100))
plain plimsoll-session-start status-start.json
# The first call asks git, whose counts are then kept for a few seconds.
settled plimsoll-statusline status.json
grep -q '"counts":{' "$STAGE"/project/.claude/plimsoll/sessions/*.status.json || { echo "cost.sh: git counted nothing" >&2; exit 1; }
row "status line during a run, nothing new" "$(instructions plimsoll-statusline status.json)" 150000 198000
# At this computer's time: git is asked by the first call and not by the next.
calls plimsoll-statusline status.json >/dev/null
executed plimsoll-statusline status.json 150000 171000
row "the same, page faults" "$(faults plimsoll-statusline status.json)" 40 35
plain plimsoll-post-tool quiet.json
ORDINARY=$(instructions plimsoll-post-tool quiet.json)
row "monitor in an ordinary session, nothing to change" "$ORDINARY" 100000 147000
executed plimsoll-post-tool quiet.json 100000 118000
row "the same, system calls" "$(calls plimsoll-post-tool quiet.json)" 35 47
# Above the limit, what a hook touches is no longer side by side: scripts/order.sh puts it there.
row "the same, page faults" "$(faults plimsoll-post-tool quiet.json)" 40 32
plain plimsoll-post-tool quiet.json
row "monitor in an ordinary session, record rewritten" "$(instructions plimsoll-post-tool busier.json)" 150000 220000

# The working memory comes last: with it there is more to look at everywhere.
printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","hook_event_name":"PreToolUse","tool_name":"mcp__plimsoll__update_registers","tool_input":{"R2_NEXT":"Look at src/report.rs","R7_STATUS":"tests pass"},"tool_use_id":"toolu_50"}\n' \
  "$SESSION" "$STAGE/quiet.jsonl" "$STAGE/project" >"$STAGE/write.json"
remember() { start none /dev/null plimsoll memory "$@" >/dev/null; }
settled "plimsoll-post-tool memory" quiet.json
row "the same with a memory that is empty" "$(instructions "plimsoll-post-tool memory" quiet.json)" $((ORDINARY + 60000)) $((ORDINARY + 15000))
for register in goal plan next constraints open_questions status; do
  remember set "$register" "What stands in the register $register of a session at work, in a line or two."
done
for chunk in 1 2 3 4 5 6 7; do
  remember alloc "chunk-$chunk" "$(tail -c "+$((chunk * 1500))" "$STAGE/quiet.jsonl" | head -c 1100)"
done
settled "plimsoll-post-tool memory" quiet.json
row "the same with a memory of 8 KB, nothing new" "$(instructions "plimsoll-post-tool memory" quiet.json)" $((ORDINARY + 60000)) $((ORDINARY + 39000))
row "frame before a write to the memory" "$(instructions plimsoll-frame write.json)" 350000 312000
# What a session does hundreds of times: a new turn with an answer of 7 KB, in an environment as large as a shell's.
MANY=()
for number in {10..59}; do MANY+=("VARIABLE_$number=a value of an ordinary length"); done
settled "plimsoll-post-tool memory" quiet.json "${MANY[@]}"
plain "plimsoll-post-tool memory" earlier.json "${MANY[@]}"
cp -a "$STAGE/project/.claude" "$STAGE/claude-before"
row "typical batch: new turn, 7 KB, memory" "$(instructions "plimsoll-post-tool memory" typical.json "${MANY[@]}")" 600000 1180000
anew() { rm -r "$STAGE/project/.claude" && cp -a "$STAGE/claude-before" "$STAGE/project/.claude"; }
anew
executed "plimsoll-post-tool memory" typical.json 600000 640000 "${MANY[@]}"
anew
row "the same, system calls" "$(calls "plimsoll-post-tool memory" typical.json "${MANY[@]}")" 90 97
row "the same, waits for the disk" "$(grep -cE '(fsync|fdatasync|syncfs)\(' "$STAGE/calls.log")" 1

# Where the user alone has installed us, nothing of ours is in the project.
rm -r "$STAGE/project/.claude" "$RECORDS"
mkdir "$STAGE/project/.claude"
echo '{"permissions":{"allow":["Bash(make:*)"]}}' >"$STAGE/project/.claude/settings.json"
plain plimsoll-session-start start.json
settled plimsoll-post-tool quiet.json
row "monitor installed for the user, nothing to change" "$(instructions plimsoll-post-tool quiet.json)" 100000 154000
executed plimsoll-post-tool quiet.json 100000 121000
row "the same, system calls" "$(calls plimsoll-post-tool quiet.json)" 35 48
row "the same, page faults" "$(faults plimsoll-post-tool quiet.json)" 40 38

# 6 to 10 % above what each program is today: a library that slips in is seen, another path of the toolchain is not.
# The hook programs are one file.
echo
heading program bytes limit ""
while read -r program limit; do
  [ -x "$PROGRAMS/$program" ] || { echo "cost.sh: there is no $PROGRAMS/$program" >&2; exit 1; }
  row "$program" "$(stat -c %s "$PROGRAMS/$program")" "$limit"
done <<'LIMITS'
plimsoll-post-tool 3650000
plimsoll 11000000
plimsoll-fleet 6400000
plimsoll-linear 2550000
plimsoll-mcp 2750000
plimsoll-otel 2550000
LIMITS
exit "$FAILED"
