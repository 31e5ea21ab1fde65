#!/usr/bin/env bash
# Names the machines of .github/runners.json that GitHub ends within 60 days, and exits with 1 if there are any: the nightly
# workflow calls it. The dates are those of GitHub's announcements (actions/runner-images).
#
# Usage: scripts/runners.sh [TODAY]    as if it were 2027-07-01
set -euo pipefail
cd "$(dirname "$0")/.."

today=${1:-$(date -u +%F)}
ending=$(jq -r --arg today "$today" '
  ($today | strptime("%Y-%m-%d") | mktime) as $now
  | to_entries[].value[]
  | select((.until | strptime("%Y-%m-%d") | mktime) - $now < 60 * 86400)
  | "\(.machine) ends on \(.until): choose another machine in .github/runners.json"' .github/runners.json)
[ -z "$ending" ] || { echo "$ending" >&2; exit 1; }
