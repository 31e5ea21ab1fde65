# A fresh session each time, with its scratchpad in the prompt; no wait between two; five failures in a row end it.
worked=0 failed=0 pad=.ralph/agent/scratchpad.md
while [ $worked -lt SESSIONS ]; do
  { if [ -s $pad ]; then printf '<scratchpad>\n%s\n</scratchpad>\n\n' "$(tail -c 16000 $pad)"; fi; cat PROMPT.md; } > prompt.log
  if CLIENT < prompt.log > out.log 2>&1; then worked=$((worked + 1)) failed=0; else failed=$((failed + 1)); fi
  if [ $failed -ge 5 ]; then exit 5; fi
  if grep -q 'LOOP_COMPLETE' out.log; then exit 0; fi
done
exit 3
