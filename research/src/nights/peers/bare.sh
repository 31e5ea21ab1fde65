# A fresh session each time, until the promise stands in what it printed. After a session that fails: a quarter of an hour.
worked=0 failed=0
while [ $worked -lt SESSIONS ] && [ $failed -lt 200 ]; do
  if CLIENT < PROMPT.md > out.log 2>&1; then worked=$((worked + 1)); else failed=$((failed + 1)); sleep 900; fi
  if grep -q '^<promise>COMPLETE</promise>$' out.log; then exit 0; fi
done
exit 3
