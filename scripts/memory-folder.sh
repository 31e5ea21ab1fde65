#!/usr/bin/env bash
# Makes a folder in memory for what tests write and throw away, and prints it: there nothing waits for a disk. Prints nothing where
# there is no room, or where programs may not run. Whoever called it removes the folder.
#
# Usage: scripts/memory-folder.sh
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "memory-folder.sh is for Linux, which has a file system in memory" >&2; exit 1; }

parent=/dev/shm
megabytes() { awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo; }
[ "$(stat -f -c %T "$parent" 2>/dev/null)" = tmpfs ] && [ -w "$parent" ] || exit 0
# The tests hold a few hundred megabytes at a time, most of it databases.
[ $(($(stat -f -c '%a * %S' "$parent") >> 20)) -ge 2048 ] && [ "$(megabytes)" -ge 8192 ] || exit 0
folder=$(mktemp -d "$parent/plimsoll-tests.XXXXXX")
# As in /tmp: PostgreSQL is started as another user, and goes through it to its own.
chmod 711 "$folder"
printf '#!/bin/sh\n' >"$folder/program"
chmod +x "$folder/program"
if "$folder/program" 2>/dev/null; then
  rm "$folder/program"
  echo "$folder"
else
  rm -r "$folder"
fi
