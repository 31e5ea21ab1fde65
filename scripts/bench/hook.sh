#!/bin/bash
# What our monitor decides, as a good user would write it with jq: how full is the session, and which level is new?
set -euo pipefail

payload=$(cat)
IFS=$'\t' read -r session transcript folder added < <(jq -r '
  [.session_id, .transcript_path, .cwd, (([.tool_calls[]?.tool_response | tostring | length] | add // 0) / 4 | floor)] | @tsv
' <<<"$payload")
folder=${CLAUDE_PROJECT_DIR:-$folder}

# tac reads from the end, and stops when grep has what it looks for.
answer=$({ tac "$transcript" 2>/dev/null || true; } | grep -m1 '"isSidechain":false.*"usage":{' || true)
[ -n "$answer" ] || { echo '{}'; exit 0; }
percent=$(jq -r --argjson added "$added" '
  .message.usage as $usage
  | ({"claude-haiku-4-5": 200000, "claude-sonnet-4-5": 200000}[.requestedModel // ""] // 1000000) as $window
  | ($usage.input_tokens + $usage.cache_creation_input_tokens + $usage.cache_read_input_tokens + $usage.output_tokens + $added)
    * 100 / $window + 0.5 | floor
' <<<"$answer")

if ((percent >= 95)); then level=L3; elif ((percent >= 85)); then level=L2; elif ((percent >= 70)); then level=L1; else level=L0; fi

state=$folder/.claude/hook-$session.json
exec 9>"$state.lock"
flock 9
before=$(cat "$state" 2>/dev/null || echo '{"percent":null,"peak":0,"announced":"L0"}')
IFS=$'\t' read -r after announced < <(jq -r --argjson percent "$percent" --arg level "$level" '
  [({percent: $percent, peak: ([.peak, $percent] | max), announced: ([.announced, $level] | max)} | tojson), .announced] | @tsv
' <<<"$before")
if [ "$after" != "$before" ]; then
  printf '%s' "$after" >"$state.draft"
  mv "$state.draft" "$state"
fi

if [[ $level > $announced ]]; then
  printf '{"systemMessage":"CCS_WARNING|%s|%s|Context at %s%%"}\n' "$level" "$percent" "$percent"
else
  echo '{}'
fi
