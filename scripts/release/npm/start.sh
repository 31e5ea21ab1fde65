#!/bin/sh
# Becomes the program for this machine. Node only finds it: as its parent, node would undo `nohup`, and a Ctrl-C would come twice.
self=$0
while [ -L "$self" ]; do
  to=$(readlink "$self")
  case $to in /*) self=$to ;; *) self=$(dirname "$self")/$to ;; esac
done
program=$(node "$(dirname "$self")/find.js" </dev/null) || exit
exec "$program" "$@"
