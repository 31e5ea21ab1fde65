# The same prompt into the same conversation, which the client compacts when it is full.
worked=0 failed=0 again=
while [ $worked -lt SESSIONS ] && [ $failed -lt 200 ]; do
  if CLIENT $again < PROMPT.md > out.log 2>&1; then worked=$((worked + 1)); else failed=$((failed + 1)); sleep 900; fi
  again=--continue
  if grep -q '^<promise>COMPLETE</promise>$' out.log; then exit 0; fi
done
exit 3
