#!/usr/bin/env bash
# Builds the programs for arm64 Linux and runs each of them under qemu-user, which stands in for the processor alone: the kernel is
# this machine's. It looks whether they start and do their work, in an empty HOME; it measures no time. Each step has a limit.
#
# Usage: scripts/arm64.sh    PLIMSOLL_BIN_DIR names programs for arm64 that are already built.
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "arm64.sh is for Linux: it runs programs for arm64 Linux under qemu-user" >&2; exit 1; }
cd "$(dirname "$0")/.."

fail() { printf 'arm64.sh: %s\n' "$1" >&2; exit 1; }
target=aarch64-unknown-linux-musl
find_qemu() { command -v qemu-aarch64-static || command -v qemu-aarch64; }
qemu=$(find_qemu) || { scripts/debian.sh qemu-user-static && qemu=$(find_qemu); } || fail "qemu-user is missing"
command -v jq >/dev/null || scripts/debian.sh jq
programs=$(realpath "${PLIMSOLL_BIN_DIR:-$(timeout 3600 scripts/build.sh --target "$target")}")

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/home" "$stage/project/.git"
echo "ref: refs/heads/main" >"$stage/project/.git/HEAD"
# Nothing of this machine's user. No step has a reason to take longer than a minute.
run() { # program, its arguments
  local program=$1
  shift
  (cd "$stage/project" && timeout 60 env -i HOME="$stage/home" PATH=/usr/bin:/bin "$qemu" -0 "$programs/$program" "$programs/$program" "$@")
}
holds() { # what it is, jq's question; the document at standard input
  jq -e "$2" >/dev/null || fail "$1: not so: $2"
  echo "  $1"
}

mapfile -t hooks <crates/hooks/programs.txt
echo "programs for $target in $programs, by $("$qemu" --version | head -n 1)"
for program in plimsoll plimsoll-fleet plimsoll-linear plimsoll-mcp plimsoll-otel "${hooks[@]}"; do
  # The 19th and 20th byte of an ELF file: 183 is the processor's number.
  [ "$(od -An -tu2 -j18 -N2 "$programs/$program" | tr -d ' ')" = 183 ] || fail "$program is no program for arm64"
  word=version
  case $program in plimsoll | plimsoll-fleet | plimsoll-linear | plimsoll-mcp | plimsoll-otel) word=--version ;; esac
  run "$program" "$word" --json | holds "$program starts, and says which build it is" ".program == \"$program\" and .target == \"$target\""
done

run plimsoll init --local >/dev/null || fail "init"
holds "init writes the hooks" '.hooks.Stop[0].hooks[0].command | endswith("plimsoll-stop-gate")' <"$stage/project/.claude/settings.local.json"
run plimsoll init --local --memory >/dev/null || fail "init --memory"
# One program starts others here: that needs a kernel that knows qemu (binfmt_misc).
if "$programs/plimsoll" --version >/dev/null 2>&1; then
  run plimsoll doctor --json >"$stage/doctor.json" || true
  holds "the doctor finds no program missing or different" \
    '[.findings[].code | select(startswith("programs."))] - ["programs.not_on_path"] == []' <"$stage/doctor.json"
else
  echo "  not tried: what starts other programs (this kernel does not start programs for arm64 by itself)"
fi

session=d8e9da22-d41b-4824-a1be-f318ff23689b
line='{"type":"assistant","uuid":"5e2f8a5c-19ab-43a2-8d2c-000000000001","timestamp":"2026-01-07T11:45:00.000Z","sessionId":"'$session'","cwd":"'$stage/project'","version":"2.1.329","requestId":"r","message":{"id":"m","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{"input_tokens":900000,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":10}}}'
printf '%s\n' "$line" >"$stage/transcript.jsonl"
payload() { # event, more fields
  printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","hook_event_name":"%s"%s}' "$session" "$stage/transcript.jsonl" "$stage/project" "$1" "${2:-}"
}
payload SessionStart ',"source":"startup"' | run plimsoll-session-start >/dev/null || fail "plimsoll-session-start"
payload PostToolBatch ',"tool_calls":[]' | run plimsoll-post-tool >"$stage/answer.json" || fail "plimsoll-post-tool"
holds "a hook measures the transcript and writes a checkpoint" 'tostring | contains("A handoff is ready")' <"$stage/answer.json"
find "$stage/project/.claude/handoffs" -name '*.md' | grep -q . || fail "there is no handoff"
payload SessionEnd ',"reason":"other"' | run plimsoll-session-end >/dev/null || fail "plimsoll-session-end"
run plimsoll turns list --json >"$stage/turns.json" || fail "turns list"
holds "the turn is in the log" 'length == 1' <"$stage/turns.json"

hello='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}'
printf '%s\n' "$hello" '{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' |
  run plimsoll-mcp >"$stage/mcp.jsonl" || fail "plimsoll-mcp"
jq -s '.[] | select(.id == 2)' "$stage/mcp.jsonl" | holds "the MCP server lists its tools" '[.result.tools[].name] | contains(["push_frame"])'

run plimsoll uninstall --local >/dev/null || fail "uninstall"
[ ! -e "$stage/project/.claude/settings.local.json" ] || fail "uninstall has left the settings"
echo "  uninstall removes them again"
(cd "$programs" && echo "sizes: $(for program in plimsoll "${hooks[0]}" plimsoll-mcp plimsoll-linear; do printf '%s %s  ' "$program" "$(stat -c %s "$program")"; done)")
