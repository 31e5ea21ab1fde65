#!/bin/sh
# Installs a release of Plimsoll: downloads the archive for this machine, checks it against SHA256SUMS, unpacks it into a folder
# of its own version and links the programs. scripts/release.sh writes the version and the address into it.
#
# The whole script is functions, and the last line starts them: of a download that broke off, nothing runs.
set -eu

VERSION=@VERSION@
REPOSITORY=@REPOSITORY@
TARGETS='@TARGETS@'

usage() {
  cat <<TEXT
Usage: install.sh [--version VERSION] [--from URL] [--uninstall]

  --version VERSION  which release [default: $VERSION]
  --from URL         the folder with the archives and SHA256SUMS, https only [default: the release's downloads]
  --uninstall        remove all versions that this script installed, and their links

The programs go to \${XDG_DATA_HOME:-~/.local/share}/plimsoll/versions/VERSION and are linked from ~/.local/bin; completions and
manual pages are linked from \${XDG_DATA_HOME:-~/.local/share}.
TEXT
}

fail() { printf 'install.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
wrong() { printf 'install.sh: %s\n' "$1" >&2; usage >&2; exit 2; }
need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is needed, and is not on the PATH"; }

# The target that a release is built for and that runs here.
target_of_this_machine() {
  system=$(uname -s) machine=$(uname -m)
  # Under Rosetta an Apple processor says that it is Intel's.
  if [ "$system" = Darwin ] && [ "$(sysctl -n hw.optional.arm64 2>/dev/null || true)" = 1 ]; then machine=arm64; fi
  case $machine in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
  esac
  case $system in
    Linux) target=$machine-unknown-linux-musl ;;
    Darwin) target=$machine-apple-darwin ;;
    *) target=$machine-$system ;;
  esac
  case $system in MINGW* | MSYS* | CYGWIN* | Windows*) fail "there are no programs for Windows yet; use WSL" ;; esac
  case " $TARGETS " in
    *" $target "*) ;;
    *) fail "there is no archive for this machine ($(uname -s) $(uname -m)); there are: $TARGETS. With Rust: cargo install --locked --git $REPOSITORY plimsoll" ;;
  esac
}

# Only https; plain http only from this machine itself, for tests.
check_address() {
  case $1 in
    # What stands before an @ is a name, and no place.
    *@*) wrong "the address may not have an @: $1" ;;
    https://?*) schemes='=https' ;;
    http://127.0.0.1:*/* | http://localhost:*/* | http://\[::1\]:*/*) schemes='=http' ;;
    *) wrong "the address must begin with https://: $1" ;;
  esac
}
download() { # file, where to
  curl --proto "$schemes" --proto-redir "$schemes" --tlsv1.2 --fail --silent --show-error --location --connect-timeout 30 \
    --output "$2" "$from/$1" || fail "cannot download $from/$1"
}
# Linux has the first, macOS the second.
find_sha256() {
  if command -v sha256sum >/dev/null 2>&1; then sha256=sha256sum
  elif command -v shasum >/dev/null 2>&1; then sha256='shasum -a 256'
  else fail "sha256sum or shasum is needed to check the download"
  fi
}

set_folders() {
  [ -n "${HOME:-}" ] || fail "HOME is not set"
  case ${XDG_DATA_HOME:-} in /*) data=$XDG_DATA_HOME ;; *) data=$HOME/.local/share ;; esac
  versions=$data/plimsoll/versions
  bin=$HOME/.local/bin
}
# The folders that an installation would make, the deepest first: if it comes to nothing they go again.
missing_folders() {
  folder=$versions
  while [ ! -e "$folder" ]; do printf '%s\n' "$folder"; folder=$(dirname "$folder"); done
}
tidy() {
  # Ended between two renames: what was there comes back.
  if [ -e "$draft/before" ] && [ ! -e "$versions/$version" ]; then mv -- "$draft/before" "$versions/$version"; fi
  rm -rf -- "$draft"
  [ -z "$made" ] || printf '%s\n' "$made" | while IFS= read -r folder; do rmdir -- "$folder" 2>/dev/null || true; done
}
make_folder() { mkdir -p -- "$1" 2>/dev/null || fail "cannot make the folder $1"; }

# A link of ours leads into the folder of the versions.
is_ours() { [ -L "$1" ] && case $(readlink "$1") in "$versions"/*) true ;; *) false ;; esac; }
# npm's `plimsoll init` makes links through the link to its version: they are replaced, and leave with that installation.
is_inits() { [ -L "$1" ] && case $(readlink "$1") in "$data/plimsoll/bin"/*) true ;; *) false ;; esac; }
check_free() {
  for link in "$@"; do
    if [ -e "$link" ] || [ -L "$link" ]; then
      is_ours "$link" || is_inits "$link" || fail "$link is there and not of this script: remove that installation first, or the file"
    fi
  done
}
# Where each file of a version is linked from: two words a line would break at a space, so one line each.
links_of() { # a version's folder
  for file in "$1"/bin/*; do printf '%s\n%s\n' "bin/${file##*/}" "$bin/${file##*/}"; done
  printf '%s\n' completions/plimsoll.bash "$data/bash-completion/completions/plimsoll" \
    completions/_plimsoll "$data/zsh/site-functions/_plimsoll" \
    completions/plimsoll.fish "$data/fish/vendor_completions.d/plimsoll.fish"
  for file in "$1"/man/man1/*; do printf '%s\n%s\n' "man/man1/${file##*/}" "$data/man/man1/${file##*/}"; done
}
# Links of ours, but for those into a version that stays.
remove_links() { # a version, or nothing
  for link in "$bin"/plimsoll* "$data"/bash-completion/completions/plimsoll "$data"/zsh/site-functions/_plimsoll \
    "$data"/fish/vendor_completions.d/plimsoll.fish "$data"/man/man1/plimsoll*; do
    is_ours "$link" || continue
    case $(readlink "$link") in "$versions/${1:-/}/"*) ;; *) rm -f -- "$link" ;; esac
  done
}

