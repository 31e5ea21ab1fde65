#!/bin/sh
# What the plugin's hook does: the promise as the last message ends the loop, anything else gets the prompt again.
if grep -q '<promise>COMPLETE</promise>'; then echo done > ../complete; exit 0; fi
echo x >> ../rounds
[ "$(wc -l < ../rounds)" -lt SESSIONS ] || exit 0
jq -n --rawfile prompt PROMPT.md '{decision: "block", reason: $prompt}'
