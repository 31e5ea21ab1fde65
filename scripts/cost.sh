#!/bin/bash
# What the hook programs cost: instructions by callgrind (the same on every computer) against their budgets,
# and, as information, wall clock against a program that does nothing. Exit 1 when a limit is exceeded,
# 75 when valgrind cannot be had.
#
# Usage: scripts/cost.sh [--no-clock]    PLIMSOLL_BIN_DIR names programs that are already built.
set -euo pipefail
cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
TRIPLE=x86_64-unknown-linux-musl
STAGE=$TARGET/cost
SESSION=d8e9da22-d41b-4824-a1be-f318ff23689b

if ! command -v valgrind >/dev/null; then
  (apt-get install -y valgrind || sudo -n apt-get install -y valgrind) >/dev/null 2>&1 || true
fi
if ! command -v valgrind >/dev/null; then
  echo "cost.sh: valgrind is missing and cannot be installed here: nothing was measured" >&2
  exit 75
fi

# As users get them: release and static.
rustup target list --installed 2>/dev/null | grep -qx "$TRIPLE" || rustup target add "$TRIPLE" >&2
if [ -z "${PLIMSOLL_BIN_DIR:-}" ]; then
  cargo build --quiet --release --target "$TRIPLE" -p plimsoll-hooks -p plimsoll --bins
fi
BIN=${PLIMSOLL_BIN_DIR:-$TARGET/$TRIPLE/release}

# --- the stage: a home, a project with a run in it, transcripts -------------------------------------------

rm -rf "$STAGE"
mkdir -p "$STAGE/home" "$STAGE/project/.git" "$STAGE/project/.claude"
echo "ref: refs/heads/main" >"$STAGE/project/.git/HEAD"

# One line of the model's answer: its number, and the tokens that were sent.
answer() {
  printf '{"parentUuid":"77c0f0f2-57a5-4c6e-a1ab-4ce1a8d3f05c","isSidechain":false,"message":{"model":"claude-opus-5-5","id":"msg_%s","type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_%s","name":"Bash","input":{"command":"make -s -j 4 \\"check\\"","description":"Run the checks"}}],"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":120,"cache_creation_input_tokens":2000,"cache_read_input_tokens":%s,"output_tokens":350,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":2000},"inference_geo":"","iterations":[],"speed":"standard"}},"requestId":"req_%s","requestedModel":"claude-opus-5-5","type":"assistant","uuid":"5e2f8a5c-19ab-43a2-8d2c-%012d","timestamp":"2026-01-07T11:45:%02d.123Z","userType":"external","entrypoint":"cli","cwd":"%s","sessionId":"%s","version":"2.1.329","gitBranch":"main"}\n' \
    "$1" "$1" "$2" "$1" "$1" "$(($1 % 60))" "$STAGE/project" "$SESSION"
}
# One line of a tool's result: its number, and how many lines of text it has.
result() {
  printf '{"parentUuid":"5e2f8a5c-19ab-43a2-8d2c-%012d","isSidechain":false,"promptId":"ef8f1f60-0c1a-4419-a0bd-64ea0e77dfcd","type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_%s","type":"tool_result","content":"%s","is_error":false}]},"uuid":"8a0c7d15-0a3c-4bd2-9f0e-%012d","timestamp":"2026-01-07T11:45:%02d.456Z","toolUseResult":{"stdout":"","stderr":"","interrupted":false,"isImage":false},"userType":"external","entrypoint":"cli","cwd":"%s","sessionId":"%s","version":"2.1.329","gitBranch":"main"}\n' \
    "$1" "$1" "$(text "$2")" "$1" "$(($1 % 60))" "$STAGE/project" "$SESSION"
}
# Program text as it stands in JSON: about 76 bytes a line.
text() {
  awk -v lines="$1" 'BEGIN { for (n = 1; n <= lines; n++) printf "%6d\\tlet value_%d = table.get(\\\"key %d\\\").unwrap_or(&0) + offset;\\n", n, n, n }'
}
# A conversation of forty messages whose last usage is the given one.
conversation() {
  local number
  for number in $(seq 10 49); do
    answer "$number" $((number * 1000))
    result "$number" 12
  done
  answer 50 "$1"
  result 50 1
  printf '{"type":"last-prompt","lastPrompt":"do it","sessionId":"%s"}\n' "$SESSION"
}
conversation 50000 >"$STAGE/quiet.jsonl"
conversation 66000 >"$STAGE/busier.jsonl"
{ cat "$STAGE/quiet.jsonl"; for number in 51 52 53 54 55 56 57 58 59 60; do result "$number" 606; done; } >"$STAGE/far.jsonl"
{ cat "$STAGE/quiet.jsonl"; answer 51 50500; result 51 12; } >"$STAGE/turn.jsonl"
for megabytes in 1 500; do
  truncate -s "${megabytes}M" "$STAGE/$megabytes-mb.jsonl"
  { echo; cat "$STAGE/quiet.jsonl"; } >>"$STAGE/$megabytes-mb.jsonl"
