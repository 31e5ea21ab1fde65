# As the bare loop; it also ends when every open item has a question under it, which only a person can answer.
worked=0 failed=0
while [ $worked -lt SESSIONS ] && [ $failed -lt 200 ]; do
  if CLIENT < PROMPT.md > out.log 2>&1; then worked=$((worked + 1)); else failed=$((failed + 1)); sleep 900; fi
  if grep -q '^<promise>COMPLETE</promise>$' out.log; then exit 0; fi
  if [ "$(grep -c '^- \[ \]' fix_plan.md)" -le "$(grep -c '^  ? ' fix_plan.md)" ]; then exit 0; fi
done
exit 3
