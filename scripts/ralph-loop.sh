#!/usr/bin/env bash
# The loop as a shell script, for those who want to see every step.
#
#   scripts/ralph-loop.sh [PLIMSOLL START OPTIONS] [-- CLIENT ARGS]
#
# `plimsoll start` creates the run, `plimsoll gate` judges each session and writes the next PROMPT.md.
# Hooks must be installed in the project (`plimsoll init`).
set -euo pipefail

options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
[ $# -eq 0 ] || shift

# In macOS's bash an array without an element is an unset variable.
environment=$(plimsoll start ${options[@]+"${options[@]}"})
eval "$environment"

while true; do
  verdict=0
  # The result object tells the gate what the session cost and how it ended; the gate shows the session's answer.
  # A session that fails is judged like any other: `|| true`, or pipefail would hide the verdict.
  { claude -p --output-format json "$@" < PROMPT.md || true; } | plimsoll gate --wait || verdict=$?
  case $verdict in
    0) break ;;
    1) ;;
    *) exit "$verdict" ;;
  esac
done
plimsoll status
