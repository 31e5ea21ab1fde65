#!/bin/bash
# Read by scripts/bench.sh: our monitor beside hooks of our own writing with the same logic in other languages.

# The system's own Python starts quickest; a version manager's shell script in front of one is not held against it.
python() { if [ -x /usr/bin/python3 ]; then echo /usr/bin/python3; else python3 -c 'import sys; print(sys.executable)' 2>/dev/null; fi; }
hooks_here() {
  local python
  HOOK_NAMES=() HOOK_INTERPRETERS=() HOOK_FILES=()
  if python=$(python); then hook Python "$python" hook.py; else absent Python; fi
  if command -v node >/dev/null; then hook node "$(node -p process.execPath)" hook.mjs; else absent node; fi
  hook "bash and jq" /bin/bash hook.sh
}
hook() { HOOK_NAMES+=("$1") HOOK_INTERPRETERS+=("$(realpath "$2")") HOOK_FILES+=("$PWD/scripts/bench/$3"); }
absent() { ABSENT+=("$1"); note "$1 is not to be had here and is left out"; }

HOOK_STATE=$STAGE/project/.claude/hook-$SESSION.json

# Every hook must say what ours says, on every payload, before it is timed.
same_answers() {
  local name number said
  plain plimsoll-session-start start.json
  for name in quiet busier far large warning checkpoint; do
    rm -f "$RECORD" "$STAGE/ours"
    env -i "${ENVIRONMENT[@]}" "$BIN/plimsoll-post-tool" <"$STAGE/$name.json" >"$STAGE/ours"
    for number in "${!HOOK_NAMES[@]}"; do
      rm -f "$HOOK_STATE"
      env -i "${ENVIRONMENT[@]}" "${HOOK_INTERPRETERS[$number]}" "${HOOK_FILES[$number]}" <"$STAGE/$name.json" >"$STAGE/theirs"
      said="$(replies "$STAGE/ours") / $(replies "$STAGE/theirs")"
      [ "$(replies "$STAGE/ours")" = "$(replies "$STAGE/theirs")" ] || die "${HOOK_NAMES[$number]}, $name: $said"
      [ "$(jq .percent "$RECORD")" = "$(jq .percent "$HOOK_STATE")" ] || die "${HOOK_NAMES[$number]}, $name: another percent"
    done
  done
  [ "$said" != " / " ] || die "nothing was said at a checkpoint's level"
}

# The commonest case, with all languages in turn.
hooks() {
  local number
  note "hooks in other languages"
  hooks_here
  same_answers
  local contestants=()
  plain plimsoll-session-start start.json
  for number in "${!HOOK_NAMES[@]}"; do
    rm -f "$HOOK_STATE"
    env -i "${ENVIRONMENT[@]}" "${HOOK_INTERPRETERS[$number]}" "${HOOK_FILES[$number]}" <"$STAGE/quiet.json" >/dev/null
    cp "$HOOK_STATE" "$STAGE/hook-state-$number"
    contestants+=(-- -r "$STAGE/hook-state-$number" "$HOOK_STATE" -i "$STAGE/quiet.json" "${HOOK_INTERPRETERS[$number]}" "${HOOK_FILES[$number]}")
  done
  settled plimsoll-post-tool quiet.json
  cp "$RECORD" "$STAGE/record.json"
  race "$FEW" "$STAGE/floor" -- -r "$STAGE/record.json" "$RECORD" -i "$STAGE/quiet.json" "$BIN/plimsoll-post-tool" "${contestants[@]}"
  echo "| hook, nothing to change | time | × ours | peak memory |"
  echo "|---|---:|---:|---:|"
  hook_row "an empty program" 0
  hook_row "Plimsoll's monitor" 1
  for number in "${!HOOK_NAMES[@]}"; do hook_row "${HOOK_NAMES[$number]}" $((number + 2)); done
  echo
  if [ "${HOOK_NAMES[0]}" = Python ]; then
    local times
    times=$(awk -v a="${TENTH[2]}" -v b="${TENTH[1]}" 'BEGIN { printf "%.1f", a / b }')
    echo "Budget: at least 15 times faster than Python; $(held 15 "$times")."
  fi
}
hook_row() { # name, number
  printf '| %s | %s | %s | %s |\n' "$1" "$(ms "${TENTH[$2]}")" "$(ratio "${TENTH[$2]}" "${TENTH[1]}")" "$(mb "${PEAK[$2]}")"
}