uninstall() {
  [ -d "$versions" ] || fail "nothing is installed in $versions"
  remove_links
  # What npm's `plimsoll init` copied there has no completions, and settings may name it.
  for folder in "$versions"/*; do
    if [ -d "$folder/completions" ]; then rm -rf -- "$folder"
    elif [ -d "$folder" ]; then echo "Left: $folder, which npm's \`plimsoll init\` made."
    fi
  done
  # It may have led to a version that is gone.
  [ -e "$data/plimsoll/bin" ] || rm -f -- "$data/plimsoll/bin"
  rmdir -- "$versions" "$data/plimsoll" 2>/dev/null || true
  echo "Plimsoll has been removed: what this script put into $versions, and the links to it."
  echo "Settings are not changed. If they still have hooks of Plimsoll, install it again, and run \`plimsoll uninstall\` first."
}

unpack() { # the archive; checked before anything is unpacked
  wanted=$(awk -v name="$archive" '$2 == name || $2 == "*" name { print $1 }' "$draft/SHA256SUMS")
  [ -n "$wanted" ] || fail "SHA256SUMS of $from does not name $archive"
  found=$($sha256 <"$draft/$archive" | cut -d' ' -f1)
  [ "$wanted" = "$found" ] || fail "$archive is not what SHA256SUMS says ($found, and not $wanted): nothing was installed"
  tar -xzf "$draft/$archive" -C "$draft" || fail "cannot unpack $archive"
  unpacked=$draft/plimsoll-$version-$target
  told=$("$unpacked/bin/plimsoll" --version) || fail "the program does not run on this machine: nothing was installed"
  [ "$told" = "plimsoll $version" ] || fail "the archive of $version has \"$told\": nothing was installed"
}

# From here on each step is one rename: whoever starts a program gets the old one or the new one. Only where the same version is
# there with other bytes, there is a moment between two renames.
place() {
  if [ -e "$versions/$version" ] && ! diff -r "$unpacked" "$versions/$version" >/dev/null 2>&1; then
    mv -- "$versions/$version" "$draft/before" || fail "cannot replace $versions/$version"
  fi
  [ -e "$versions/$version" ] || mv -- "$unpacked" "$versions/$version" || fail "cannot write $versions/$version"
  while IFS= read -r file && IFS= read -r link; do
    make_folder "$(dirname "$link")"
    new=$link.new.$$
    { ln -s -- "$versions/$version/$file" "$new" && mv -f -- "$new" "$link"; } || fail "cannot write $link"
  done <"$draft/links"
  # What an earlier version had and this one has not.
  remove_links "$version"
}

install() {
  need curl; need tar; need awk
  find_sha256
  target_of_this_machine
  check_address "$from"
  archive=plimsoll-$version-$target.tar.gz
  made=$(missing_folders)
  make_folder "$versions"
  draft=$(mktemp -d "$versions/.new.XXXXXX") || fail "cannot write in $versions"
  trap tidy EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  download SHA256SUMS "$draft/SHA256SUMS"
  download "$archive" "$draft/$archive"
  unpack
  links_of "$unpacked" >"$draft/links"
  while IFS= read -r file && IFS= read -r link; do check_free "$link"; done <"$draft/links"
  place
  report
}

report() {
  echo "plimsoll $version is installed in $versions/$version."
  case ":${PATH:-}:" in
    *":$bin:"*)
      first=$(command -v plimsoll || true)
      [ "$first" = "$bin/plimsoll" ] || echo "Warning: another plimsoll comes first on your PATH: $first"
      ;;
    *)
      echo "$bin is not on your PATH. Add this line to your shell's start-up file and open a new shell:"
      case $(basename "${SHELL:-sh}") in
        fish) echo "  fish_add_path '$bin'" ;;
        *) echo "  export PATH=\"$bin:\$PATH\"" ;;
      esac
      ;;
  esac
  echo "Next: plimsoll init"
}

main() {
  version=$VERSION from="" action=install
  while [ $# -gt 0 ]; do
    case $1 in
      --version) [ -n "${2:-}" ] || wrong "--version needs a value"; version=$2; shift 2 ;;
      --from) [ -n "${2:-}" ] || wrong "--from needs an address"; from=${2%/}; shift 2 ;;
      --uninstall) action=uninstall; shift ;;
      --help | -h) usage; exit 0 ;;
      *) wrong "unknown argument: $1" ;;
    esac
  done
  case $version in *[!0-9A-Za-z.+-]* | .* | '') wrong "this is no version: $version" ;; esac
  from=${from:-$REPOSITORY/releases/download/v$version}
  # Nobody else may write what is installed. A stricter umask of the user's stays.
  umask go-w
  set_folders
  "$action"
}

main "$@"
