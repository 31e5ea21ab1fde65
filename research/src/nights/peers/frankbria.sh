# The same conversation is continued; the loop ends when every item is ticked, or after two exit signals; it opens its circuit
# after three loops without a change; it waits an hour at a usage limit, 30 seconds after another fault, 5 between two loops.
worked=0 failed=0 idle=0 signals=0 again=
while [ $worked -lt SESSIONS ] && [ $failed -lt 200 ]; do
  open=$(grep -c '^- \[ \]' fix_plan.md)
  if [ "$open" = 0 ] || [ $signals -ge 2 ]; then exit 0; fi
  if [ $idle -ge 3 ]; then exit 4; fi
  before=$(git rev-parse HEAD; git status --porcelain)
  context="Loop #$((worked + 1)). Remaining tasks: $open."
  if CLIENT $again --output-format json --append-system-prompt "$context" < PROMPT.md > out.log 2>&1; then
    worked=$((worked + 1))
    if [ "$before" = "$(git rev-parse HEAD; git status --porcelain)" ]; then idle=$((idle + 1)); else idle=0; fi
    if grep -q 'EXIT_SIGNAL: true' out.log; then signals=$((signals + 1)); else signals=0; fi
    sleep 5
  elif grep -qi 'limit' out.log; then
    failed=$((failed + 1)); sleep 3600
  else
    failed=$((failed + 1)); sleep 30
  fi
  again=--continue
done
exit 3
