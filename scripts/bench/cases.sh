#!/bin/bash
# Read by scripts/bench.sh: the cases that have a budget as a ratio to a program that does nothing.

# One line of the table.
case_row() { # case, budget, then a program as for the stopwatch
  race "$ROUNDS" "$STAGE/floor" -- "${@:3}"
  budget_row "$1" "$2"
}
# Of the race before: its second program against its first.
budget_row() { # case, budget
  local times
  times=$(ratio "${MEDIAN[1]}" "${MEDIAN[0]}")
  [ "${PEAK[1]}" -le "$WORST_PEAK" ] || WORST_PEAK=${PEAK[1]}
  printf '| %s | %s | %s | ≤ %s, %s | %s |\n' "$1" "$(ms "${MEDIAN[1]}")" "$times" "$2" "$(held "$times" "$2")" "$(mb "${PEAK[1]}")"
}

cases() {
  local monitor=(-e "$RUN" "$BIN/plimsoll-post-tool")
  WORST_PEAK=0
  echo "| case | median | × floor | budget | peak memory |"
  echo "|---|---:|---:|---|---:|"
  note "status line"
  status_lines
  note "monitor"
  cp "$STAGE/project/.claude/ralph-state.json" "$STAGE/run.json"
  plain plimsoll-session-start start.json "$RUN"
  settled plimsoll-post-tool quiet.json "$RUN"
  case_row "monitor, nothing to change" 1.6 -i "$STAGE/quiet.json" "${monitor[@]}"
  settled plimsoll-post-tool quiet.json "$RUN"
  cp "$RECORD" "$STAGE/record.json"
  settled plimsoll-post-tool busier.json "$RUN"
  case_row "monitor, new usage" 2.9 -r "$STAGE/record.json" "$RECORD" -i "$STAGE/busier.json" "${monitor[@]}"
  ! cmp -s "$RECORD" "$STAGE/record.json" || die "the record was not rewritten"
  note "checkpoints"
  checkpoints
  note "a new turn"
  new_turn
  note "eight at once"
  crowd 8
  budget_row "8 monitors at once, until the last has ended" 15
}

status_lines() {
  plain plimsoll-session-start status-start.json
  settled plimsoll-statusline status.json
  case_row "default status line during a run" 1.5 -i "$STAGE/status.json" "$BIN/plimsoll-statusline"
}

# Each round begins with the same project: measured at 5 %, and the turn log has all of the transcript.
before() { # name of the project to keep, payload, further variables
  rm -rf "$STAGE/project/.claude/handoffs" "$RECORD"
  cp "$STAGE/run.json" "$STAGE/project/.claude/ralph-state.json"
  plain plimsoll-session-start start.json "${@:3}"
  settled plimsoll-post-tool quiet.json "${@:3}"
  cp "$RECORD" "$STAGE/record.json"
  cp "$STAGE/project/.claude/ralph-state.json" "$STAGE/state.json"
  settled plimsoll-post-tool "$2" "${@:3}"
  cp "$STAGE/record.json" "$RECORD"
  cp "$STAGE/state.json" "$STAGE/project/.claude/ralph-state.json"
  rm -rf "$STAGE/project/.claude/handoffs" "$STAGE/$1"
  cp -a "$STAGE/project" "$STAGE/$1"
}

# A checkpoint is the one thing that is synced: record, state and handoff. In a repository git is asked as well.
checkpoints() {
  local checkpoint=(-i "$STAGE/checkpoint.json" -e "$RUN" "$BIN/plimsoll-post-tool")
  before in-repository checkpoint.json "$RUN"
  cp -a "$STAGE/in-repository" "$STAGE/no-repository"
  rm -rf "$STAGE/no-repository/.git"
  race "$FEW" "$STAGE/floor" -- -r "$STAGE/no-repository" "$STAGE/project" -d -e GIT_CEILING_DIRECTORIES="$STAGE" "${checkpoint[@]}"
  has_handoff
  budget_row "checkpoint outside a repository, with fsync" 16
  race "$FEW" "$STAGE/floor" -- -r "$STAGE/in-repository" "$STAGE/project" -d "${checkpoint[@]}"
  has_handoff
  PEAK[1]=0
  budget_row "checkpoint in a repository" 36 | sed 's/ 0.0 MB |$/ – |/'
}
has_handoff() { compgen -G "$STAGE/project/.claude/handoffs/*.md" >/dev/null || die "no handoff was written"; }

new_turn() {
  local log=$STAGE/project/.claude/plimsoll/turns/$SESSION.jsonl size
  settled plimsoll-post-tool quiet.json "$RUN"
  rm -rf "$STAGE/a-turn-before"
  cp -a "$STAGE/project" "$STAGE/a-turn-before"
  size=$(stat -c %s "$log")
  plain plimsoll-post-tool turn.json "$RUN"
  TURN=$(($(stat -c %s "$log") - size))
  [ "$TURN" -gt 0 ] || die "no turn was recorded"
  race "$FEW" "$STAGE/floor" -- \
    -r "$STAGE/a-turn-before" "$STAGE/project" -d -i "$STAGE/turn.json" -e "$RUN" "$BIN/plimsoll-post-tool"
  budget_row "monitor, a new turn in the turn log" 6
}

# So many hooks of one session at once when a level is reached: exactly one announces it.
crowd() { # how many; MEDIAN is of one floor, of these, of as many floors at once; SAID is how often it was announced
  local rounds=$FEW
  before a-level-before warning.json "$RUN"
  rm -f "$STAGE/replies"
  race "$rounds" "$STAGE/floor" -- -n "$1" -r "$STAGE/a-level-before" "$STAGE/project" \
    -i "$STAGE/warning.json" -o "$STAGE/replies" -e "$RUN" "$BIN/plimsoll-post-tool" -- -n "$1" "$STAGE/floor"
  REPLIES=$(wc -l <"$STAGE/replies") ROUNDS_RUN=$((rounds + 1))
  SAID=$(replies "$STAGE/replies" | grep -c '^CCS_WARNING|L1|70|' || true)
  [ "$REPLIES $SAID" = "$(($1 * ROUNDS_RUN)) $ROUNDS_RUN" ] || die "$SAID of $REPLIES announced L1 in $ROUNDS_RUN rounds"
  # What stands there after the last round.
  [ "$(jq -r .announced "$RECORD")" = L1 ] || die "the record does not know of L1"
  [ "$(grep -c '"event":"warning"' "$STAGE/project/.claude/plimsoll/journal.jsonl")" = \
    $(($(grep -c '"event":"warning"' "$STAGE/a-level-before/.claude/plimsoll/journal.jsonl") + 1)) ] || die "the journal lost or doubled a line"
}

contention() {
  local count
  echo "| monitors at once | until the last has ended | as many empty programs | announced |"
  echo "|---:|---:|---:|---|"
  for count in "${CROWDS[@]}"; do
    note "$count at once"
    crowd "$count"
    printf '| %s | %s | %s | once in each of %s rounds |\n' "$count" "$(ms "${MEDIAN[1]}")" "$(ms "${MEDIAN[2]}")" "$ROUNDS_RUN"
  done
}