done

batch() { # transcript, tool's answer, its number
  printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","prompt_id":"ef8f1f60-0c1a-4419-a0bd-64ea0e77dfcd","permission_mode":"bypassPermissions","effort":{"level":"medium"},"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_input":{"command":"make -s -j 4 \\"check\\"","description":"Run the checks"},"tool_use_id":"toolu_%s","tool_response":"%s"}]}\n' \
    "$SESSION" "$STAGE/$1" "$STAGE/project" "${3:-50}" "$2"
}
for name in quiet busier turn far 1-mb 500-mb; do batch "$name.jsonl" "ok" >"$STAGE/$name.json"; done
batch turn.jsonl "ok" 51 >"$STAGE/turn.json"
batch quiet.jsonl "$(text 1500)" >"$STAGE/large.json"
printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","hook_event_name":"SessionStart","source":"startup"}\n' \
  "$SESSION" "$STAGE/quiet.jsonl" "$STAGE/project" >"$STAGE/start.json"
# The recordings are laid out for people; the client writes one line.
sed -e "s|/home/dev/project|$STAGE/project|g" -e 's/^ *//' -e 's/\(": \)/":/' tests/fixtures/statusline/usage.1m.json |
  tr -d '\n' >"$STAGE/status.json"
sed -e "s|$SESSION|$(grep -o '"session_id":"[^"]*' "$STAGE/status.json" | cut -d'"' -f4)|" "$STAGE/start.json" \
  >"$STAGE/status-start.json"

cat >"$STAGE/project/.claude/ralph-state.json" <<STATE
{
  "task_name": "Dates", "objective": "Convert every date of the project to RFC 3339 and keep the tests green.",
  "iteration": 4, "started_at": "2026-01-07T09:00:00Z", "status": "running", "no_change_count": 0,
  "last_diff_hash": "9b1c2f0a6f1d4b7e", "error_hashes": ["1f0c5d2b9a8e7f60"], "max_iterations": 50,
  "completion_promise": "COMPLETE",
  "todo_items": ["Convert src/report.rs", "Convert src/export.rs", "Convert the fixtures", "Update the README"],
  "completed_items": ["Convert src/import.rs", "Convert src/clock.rs", "Add a parser"],
  "context_checkpoint": {
    "active": false, "cause": "level", "level": "L2", "percent_at_checkpoint": 87, "percent_used": 86,
    "timestamp": "2026-01-07T11:12:00Z", "handoff_file": ".claude/handoffs/2026-01-07-1212.md",
    "resume_summary": "The parser is done and src/clock.rs uses it; src/report.rs is converted up to line 120.",
    "files_in_progress": [{ "path": "src/report.rs", "lines": "45-120", "description": "modified" }],
    "current_todo_item": "Convert src/report.rs", "progress_on_item": "70%", "iteration": 3,
    "head": "0f3c9d1e2b4a5968778695a4b3c2d1e0f9a8b7c6"
  },
  "context_history": [
    { "iteration": 1, "peak_percent": 45, "checkpoint": false },
    { "iteration": 2, "peak_percent": 62, "checkpoint": false },
    { "iteration": 3, "peak_percent": 87, "checkpoint": true }
  ],
  "run_id": "20260107-090000-dates", "session_id": "$SESSION", "nonce": "k7q2", "revision": 31,
  "todo_file": "fix_plan.md", "verify": ["make -s check"],
  "known_items": ["Convert src/import.rs", "Convert src/clock.rs", "Add a parser", "Convert src/report.rs"],
  "iteration_record": {
    "iteration": 4, "phase": "spawned", "pid": 4242, "process_started": 123456,
    "started_at": "2026-01-07T11:13:00Z", "ended_at": null, "ending": null, "resuming": true,
    "hooks_seen": true, "cost_usd": 0.0, "closed": false
  },
  "last_verdict": null, "refusals": [], "cost_usd": 3.21, "prompt_made": false, "ended_at": null
}
STATE

# --- running ----------------------------------------------------------------------------------------------

# A small environment: every further variable costs a hook about 400 instructions.
ENVIRONMENT=(HOME="$STAGE/home" PATH=/usr/local/bin:/usr/bin:/bin CLAUDE_PROJECT_DIR="$STAGE/project"
  USER=dev SHELL=/bin/bash TERM=xterm-256color LANG=C.UTF-8 CLAUDECODE=1 CLAUDE_CODE_ENTRYPOINT=cli)

# What a hook does when the turn log has all of the transcript is measured apart from what a new turn costs.
settled() { plain "$@"; plain "$@"; }
plain() { env -i "${ENVIRONMENT[@]}" "${@:3}" "$BIN/$1" <"$STAGE/$2" >/dev/null; }
instructions() { # program, payload, further variables
  # The first variable that valgrind adds would otherwise be the only difference between two computers.
  env -i "${ENVIRONMENT[@]}" "${@:3}" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$BIN/$1" <"$STAGE/$2" 2>&1 >/dev/null | awk '/Collected/ { print $NF }'
}

FAILED=0
row() { # case, instructions, budget (- for none), what is held until the budget is met
  local verdict="" limit="${4:-$3}"
  if [ "$3" != - ] && [ "$2" -gt "$3" ]; then verdict="above its budget, held at $limit"; fi
  if [ "$3" != - ] && [ "$2" -gt "$limit" ]; then verdict="OVER"; FAILED=1; fi
  printf '%-58s %12s %12s  %s\n' "$1" "$2" "$3" "$verdict"
}
printf '%-58s %12s %12s\n' case instructions budget
RUN=PLIMSOLL_RUN_ID=20260107-090000-dates

plain plimsoll-session-start start.json "$RUN"
settled plimsoll-post-tool quiet.json "$RUN"
row "monitor in a run, nothing to change" "$(instructions plimsoll-post-tool quiet.json "$RUN")" 75000 115000
settled plimsoll-post-tool quiet.json "$RUN"
row "monitor in a run, record rewritten" "$(instructions plimsoll-post-tool busier.json "$RUN")" 150000 160000
settled plimsoll-post-tool quiet.json "$RUN"
row "monitor in a run, one new turn for the turn log" "$(instructions plimsoll-post-tool turn.json "$RUN")" 700000
settled plimsoll-post-tool far.json "$RUN"
row "monitor in a run, last usage 470 KB from the end" "$(instructions plimsoll-post-tool far.json "$RUN")" 500000
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
row "status line, nothing new, git counted, a run shown" "$(instructions plimsoll-statusline status.json)" 90000 205000
plain plimsoll-post-tool quiet.json
row "monitor in an ordinary session, nothing to change" "$(instructions plimsoll-post-tool quiet.json)" 75000 115000
plain plimsoll-post-tool quiet.json
row "monitor in an ordinary session, record rewritten" "$(instructions plimsoll-post-tool busier.json)" 150000 160000

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
row "memory after a batch, 8 KB of it, nothing new" "$(instructions plimsoll-memory quiet.json)" 800000
row "frame before a write to the memory" "$(instructions plimsoll-frame write.json)" 350000

# --- the clock: information, never a verdict ----------------------------------------------------------------

if [ "${1:-}" != --no-clock ]; then
  . scripts/stopwatch.sh
  clock() { # case, program, payload, further variables
    read -r floor program ratio < <(env -i "${ENVIRONMENT[@]}" "${@:4}" "$STAGE/stopwatch" "$STAGE/floor" "$BIN/$2" "$STAGE/$3")
    printf '%-58s %9s us %9s us  %5sx\n' "$1" "$program" "$floor" "$ratio"
  }
  printf '\n%-58s %12s %12s  %6s\n' "by the clock (information)" median floor ratio
  clock "status line, nothing new" plimsoll-statusline status.json
  settled plimsoll-post-tool quiet.json "$RUN"
  clock "monitor in a run, nothing to change" plimsoll-post-tool quiet.json "$RUN"
  settled plimsoll-post-tool far.json "$RUN"
  clock "monitor in a run, last usage 470 KB from the end" plimsoll-post-tool far.json "$RUN"
  settled plimsoll-post-tool large.json "$RUN"
  clock "monitor in a run, payload of 114 KB" plimsoll-post-tool large.json "$RUN"
  clock "monitor in a run, transcript of 500 MB" plimsoll-post-tool 500-mb.json "$RUN"
fi

printf '\n%-58s %12s\n' program bytes
for program in "$BIN"/plimsoll-*; do
  [ -x "$program" ] && [ ! -d "$program" ] && printf '%-58s %12s\n' "${program##*/}" "$(stat -c %s "$program")"
done
exit "$FAILED"
