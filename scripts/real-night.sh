#!/usr/bin/env bash
# Compares ways to work through a small task, with your own model and your own money: docs/nights.md plays such nights with a
# simulated agent. Says what it may cost, and asks before it spends anything.
#
# Usage: scripts/real-night.sh [--max-cost USD] [--ways bare,plimsoll,summary,handoff] [--model NAME] [--client PATH] [--yes]
#   --max-cost   the most that each way may spend, 2 by default
#   --ways       bare,plimsoll by default. bare: a loop of fresh sessions. plimsoll: plimsoll run. summary and handoff: one session
#                with a window of 100,000 tokens, which is compacted while it works; its place is taken by Claude Code's summary
#                or by Plimsoll's handoff (Claude Code 2.1.287 or newer)
#   --yes        do not ask
# PLIMSOLL_BIN_DIR names programs that are already built. The task is in scripts/real-night/: five small shell tools, and checks
# that no session sees. Sessions may run any command (--allowedTools Bash) in a temporary folder of their own, as your user.
set -euo pipefail
most=2 ways=bare,plimsoll model="" client=claude agreed=""
usage() { sed -n 's/^# Usage: /Usage: /p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --yes) agreed=yes; shift; continue ;;
    --max-cost | --ways | --model | --client) [ $# -ge 2 ] || usage ;;
    *) usage ;;
  esac
  case $1 in
    --max-cost) most=$2 ;;
    --ways) ways=$2 ;;
    --model) model=$2 ;;
    --client) client=$2 ;;
  esac
  shift 2
done
[[ $most =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "real-night.sh: --max-cost $most is no amount in dollars, such as 2 or 0.50" >&2; exit 2; }
for way in ${ways//,/ }; do
  case $way in
    bare | plimsoll | summary | handoff) ;;
    *) echo "real-night.sh: --ways $way: bare, plimsoll, summary and handoff can be compared" >&2; exit 2 ;;
  esac
done
here=$(cd "$(dirname "$0")" && pwd)
command -v "$client" >/dev/null || { echo "real-night.sh: there is no program $client: install Claude Code, or name it with --client" >&2; exit 1; }
programs=${PLIMSOLL_BIN_DIR:-$("$here/build.sh")}

count=$(tr , '\n' <<<"$ways" | grep -c .)
echo "Ways: $ways; each may spend $most USD of your account, so $(awk -v most="$most" -v count="$count" 'BEGIN { printf "%.2f", most * count }') USD at most."
echo "Sessions of $("$client" --version | head -1) run any command they like in a folder below ${TMPDIR:-/tmp}, as $(id -un)."
if [ -z "$agreed" ]; then
  read -r -p "Spend it? [y/N] " answer || answer=""
  case $answer in y | Y | yes) ;; *) echo "Nothing was spent."; exit 1 ;; esac
fi

place=$(mktemp -d "${TMPDIR:-/tmp}/real-night.XXXXXX")
arguments=(--permission-mode acceptEdits --allowedTools Bash)
[ -z "$model" ] || arguments=(--model "$model" "${arguments[@]}")

project() { # way: a repository with the task
  mkdir "$place/$1"
  cd "$place/$1"
  cp "$here/real-night/fix_plan.md" "$here/real-night/check.sh" .
  mkdir bin
  touch bin/.gitkeep progress.txt
  git init -q
  git add -A
  git -c user.name=night -c user.email=night@localhost commit -qm "Plan" --no-verify
}

# A fresh session each time, until the promise stands in what it answered. After a session that fails: a quarter of an hour.
# The client itself ends a session at what is left of the money.
bare() {
  local spent=0 sessions=0 failed=0 left answer
  cp "$here/real-night/PROMPT.md" .
  while [ "$sessions" -lt 15 ] && [ "$failed" -lt 8 ]; do
    left=$(awk -v most="$most" -v spent="$spent" 'BEGIN { left = most - spent; if (left < 0.01) exit 1; printf "%.2f", left }') || break
    if answer=$("$client" -p --output-format json --max-budget-usd "$left" "${arguments[@]}" <PROMPT.md 2>>"$place/bare.log"); then
      sessions=$((sessions + 1))
    else
      failed=$((failed + 1))
      echo "bare: a session failed; the next begins in 15 minutes" >&2
      sleep 900
    fi
    printf '%s\n' "$answer" >>"$place/bare.log"
    spent=$(cost_of "$answer" | awk -v spent="$spent" '{ spent += $1 } END { printf "%.4f", spent }')
    case $answer in *'<promise>COMPLETE</promise>'*) break ;; esac
  done
  SPENT=$spent SESSIONS=$sessions
}
cost_of() { grep -o '"total_cost_usd":[0-9.eE+-]*' <<<"$1" | cut -d: -f2 || true; }

