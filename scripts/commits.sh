#!/usr/bin/env bash
# Lists the commits since the last release whose subject does not name a component ("gate: read API errors") or is longer than 72
# characters. It is a reminder and no gate: it exits with 0 whatever it finds.
#
# Usage: scripts/commits.sh [REVISION]    since another revision
set -euo pipefail
cd "$(dirname "$0")/.."

# Subjects before this commit follow an older rule.
first=08306c0d4
since=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || echo "$first")}
git log --no-merges --format='%h %s' "$since..HEAD" | awk '
  {
    subject = substr($0, index($0, " ") + 1)
    if (subject !~ /^[a-z][a-z0-9_.-]*( and [a-z0-9_.-]+|, [a-z0-9_.-]+)*: [^ ]/) print $0 ": names no component"
    else if (length(subject) > 72) print $0 ": " length(subject) " characters"
  }'
