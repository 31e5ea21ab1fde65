#!/bin/bash
# To be read by a script that has set STAGE (an empty folder) and BIN (the folder of our programs): a home, a project with
# a run in it, transcripts and payloads as the client writes them, and how a hook is started there.

# shellcheck disable=SC2034 # RUN, too, is for those who read this
RUN=PLIMSOLL_RUN_ID=20260107-090000-dates
SESSION=d8e9da22-d41b-4824-a1be-f318ff23689b
mkdir -p "$STAGE/home" "$STAGE/project/.claude"
# Just enough for git to take it for a repository; otherwise it would look for one in the folders above.
mkdir -p "$STAGE/project/.git/objects" "$STAGE/project/.git/refs"
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
conversation 868000 >"$STAGE/checkpoint.jsonl"
{ cat "$STAGE/quiet.jsonl"; for number in 51 52 53 54 55 56 57 58 59 60; do result "$number" 606; done; } >"$STAGE/far.jsonl"
{ cat "$STAGE/quiet.jsonl"; answer 51 50500; result 51 12; } >"$STAGE/turn.jsonl"
# After the last change of the memory, as nearly every turn is, and after another turn.
{ cat "$STAGE/quiet.jsonl"; answer 51 50500; result 51 12; } | sed 's/11:45:51\.[0-9]*/11:46:00.500/' >"$STAGE/earlier.jsonl"
{ cat "$STAGE/earlier.jsonl"; answer 52 51000; result 52 90; } | sed 's/11:45:52\.[0-9]*/11:46:01.500/' >"$STAGE/typical.jsonl"
for megabytes in 1 500; do
  truncate -s "${megabytes}M" "$STAGE/$megabytes-mb.jsonl"
  { echo; cat "$STAGE/quiet.jsonl"; } >>"$STAGE/$megabytes-mb.jsonl"
done

batch() { # transcript, tool's answer, its number
  printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","prompt_id":"ef8f1f60-0c1a-4419-a0bd-64ea0e77dfcd","permission_mode":"bypassPermissions","effort":{"level":"medium"},"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_input":{"command":"make -s -j 4 \\"check\\"","description":"Run the checks"},"tool_use_id":"toolu_%s","tool_response":"%s"}]}\n' \
    "$SESSION" "$STAGE/$1" "$STAGE/project" "${3:-50}" "$2"
}
for name in quiet busier checkpoint turn far 1-mb 500-mb; do batch "$name.jsonl" "ok" >"$STAGE/$name.json"; done
batch turn.jsonl "ok" 51 >"$STAGE/turn.json"
batch earlier.jsonl "ok" 51 >"$STAGE/earlier.json"
batch typical.jsonl "$(text 90)" 52 >"$STAGE/typical.json"
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
# Without its record and ledger a run is nobody's, and what is measured would be an ordinary session.
RECORDS=$STAGE/home/.local/state/plimsoll/runs/20260107-090000-dates
mkdir -p "$RECORDS"
printf '{"run_id": "20260107-090000-dates", "project": "%s", "command": ["plimsoll", "run"], "started_at": "2026-01-07T09:00:00Z"}' \
  "$(realpath "$STAGE/project")" >"$RECORDS/record.json"
echo '{}' >"$RECORDS/preferences.json"
tr -d '\n' <"$STAGE/project/.claude/ralph-state.json" >"$RECORDS/ledger.json"

# A small environment: every further variable costs a hook about 400 instructions.
ENVIRONMENT=(HOME="$STAGE/home" PATH=/usr/local/bin:/usr/bin:/bin CLAUDE_PROJECT_DIR="$STAGE/project"
  USER=dev SHELL=/bin/bash TERM=xterm-256color LANG=C.UTF-8 CLAUDECODE=1 CLAUDE_CODE_ENTRYPOINT=cli)

# What a hook does when the turn log has all of the transcript is measured apart from what a new turn costs.
settled() { plain "$@"; plain "$@"; }
plain() { (cd "$STAGE/project" && env -i "${ENVIRONMENT[@]}" "${@:3}" "$BIN/$1" <"$STAGE/$2" >/dev/null); }
