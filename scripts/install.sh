#!/usr/bin/env bash
# Installs Plimsoll below a prefix: programs, shell completions, manual pages. --uninstall removes exactly these.
# It works in a checkout (it builds first) and in an unpacked release archive (nothing to build).
set -euo pipefail
# Nobody else may write what is installed, also where everybody may write what this user makes. A stricter umask stays.
umask go-w

usage() {
  cat <<'TEXT'
Usage: install.sh [--prefix DIR] [--uninstall]

  --prefix DIR   where to install [default: ~/.local]
                   DIR/bin                 the programs
                   DIR/share               completions for bash, zsh and fish, manual pages
  --uninstall    remove what was installed there, and nothing else
  --help         this text

PLIMSOLL_BIN_DIR names a folder of programs that are already built.
TEXT
}
fail() { printf 'install.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
wrong() { printf 'install.sh: %s\n' "$1" >&2; usage >&2; exit 2; }

prefix="" uninstall=""
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ -n "${2:-}" ] || wrong "--prefix needs a folder"; prefix=$2; shift 2 ;;
    --prefix=?*) prefix=${1#--prefix=}; shift ;;
    --uninstall) uninstall=yes; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown argument: $1" ;;
  esac
done
if [ -z "$prefix" ]; then
  [ -n "${HOME:-}" ] || fail "HOME is not set: give a folder with --prefix DIR"
  prefix=$HOME/.local
fi
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
case $prefix in *$'\n'*) fail "a prefix cannot contain a line break" ;; esac
# One spelling of one place, by its words alone: --uninstall compares it, and macOS's realpath cannot do it.
plain_path() {
  awk 'BEGIN {
    count = split(ARGV[1], parts, "/")
    for (n = 1; n <= count; n++) {
      if (parts[n] == "" || parts[n] == ".") continue
      if (parts[n] == "..") { if (kept > 0) kept--; continue }
      left[++kept] = parts[n]
    }
    for (n = 1; n <= kept; n++) plain = plain "/" left[n]
    print (plain == "" ? "/" : plain)
  }' "$1"
}
prefix=$(plain_path "$prefix")

# What this script installed: one path per line. First folders, with a slash at the end and each after its
# parent; then this list, so that it goes after the files; then the files.
list=${prefix%/}/share/plimsoll/installed.txt

# --- uninstall ----------------------------------------------------------------------------------------------------

# The list lies below the prefix, where others may have been able to write it: what is removed does not depend on it alone.

# True for a path without empty, `.` and `..` parts, below the prefix by its words.
is_plain_path() {
  case $1/ in *//* | */./* | */../*) return 1 ;; esac
  case $1 in "${prefix%/}"/?*) ;; *) return 1 ;; esac
}
# True where the folder of a file lies below the prefix, wherever links lead.
is_inside_prefix() {
  local folder root
  root=$(cd -P -- "$prefix" 2>/dev/null && pwd -P) && folder=$(cd -P -- "$(dirname "$1")" 2>/dev/null && pwd -P) || return 1
  case $folder/ in "${root%/}"/*) ;; *) return 1 ;; esac
}
# True for a file under a name that this script gives. Its folder may be a link of the user's that leads out of the prefix.
is_our_name() {
  case ${1#"${prefix%/}"/} in
    bin/plimsoll*/* | share/man/man1/plimsoll*/*) return 1 ;;
    bin/plimsoll* | share/man/man1/plimsoll*.1 | share/plimsoll/installed.txt) ;;
    share/bash-completion/completions/plimsoll | share/zsh/site-functions/_plimsoll | share/fish/vendor_completions.d/plimsoll.fish) ;;
    *) return 1 ;;
  esac
}
# True for a folder that an installation can have made: below the prefix, the prefix, or one above it.
may_remove_folder() { # without the slash at its end
  case $prefix/ in "$1"/*) return 0 ;; esac
  is_plain_path "$1" && is_inside_prefix "$1"
}
may_remove_file() { is_plain_path "$1" && { is_our_name "$1" || is_inside_prefix "$1"; }; }

# Refuses a list that somebody else can have written.
check_list() {
  [ ! -L "$list" ] || fail "$list is a link, which Plimsoll does not make: look where it leads, and remove it"
  # `stat` has other options on macOS.
  case $(LC_ALL=C ls -ld -- "$list") in
    ????????w*) fail "everybody can write $list, which says what is removed: read it, then run: chmod o-w '$list'" ;;
  esac
}

# Removes what the given list names and the second does not.
remove_listed() { # list, list of what stays
  local path
  # From the end: a folder after what lies in it.
  awk '{ line[NR] = $0 } END { for (n = NR; n > 0; n--) print line[n] }' "$1" | while IFS= read -r path; do
    if grep -qxF -- "$path" "$2"; then continue; fi
    [ -e "${path%/}" ] || [ -L "${path%/}" ] || continue
    case $path in
      */)
        if may_remove_folder "${path%/}"; then
          # Without the slash, with which some systems follow a link. It stays where somebody else's file lies in it.
          rmdir -- "${path%/}" 2>/dev/null || true
          continue
        fi
        ;;
      *)
        if may_remove_file "$path"; then
          [ -d "$path" ] && [ ! -L "$path" ] || rm -f -- "$path"
          continue
        fi
        ;;
    esac
    printf 'install.sh: not removed, because it is no file or folder below %s that this script made: %s\n' "$prefix" "$path" >&2
  done
}

