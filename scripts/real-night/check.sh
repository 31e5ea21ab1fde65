#!/bin/sh
# Tests the tools that exist. Exit 1 if one of them is wrong.
cd "$(dirname "$0")" || exit 1
failed=0
is() { # program, what it should print, and what it was called with is in $got
  [ "$got" = "$2" ] || { echo "bin/$1: expected \"$2\", got \"$got\""; failed=1; }
}
fails() { # program, arguments
  "bin/$@" >/dev/null 2>&1 && { echo "bin/$*: should fail"; failed=1; }
}
if [ -e bin/slug ]; then got=$(echo 'Hello, World!' | bin/slug); is slug hello-world; fi
if [ -e bin/roman ]; then got=$(bin/roman 14); is roman XIV; fails roman 0; fi
if [ -e bin/days ]; then got=$(bin/days 2025-02); is days 28; fails days 2025-13; fi
if [ -e bin/csvsum ]; then
  file=$(mktemp) && printf 'name,hours\nann,3\nbob,4\n' >"$file"
  got=$(bin/csvsum "$file" hours); is csvsum 7; fails csvsum "$file" minutes
  rm -f "$file"
fi
if [ -e bin/range ]; then got=$(bin/range 1-3,7 | paste -sd' ' -); is range "1 2 3 7"; fails range 3-x; fi
exit $failed
