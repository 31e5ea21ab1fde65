#!/bin/sh
# Becomes the hook program with the name of this file: an installed one, or else the plugin's own.
# The plugin has a copy of hooks-config/plugin-hook.sh for each program, because a plugin that is copied may lose links.

# A client before 2.1.139 passes no arguments. Without this one the program would not yield to entries in settings files.
case " $* " in *" --plugin "*) ;; *) exit 0 ;; esac
program=${0##*/}
plugin=${0%/*}/..
# A client that was not started in a terminal lacks these folders. An empty PATH must not come to mean the project's folder.
PATH="${PATH:+$PATH:}$HOME/.local/bin:$HOME/.cargo/bin"
if command -v "$program" >/dev/null; then exec "$program" "$@"; fi
# Only the plugin of a release has programs.
if [ -d "$plugin/programs" ]; then
  own=$plugin/programs/$(uname -sm)/$program
  if [ -x "$own" ]; then exec "$own" "$@"; fi
fi
if [ "$program" = plimsoll-session-start ]; then exec cat "$plugin/hooks/missing.json"; fi
exit 0
