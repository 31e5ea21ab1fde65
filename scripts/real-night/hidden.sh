#!/bin/sh
# Says of each tool in the folder that is named whether it is right, by cases that nobody who made it has seen:
# a line with its name and 1 or 0.
cd "$1" || exit 1
right() { # program, and whether each of the cases holds
  name=$1
  shift
  for case; do [ "$case" = 1 ] || { echo "$name 0"; return; }; done
  echo "$name 1"
}
says() { [ "$1" = "$2" ] && echo 1 || echo 0; }
fails() { "bin/$@" >/dev/null 2>&1 && echo 0 || echo 1; }
file=$(mktemp) && printf 'a,b,c\n1,-2,3\n10,20,30\n,5,\n' >"$file"
right slug "$(says "$(echo '  Ünder_the   Sea -- 2nd ed.  ' | LC_ALL=C sed 's/[^ -~]//g' | bin/slug 2>&1)" nder-the-sea-2nd-ed)" \
  "$(says "$(echo 'ABC' | bin/slug 2>&1)" abc)"
right roman "$(says "$(bin/roman 3999 2>&1)" MMMCMXCIX)" "$(says "$(bin/roman 444 2>&1)" CDXLIV)" "$(fails roman 4000)" "$(fails roman x)"
right days "$(says "$(bin/days 2000-02 2>&1)" 29)" "$(says "$(bin/days 1900-02 2>&1)" 28)" "$(says "$(bin/days 2024-09 2>&1)" 30)" "$(fails days 2024)"
right csvsum "$(says "$(bin/csvsum "$file" b 2>&1)" 23)" "$(says "$(bin/csvsum "$file" a 2>&1)" 11)" "$(fails csvsum "$file.none" a)"
right range "$(says "$(bin/range 5,1-3,2-4 2>&1 | paste -sd' ' -)" '1 2 3 4 5')" "$(says "$(bin/range 8 2>&1)" 8)" "$(fails range 3-1-2)"
rm -f "$file"