plimsoll() {
  local code=0
  "$programs/plimsoll" run --objective "Make the tools of the plan." --verify ./check.sh --max-cost "$most" --client "$client" \
    -- "${arguments[@]}" >"$place/plimsoll.log" 2>&1 || code=$?
  [ "$code" != 5 ] || tail -n 3 "$place/plimsoll.log" >&2
  SPENT=$("$programs/plimsoll" query -r '.cost_usd') SESSIONS=$("$programs/plimsoll" query -r '.iteration')
}

summary() { one_session summary client; }
handoff() { one_session handoff handoff; }

items=(slug roman days csvsum range)

# One session for the whole plan. Notes of about 20,000 tokens for each item fill the window.
one_session() { # way, and the setting `compaction`
  local item entry number=0 config=$place/$1.config answer
  mkdir notes "$config" "$config/plimsoll"
  for item in "${items[@]}"; do
    number=$((number + 1))
    awk -v seed="$number" 'BEGIN {
      srand(seed)
      for (line = 1; line <= 600; line++) {
        if (line == 431) print "Rule: the third line of this tool is the comment `# rule " seed * 1117 "`."
        for (word = 1; word <= 10; word++) printf "%c%c%c%d ", 97 + rand() * 26, 97 + rand() * 26, 97 + rand() * 26, rand() * 100
        print ""
      }
    }' >"notes/$item.md"
  done
  # The settings are this way's own; everything else in the folder of settings is the user's.
  for entry in "${XDG_CONFIG_HOME:-$HOME/.config}"/*; do
    [ ! -e "$entry" ] || [ "${entry##*/}" = plimsoll ] || ln -s "$entry" "$config/"
  done
  echo "{\"compaction\": \"$2\"}" >"$config/plimsoll/settings.json"
  cp -R "$here/../hooks-config/plugin" "$place/$1.plugin"
  sed "s|^const PROGRAM_FOLDER.*|const PROGRAM_FOLDER: string = \"$programs\";|" "$here/../hooks-config/plugin/hooks/plimsoll.ts" \
    >"$place/$1.plugin/hooks/plimsoll.ts"
  answer=$(CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000 XDG_CONFIG_HOME=$config PATH=$programs:$PATH \
    "$client" -p --output-format stream-json --verbose --max-budget-usd "$most" --plugin-dir "$place/$1.plugin" "${arguments[@]}" \
    <"$here/real-night/PROMPT-ONE-SESSION.md" 2>"$place/$1.errors") || echo "$1: the session ended with exit code $?" >&2
  printf '%s\n' "$answer" >"$place/$1.log"
  SPENT=$(cost_of "$answer" | tail -n 1) SESSIONS=1
  COMPACTIONS=$(grep -c '"subtype":"compact_boundary"' <<<"$answer" || true)
  KEPT="$(count_kept_comments) of $((2 * ${#items[@]}))"
}

# A name that the session chose in its first answer, and a rule that it read in each note.
count_kept_comments() {
  local item second third name="" number=0 count=0
  for item in "${items[@]}"; do
    number=$((number + 1))
    [ -e "bin/$item" ] || continue
    second=$(sed -n 2p "bin/$item") third=$(sed -n 3p "bin/$item")
    case $second in "# part of "?*) name=${name:-$second}; [ "$second" != "$name" ] || count=$((count + 1)) ;; esac
    [ "$third" != "# rule $((number * 1117))" ] || count=$((count + 1))
  done
  echo "$count"
}

rows=""
for way in ${ways//,/ }; do
  echo "$way: begun $(date +%H:%M)" >&2
  begun=$SECONDS
  COMPACTIONS=- KEPT=-
  project "$way"
  "$way"
  "$here/real-night/hidden.sh" "$place/$way" >"$place/$way.right"
  # A tick for a tool that is wrong.
  false=$(awk 'NR == FNR { right[$1] = $2; next }
    /^- \[[xX]\] `bin\// { name = $0; sub(/^[^`]*`bin\//, "", name); sub(/[` ].*/, "", name); if (!right[name]) count++ }
    END { print count + 0 }' "$place/$way.right" fix_plan.md)
  passing=$(grep -c ' 1$' "$place/$way.right" || true)
  rows+=$(awk -v way="$way" -v passing="$passing" -v of="$(wc -l <"$place/$way.right")" -v false="$false" -v spent="${SPENT:-0}" \
    -v sessions="$SESSIONS" -v compactions="$COMPACTIONS" -v kept="$KEPT" \
    -v seconds=$((SECONDS - begun)) 'BEGIN {
      each = passing ? sprintf("%.2f", spent / passing) : "-"
      printf "| %s | %d of %d | %d | %.2f | %s | %d | %s | %s | %.0f |",
        way, passing, of, false, spent, each, sessions, compactions, kept, seconds / 60 }')$'\n'
done
echo
echo "| way | items that pass | false ticks | USD | USD an item | sessions | compactions | comments kept | minutes |"
echo "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
printf %s "$rows"
echo
echo "Everything is kept in $place: each way's project, its output (NAME.log), and what passed (NAME.right)."
