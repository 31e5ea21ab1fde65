#!/usr/bin/env bash
# Shows a complete run: a real run with the real client and real hooks, from the first item over a
# checkpoint and a resume to completion. The model is scripted on this machine: no key, no network.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v git >/dev/null || scripts/debian.sh git
claude=$(scripts/client.sh)
echo "building Plimsoll (the first time takes a few minutes)" >&2
programs=$(scripts/build.sh)
exec "$programs/plimsoll" demo --client "$claude" "$@"
