#!/bin/bash
# Writes crates/plimsoll/together.txt: which functions and constants a hook touches in the usual cases, by traces of valgrind. Linked
# side by side they are in a few pages of the program, and the system maps those with a few faults instead of one for each. The
# build needs no trace: it takes the file as it is committed. A name that has gone is passed over, so an old file costs some speed
# and nothing else; scripts/cost.sh counts the faults and fails when they have become many. Then run this again.
#
# Usage: scripts/order.sh    It links the hooks once more, with their names: some two minutes.
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "order.sh is for Linux, where valgrind traces" >&2; exit 1; }
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || scripts/debian.sh valgrind

built=$(scripts/build.sh --names)
STAGE=$(mktemp -d)
trap 'rm -rf "$STAGE"' EXIT
export LC_ALL=C
BIN=$STAGE/bin
mkdir "$BIN"
while read -r name; do cp "$built/plimsoll-hook" "$BIN/$name"; done <crates/hooks/programs.txt
# shellcheck source=scripts/stage.sh
. scripts/stage.sh
printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","hook_event_name":"UserPromptSubmit","prompt":"go on"}\n' \
  "$SESSION" "$STAGE/quiet.jsonl" "$STAGE/project" >"$STAGE/prompt.json"
printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","hook_event_name":"Stop","stop_hook_active":false}\n' \
  "$SESSION" "$STAGE/quiet.jsonl" "$STAGE/project" >"$STAGE/stop.json"
for event in PreCompact SessionEnd; do
  printf '{"session_id":"%s","transcript_path":"%s","cwd":"%s","hook_event_name":"%s","trigger":"auto","reason":"other"}\n' \
    "$SESSION" "$STAGE/checkpoint.jsonl" "$STAGE/project" "$event" >"$STAGE/$event.json"
done

# What an address belongs to, as a pattern of the linker: without what another version of the compiler or of Plimsoll has otherwise
# (crates' hashes, and where in the name a part of it is repeated), and with nm's letter for its kind.
nm -S --defined-only "$BIN/plimsoll-post-tool" | awk 'NF == 4 { print $1, $2, tolower($3) ":" $4 }' | sort >"$STAGE/names"
pattern() { sed -E 's/17h[0-9a-f]{16}E/17h*E/g; s/Cs[0-9A-Za-z]+_([0-9])/Cs*_\1/g; s/B[0-9A-Za-z]{1,2}_/B*_/g'; }
# The names of what a program reads, writes or runs, in the alphabet's order.
traced() { # program (and the arguments of its entry), payload, further variables
  local words
  read -r -a words <<<"$1"
  (cd "$STAGE/project" && env -i "${ENVIRONMENT[@]}" "${@:3}" valgrind --tool=lackey --trace-mem=yes --log-file="$STAGE/trace" \
    "$BIN/${words[0]}" "${words[@]:1}" <"$STAGE/$2" >/dev/null)
  awk '/^(I | [LSM])/ { split($2, part, ","); seen[part[1]] = 1 } END { for (at in seen) print at }' "$STAGE/trace" |
    awk '{ print substr("0000000000000000", 1, 16 - length($1)) $1 }' | sort -k 1,1 -k 2,2r - "$STAGE/names" |
    awk 'function number(hex, n, i) { n = 0; for (i = 1; i <= 16; i++) n = n * 16 + index("123456789abcdef", substr(hex, i, 1)); return n }
      NF == 3 { if ($1 != at) names = ""; at = $1; names = names $3 "\n"; end = number($1) + number($2); next }
      names != "" && number($1) < end { printf "%s", names; names = "" }' | pattern | sort -u
}
plain plimsoll-session-start start.json
plain plimsoll-session-start status-start.json
settled plimsoll-statusline status.json
settled plimsoll-post-tool quiet.json
cp -a "$STAGE/project" "$STAGE/before"
anew() { rm -rf "$STAGE/project" && cp -a "$STAGE/before" "$STAGE/project"; }
usual() {
  traced plimsoll-post-tool quiet.json
  traced plimsoll-statusline status.json
  traced plimsoll-post-tool busier.json
  anew
  traced plimsoll-post-tool turn.json
  anew
  traced "plimsoll-post-tool memory" turn.json
  traced plimsoll-memory prompt.json
  traced plimsoll-stop-gate stop.json
  traced plimsoll-session-start start.json
  # With settings in the project, which have to be read.
  printf '{"statusline":{"lines":[["model","directory","git","load"]],"segments":{"git":{"format":"{branch}"}}}}' \
    >"$STAGE/project/.claude/plimsoll.json"
  traced plimsoll-statusline status.json
  traced plimsoll-post-tool quiet.json
  rm "$STAGE/project/.claude/plimsoll.json"
}
rare() {
  plain plimsoll-session-start start.json "$RUN"
  traced plimsoll-post-tool checkpoint.json "$RUN"
  traced plimsoll-pre-compact PreCompact.json "$RUN"
  traced plimsoll-session-end SessionEnd.json "$RUN"
}
# valgrind does not know openat2 in all its versions: then each path in a project is walked part by part, as nowhere since 2020.
# Of what is rare the functions alone, behind the others: its constants would push theirs apart.
{ usual; rare | grep '^[tw]:'; } | grep -v plimsoll_store4door4walk | awk '!seen[$0]++' >"$STAGE/together"
[ "$(wc -l <"$STAGE/together")" -gt 300 ] || { echo "order.sh: the traces name fewer than 300 functions and constants" >&2; exit 1; }
cp "$STAGE/together" crates/plimsoll/together.txt
wc -l crates/plimsoll/together.txt
