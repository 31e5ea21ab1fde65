#!/usr/bin/env bash
# Shows that the client's spans and ours are one trace in a program that others use: a run with the real client and a scripted model
# exports everything to Arize Phoenix on loopback, which is asked for what it has. Phoenix is about 850 MB: it is installed into
# target/phoenix, and no test needs it. Prints a table of the spans (docs/telemetry.md).
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "phoenix.sh is for Linux: GNU's timeout bounds its steps" >&2; exit 1; }
cd "$(dirname "$0")/.."

version=arize-phoenix==20.26.1
target=${CARGO_TARGET_DIR:-$PWD/target}
folder=$target/phoenix
if [ "$(cat "$folder/installed.txt" 2>/dev/null)" != "$version" ]; then
  command -v python3 >/dev/null || scripts/debian.sh python3 python3-venv
  rm -rf "$folder"
  python3 -m venv "$folder"
  timeout 900 "$folder/bin/pip" install --quiet --disable-pip-version-check "$version" >&2
  echo "$version" >"$folder/installed.txt"
fi
client=$(scripts/client.sh)
# PLIMSOLL_BIN_DIR points to programs that are built already, as for the tests.
if [ -z "${PLIMSOLL_BIN_DIR:-}" ]; then
  cargo build --quiet --locked -p plimsoll --bins
fi
cargo build --quiet --locked -p plimsoll-testkit --example phoenix-model
built=${PLIMSOLL_BIN_DIR:-$target/debug}
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
cp "$target/debug/examples/phoenix-model" "$programs/"
for program in plimsoll plimsoll-otel plimsoll-mcp; do cp "$built/$program" "$programs/"; done
while read -r hook; do
  if [ -x "$built/$hook" ]; then cp "$built/$hook" "$programs/"; else cp "$built/plimsoll-hook" "$programs/$hook"; fi
done <crates/hooks/programs.txt
timeout 300 "$folder/bin/python" scripts/phoenix.py "$folder/bin/phoenix" "$programs" "$client"
