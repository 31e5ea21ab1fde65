#!/bin/sh
# Becomes the hook program with the name of this file: an installed one, or else the plugin's own.
# The plugin has a copy of hooks-config/plugin-hook.sh for each program, because a plugin that is copied may lose links.

case $0 in */*) plugin=${0%/*}/.. ;; *) plugin=.. ;; esac
program=${0##*/}
# A client before 2.1.139 passes no arguments. Without `--plugin` the program would not yield to entries in settings files.
case " $* " in
  *" --plugin "*) ;;
  *)
    if [ "$program" = plimsoll-session-start ]; then exec cat "$plugin/hooks/old-client.json"; fi
    exit 0
    ;;
esac

# A client that was not started in a terminal lacks the last two folders. A relative folder would be one of the project. This
# file itself is in a folder of the PATH if somebody linked it there.
set -f
IFS=:
for folder in $PATH "${HOME:-/nonexistent}/.local/bin" "${HOME:-/nonexistent}/.cargo/bin"; do
  file=$folder/$program
  case $file in /*) ;; *) continue ;; esac
  if [ -f "$file" ] && [ -x "$file" ] && ! [ "$file" -ef "$0" ]; then exec "$file" "$@"; fi
done

PATH=${PATH:-/usr/bin:/bin}
# Only the plugin of a release has programs.
if [ -d "$plugin/programs" ]; then
  own=$plugin/programs/$(uname -sm)/$program
  if [ -x "$own" ]; then exec "$own" "$@"; fi
fi
if [ "$program" = plimsoll-session-start ]; then exec cat "$plugin/hooks/missing.json"; fi
exit 0
