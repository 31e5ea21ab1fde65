#!/usr/bin/env bash
# Starts the Windows program of this script's name under wine, with the paths that a Windows user would have. scripts/wine.sh puts it
# under the name of each program into a folder beside the prefix, where the tests find it as PLIMSOLL_BIN_DIR.
#
# A test's world lies in the prefix's drive_c: /…/drive_c/t/x is C:\t\x. That is replaced at the beginning of arguments, of variables
# and of the strings of JSON at standard input. What the program prints and writes stays as it is.
[ "$(uname -s)" = Linux ] || { echo "start.sh is for Linux: Windows needs no wine" >&2; exit 1; }

folder=${0%/*}
name=${0##*[/\\]} name=${name%.exe}
wine_folder=$(cd "$folder/.." && pwd -P) || exit 1
drive=$wine_folder/prefix/drive_c
# A test may start a copy of the program, which lies elsewhere.
program=${PLIMSOLL_WINDOWS_PROGRAM:-$drive/plimsoll/$name.exe}
IFS= read -r -n 2 magic <"$program" && [ "$magic" = MZ ] || { echo "start.sh: $program is no program for Windows" >&2; exit 1; }

# Which test this is for: one of the processes above has it from nextest. scripts/wine.sh compares these names with its list.
test_name="" process=$PPID
while [ -z "$test_name" ] && [ "$process" -gt 1 ]; do
  while IFS= read -r -d '' variable; do
    case $variable in NEXTEST_TEST_NAME=*) test_name=${variable#*=} ;; esac
  done 2>/dev/null <"/proc/$process/environ" || break
  while read -r key value; do [ "$key" != PPid: ] || process=$value; done <"/proc/$process/status" || break
done
printf '%s %s\n' "${test_name:-unknown}" "$name" >>"$wine_folder/started"

in_windows() { # a path, or anything else, which stays
  windows=$1
  case $1 in "$drive" | "$drive"/*) windows=C:${1#"$drive"} windows=${windows//\//\\} ;; esac
}
arguments=()
for argument; do
  in_windows "$argument"
  arguments+=("$windows")
done
while IFS= read -r variable; do
  in_windows "${!variable}"
  [ "$windows" = "${!variable}" ] || export "IN_WINE_$variable=$windows"
done < <(compgen -e)
# These have other names in Windows, and wine does not pass on HOME.
# The worlds have settings and state where Linux has them, which the XDG variables say on every system.
in_windows "$HOME"
export IN_WINE_USERPROFILE=$windows "IN_WINE_APPDATA=$windows\\AppData\\Roaming" "IN_WINE_LOCALAPPDATA=$windows\\AppData\\Local"
[ -n "${XDG_CONFIG_HOME:-}" ] || export "IN_WINE_XDG_CONFIG_HOME=$windows\\.config"
[ -n "${XDG_STATE_HOME:-}" ] || export "IN_WINE_XDG_STATE_HOME=$windows\\.local\\state"
[ -n "${XDG_DATA_HOME:-}" ] || export "IN_WINE_XDG_DATA_HOME=$windows\\.local\\share"
in_windows "${TMPDIR:-/tmp}"
export IN_WINE_TEMP=$windows IN_WINE_TMP=$windows
export IN_WINE_PATH='C:\plimsoll;C:\windows\system32;C:\windows'
unset IN_WINE_HOME

# shellcheck source=scripts/wine/environment.sh
. "$(dirname "$(readlink -f "$0")")/environment.sh"
# shellcheck disable=SC2016  # perl's variables
# HOME stays: by it the bench recognizes what a test has left.
TMPDIR=$wine_folder exec "$WINELOADER" "$program" "${arguments[@]}" < <(DRIVE=$drive exec perl -pe '
  BEGIN { $| = 1; $drive = quotemeta $ENV{DRIVE} }
  s{"$drive((?:/[^"\\]*)?)"}{ my $path = $1; $path =~ s{/}{\\\\}g; qq("C:$path") }ge')
