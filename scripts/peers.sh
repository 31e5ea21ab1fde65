#!/bin/bash
# Our status line beside two peers from npm, on the same payload, in one run: medians, ratios to a program that does
# nothing, and what each shows. Every program gets a home of its own; information, never a verdict.
#
# Usage: scripts/peers.sh    PLIMSOLL_BIN_DIR names programs that are already built.
set -euo pipefail
cd "$(dirname "$0")/.."
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
TRIPLE=$(uname -m)-unknown-linux-musl
STAGE=$TARGET/peers-stage
PEERS=$TARGET/peers
CCSTATUSLINE=2.2.30
CCLINE=1.1.2

command -v npm >/dev/null || { echo "missing: npm (Node.js 18 or newer)" >&2; exit 1; }
command -v git >/dev/null || { echo "missing: git" >&2; exit 1; }
mkdir -p "$PEERS"
npm install --prefix "$PEERS" --no-audit --no-fund --loglevel=error "ccstatusline@$CCSTATUSLINE" "@cometix/ccline@$CCLINE" >&2
BIN=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh)}

rm -rf "$STAGE"
mkdir -p "$STAGE/home" "$STAGE/project"
PROJECT=$(realpath "$STAGE/project")
git -C "$PROJECT" init -q -b main
git -C "$PROJECT" -c user.name=dev -c user.email=dev@example.invalid commit -q --allow-empty -m first
echo "a change" >"$PROJECT/new.txt"

# A transcript as the client writes it, so many MB long, with the payload's own usage at its end.
transcript() { # megabytes
  local line='{"type":"assistant","isSidechain":false,"message":{"id":"msg_1","model":"claude-opus-5-5","role":"assistant","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":209990,"output_tokens":7,"cache_creation_input_tokens":4,"cache_read_input_tokens":6}},"requestedModel":"claude-opus-5-5","timestamp":"2026-01-07T11:45:01.123Z","uuid":"5e2f8a5c-19ab-43a2-8d2c-000000000001"}\n'
  local words
  words=$(head -c 9600 /dev/zero | tr '\0' 'x')
  awk -v line="$line" -v words="$words" -v lines=$(($1 * 100)) 'BEGIN { for (n = 0; n < lines; n++) printf line, words }'
}
payload() { # megabytes
  transcript "$1" >"$STAGE/$1-mb.jsonl"
  sed -e "s|/home/dev/project|$PROJECT|g" -e "s|\"transcript_path\": \"[^\"]*\"|\"transcript_path\": \"$STAGE/$1-mb.jsonl\"|" \
    -e 's/^ *//' tests/fixtures/statusline/usage.1m.json | tr -d '\n' >"$STAGE/$1-mb.json"
}
payload 1
payload 500

. scripts/stopwatch.sh
ENVIRONMENT=(HOME="$STAGE/home" PATH="$PATH" USER=dev SHELL=/bin/bash TERM=xterm-256color LANG=C.UTF-8 COLUMNS=200)
shown() { env -i "${ENVIRONMENT[@]}" "$1" <"$STAGE/1-mb.json" 2>/dev/null | sed 's/\x1b\[[0-9;]*m//g' | tr '\n' ' '; }
row() { # name, program, rounds
  local small large
  read -r floor small ratio < <(env -i "${ENVIRONMENT[@]}" "$STAGE/stopwatch" "$STAGE/floor" "$2" "$STAGE/1-mb.json" "$3")
  read -r _ large _ < <(env -i "${ENVIRONMENT[@]}" "$STAGE/stopwatch" "$STAGE/floor" "$2" "$STAGE/500-mb.json" "$3")
  printf '%-24s %10s us %10s us %9sx   %s\n' "$1" "$small" "$large" "$ratio" "$(shown "$2")"
}
printf '%-24s %13s %13s %10s   %s\n' "status line" "1 MB" "500 MB" "to floor" "what it shows"
row "plimsoll" "$BIN/plimsoll-statusline" 200
row "CCometixLine $CCLINE" "$PEERS/node_modules/.bin/ccline" 10
row "ccstatusline $CCSTATUSLINE" "$PEERS/node_modules/.bin/ccstatusline" 10
rm -f "$STAGE"/*-mb.jsonl
