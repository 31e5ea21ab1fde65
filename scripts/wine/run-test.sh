#!/usr/bin/env bash
# Starts a test program for Windows under wine. scripts/wine.sh names it to cargo, which adds the program and its arguments.
[ "$(uname -s)" = Linux ] || { echo "run-test.sh is for Linux: Windows needs no wine" >&2; exit 1; }
# shellcheck source=scripts/wine/environment.sh
. "${0%/*}/environment.sh"
exec env "${wine_variables[@]}" timeout 900 "$WINELOADER" "$@"
