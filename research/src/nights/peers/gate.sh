# As the loop before, with a gate of six lines: the project's test runs after each session that worked, the next session is told
# what fails, and nothing but a passing test ends the loop. A promise counts for nothing, and a tick alone neither.
worked=0 failed=0; : > gate.log
while [ $worked -lt SESSIONS ] && [ $failed -lt 200 ]; do
  if ! cat PROMPT.md gate.log | CLIENT > out.log 2>&1; then failed=$((failed + 1)); sleep 900; continue; fi
  worked=$((worked + 1))
  if ./check.sh > check.log 2>&1; then
    : > gate.log
    if [ "$(grep -c '^- \[ \]' fix_plan.md)" -le "$(grep -c '^  ? ' fix_plan.md)" ]; then exit 0; fi
  else
    { echo; echo 'The tests fail after the last session. Repair this first; until they pass, no tick counts:'; tail -n 40 check.log; } > gate.log
  fi
done
exit 3