if [ -n "$uninstall" ]; then
  [ -L "$list" ] || [ -f "$list" ] || fail "nothing is installed in $prefix (there is no $list); with another prefix: --prefix DIR --uninstall"
  check_list
  grep -qxF -- "$list" "$list" || fail "$list belongs to another folder, $(grep -m 1 '/bin/plimsoll$' "$list" || true): was $prefix moved?"
  copy=$(mktemp)
  trap 'rm -f "$copy"' EXIT
  cp "$list" "$copy"
  remove_listed "$copy" /dev/null
  echo "Plimsoll has been removed from $prefix."
  echo "Settings are not changed. If they still have hooks of Plimsoll, install it again, and run \`plimsoll uninstall\` first."
  exit 0
fi

# --- what there is to install -------------------------------------------------------------------------------

here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${PLIMSOLL_BIN_DIR:-}" ]; then
  bin=$(cd "$PLIMSOLL_BIN_DIR" && pwd) || fail "PLIMSOLL_BIN_DIR is not a folder: $PLIMSOLL_BIN_DIR"
elif [ -x "$here/bin/plimsoll" ]; then
  bin=$here/bin
else
  [ -x "$here/build.sh" ] || fail "neither a checkout nor a release archive: $here"
  echo "building Plimsoll (the first time takes a few minutes)" >&2
  # So that `plimsoll --version --json` can say it.
  PLIMSOLL_COMMIT=$(git -C "$here" describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || true)
  export PLIMSOLL_COMMIT
  bin=$("$here/build.sh")
fi

programs=(plimsoll plimsoll-fleet plimsoll-linear plimsoll-mcp plimsoll-otel)
if [ -f "$here/../crates/hooks/programs.txt" ]; then
  while read -r program; do programs+=("$program"); done <"$here/../crates/hooks/programs.txt"
else
  for program in "$bin"/*; do
    case " ${programs[*]} " in
      *" ${program##*/} "*) ;;
      # The file of the hooks under its own name is for cargo and npm.
      *) [ "${program##*/}" = plimsoll-hook ] || programs+=("${program##*/}") ;;
    esac
  done
fi
for program in "${programs[@]}"; do
  [ -x "$bin/$program" ] || fail "$bin lacks $program"
done

