#!/bin/bash
# Stands in for the client from its second try during a usage limit until the loop has waited long enough: the client itself
# would say the same, a second later.
waited=$(awk '{ sum += $1 } END { print int(sum) }' "$HOME/waits.log" 2> /dev/null)
until=$(cat "$HOME/limit.log" 2> /dev/null)
if [ "${waited:-0}" -lt "${until%.*}" ] 2> /dev/null; then
  echo "You've hit your session limit"
  exit 1
fi
PATH=${PATH#*:} exec claude "$@"
