# One session whose Stop hook sends it back to its prompt. The plugin ends with its session; here somebody starts it again, and
# again in vain while a trouble lasts: one start for each trouble is counted.
worked=0 failed=0 stuck=
touch ../rounds
while [ $worked -lt SESSIONS ] && [ $failed -lt 200 ]; do
  if CLIENT < PROMPT.md > out.log 2>&1; then works=1 worked=$((worked + 1)); else works='' failed=$((failed + 1)); fi
  if [ -e ../complete ]; then exit 0; fi
  if [ "$(wc -l < ../rounds)" -ge SESSIONS ]; then exit 3; fi
  if [ -z "$stuck" ] || [ -n "$works" ]; then echo x >> ../restarts; fi
  if [ -n "$works" ]; then stuck=; else stuck=1; fi
  sleep 900
done
exit 3