stage=$(mktemp -d)
drafts=() listed=""
tidy() {
  [ ${#drafts[@]} -eq 0 ] || rm -f -- "${drafts[@]}"
  if [ -z "$listed" ] && [ -f "$stage/now" ]; then
    # It came to nothing: the new folders go again.
    awk '/\/$/' "$stage/now" >"$stage/made"
    remove_listed "$stage/made" "$stage/before"
  fi
  rm -rf "$stage"
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Completions and pages come from the program itself, so they are those of this version.
"$bin/plimsoll" --version >"$stage/version" || fail "$bin/plimsoll does not run on this machine"
pages=$("$bin/plimsoll" generate man --list)
for page in $pages; do "$bin/plimsoll" generate man "$page" >"$stage/$page.1"; done
for shell in bash zsh fish; do "$bin/plimsoll" generate completions "$shell" >"$stage/$shell"; done

# --- install -----------------------------------------------------------------------------------------------------

: >"$stage/before"
if [ -L "$list" ] || [ -f "$list" ]; then
  check_list
  cp "$list" "$stage/before"
fi
# Folders that an earlier installation made are still ours.
grep '/$' "$stage/before" >"$stage/now" || true
folder() { # every folder that is not there yet, and its name onto the list
  [ -d "$1" ] && return
  folder "$(dirname "$1")"
  mkdir -- "$1" || fail "cannot make the folder $1"
  printf '%s/\n' "$1" >>"$stage/now"
}

from=() to=() modes=()
plan() { from+=("$1"); to+=("${prefix%/}/$2"); modes+=("$3"); }
# Modes without "for whom": the umask decides that.
for program in "${programs[@]}"; do plan "$bin/$program" "bin/$program" =rwx; done
plan "$stage/bash" share/bash-completion/completions/plimsoll =rw
plan "$stage/zsh" share/zsh/site-functions/_plimsoll =rw
plan "$stage/fish" share/fish/vendor_completions.d/plimsoll.fish =rw
for page in $pages; do plan "$stage/$page.1" "share/man/man1/$page.1" =rw; done

# First write every file next to its destination, then rename: a full disk changes nothing, and a program that is running
# continues with the file it was started from.
for number in "${!from[@]}"; do
  folder "$(dirname "${to[$number]}")"
  [ ! -d "${to[$number]}" ] || fail "${to[$number]} is a folder"
  draft=${to[$number]}.new.$$
  drafts+=("$draft")
  # Several names of one file stay that: the hook programs.
  if [ "$number" -gt 0 ] && [ "${from[$number]}" -ef "${from[$number - 1]}" ]; then
    ln -- "${to[$number - 1]}.new.$$" "$draft" 2>/dev/null || cp -- "${from[$number]}" "$draft" || fail "cannot write $draft"
  else
    cp -- "${from[$number]}" "$draft" || fail "cannot write $draft"
  fi
  chmod "${modes[$number]}" "$draft"
  printf '%s\n' "${to[$number]}" >>"$stage/now"
done
folder "$(dirname "$list")"
# A folder that was removed by hand and created again is named twice.
{ awk '/\/$/ && !seen[$0]++' "$stage/now"; printf '%s\n' "$list"; grep -v '/$' "$stage/now"; } >"$stage/ordered"
mv -f "$stage/ordered" "$stage/now"
# Before the renames: whatever happens from here on, --uninstall finds everything.
{ cat "$stage/now"; grep -vxF -f "$stage/now" "$stage/before" || true; } >"$list.new.$$"
drafts+=("$list.new.$$")
mv -f -- "$list.new.$$" "$list"
listed=yes
for number in "${!from[@]}"; do mv -f -- "${to[$number]}.new.$$" "${to[$number]}"; done
# What an older version had and this one has not.
remove_listed "$stage/before" "$stage/now"
cp -- "$stage/now" "$list.new.$$"
mv -f -- "$list.new.$$" "$list"

# --- where it is --------------------------------------------------------------------------------------------

shown() { # a path as people write it
  case $1 in "${HOME:-/nowhere}"/*) printf '~%s' "${1#"$HOME"}" ;; *) printf '%s' "$1" ;; esac
}
echo "$(cat "$stage/version") is installed:"
echo "  programs      $(shown "$prefix/bin"): plimsoll, plimsoll-fleet, plimsoll-linear, plimsoll-mcp, plimsoll-otel and $((${#programs[@]} - 5)) hook programs"
echo "  completions   $(shown "$prefix/share"): bash, zsh, fish (for the next shell you open)"
echo "  manual pages  $(shown "$prefix/share/man"): man plimsoll, man plimsoll-run, …"
shell=$(basename "${SHELL:-sh}")
case ":${PATH:-}:" in
  *":$prefix/bin:"*)
    first=$(command -v plimsoll || true)
    [ "$first" = "$prefix/bin/plimsoll" ] || echo "Warning: another plimsoll comes first on your PATH: $first"
    ;;
  *)
    echo "$(shown "$prefix/bin") is not on your PATH. Add this line and open a new shell:"
    case $shell in
      fish) echo "  fish_add_path '$prefix/bin'    # ~/.config/fish/config.fish" ;;
      zsh) echo "  export PATH=\"$prefix/bin:\$PATH\"    # ~/.zshrc" ;;
      bash) echo "  export PATH=\"$prefix/bin:\$PATH\"    # ~/.bashrc" ;;
      *) echo "  export PATH=\"$prefix/bin:\$PATH\"    # ~/.profile" ;;
    esac
    ;;
esac
if [ "$shell" = zsh ]; then
  echo "zsh finds the completions with this line before compinit in ~/.zshrc, if it does not already:"
  echo "  fpath=('$prefix/share/zsh/site-functions' \$fpath)"
fi
echo "Next: plimsoll init"
