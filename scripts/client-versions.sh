#!/usr/bin/env bash
# Prints the versions of the client on npm that are newer than the newest one of docs/clients.md, on one line; nothing if there are
# none. The workflow client-versions.yml tries them with scripts/client-matrix.sh.
#
# Usage: scripts/client-versions.sh
set -euo pipefail
cd "$(dirname "$0")/.."

newest=$(sed -n 's/^Newest version at the last refresh: \([0-9.]*\), .*/\1/p' docs/clients.md)
[ -n "$newest" ] || { echo "docs/clients.md does not name its newest version" >&2; exit 1; }
published=$(npm view @anthropic-ai/claude-code versions --json) || { echo "npm does not list the versions" >&2; exit 1; }
# npm prints a text instead of a list if there is only one version. Releases between two refreshes can be many: the five newest
# say enough.
jq -r --arg newest "$newest" '
  def numbers: split(".") | map(tonumber);
  [if type == "array" then .[] else . end | select(test("^[0-9]+[.][0-9]+[.][0-9]+$"))]
  | map(select(numbers > ($newest | numbers))) | sort_by(numbers) | .[-5:] | join(" ") | select(. != "")' <<<"$published"
