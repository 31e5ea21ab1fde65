#!/usr/bin/env bash
# Checks that the names of a release are ours: the packages on npm, the crate on crates.io, and the Homebrew tap beside
# `repository` of Cargo.toml. It exits with 1 unless each of them exists and has no owner but those in .github/owners.json, because
# the pages of a release tell people to install what has these names. scripts/release/README.md says how to reserve them.
#
# Usage: scripts/release/names.sh [npm | cargo | tap] …    [default: all three]
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { printf 'names.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
[ $# -gt 0 ] || set -- npm cargo tap
for tool in jq npm curl git; do command -v "$tool" >/dev/null || fail "$tool is needed"; done
# shellcheck source=scripts/release/constants.sh
. scripts/release/constants.sh
owners=${PLIMSOLL_OWNERS:-.github/owners.json}
refused=0
refuse() { printf 'names.sh: %s\n' "$1" >&2; refused=1; }

# Compares the owners of a name with ours. A name that we share with a stranger is not ours: the stranger may publish, too.
compare_owners() { # registry, name, its owners as a JSON list
  local ours foreign
  ours=$(jq -c --arg registry "$1" '.[$registry] // []' "$owners") || fail "$owners is not JSON"
  foreign=$(jq -rn --argjson ours "$ours" --argjson found "$3" '$found - $ours | join(", ")')
  if [ "$ours" = '[]' ]; then refuse "$owners names no owner of ours on $1, so nobody can say whose $2 is"
  elif [ "$3" = '[]' ]; then refuse "$1: $2 has no owner"
  elif [ -n "$foreign" ]; then refuse "$1: $2 belongs to $foreign, who is not in $owners"
  else echo "$1: $2 is ours"
  fi
}
refuse_free() { refuse "$1: $2 is not reserved: anybody may take it (scripts/release/README.md)"; }

check_npm() {
  local name answer
  for name in plimsoll @plimsoll/linux-x64 @plimsoll/linux-arm64 @plimsoll/darwin-x64 @plimsoll/darwin-arm64 \
    @plimsoll/win32-x64 @plimsoll/win32-arm64; do
    if answer=$(npm view "$name" maintainers --json 2>/dev/null); then
      # npm prints a text for each, "name <address>", and no list if there is only one.
      answer=$(jq -c '[if type == "array" then .[] else . end | .name? // sub(" <.*"; "")]' <<<"${answer:-[]}") ||
        fail "npm says something else about $name than its maintainers"
      compare_owners npm "$name" "$answer"
    elif [ "$(jq -r '.error.code? // empty' <<<"$answer" 2>/dev/null)" = E404 ]; then refuse_free npm "$name"
    else fail "npm does not answer about $name: nothing is published before it does"
    fi
  done
}

check_cargo() {
  local answer
  # The registry refuses whoever does not say who asks. `cargo owner --list` says the same, with a token only.
  answer=$(curl --silent --show-error --location --max-time 60 --user-agent "plimsoll-release ($repository)" --write-out '\n%{http_code}' \
    "${PLIMSOLL_CRATES_IO:-https://crates.io}/api/v1/crates/plimsoll/owners") || fail "crates.io does not answer: nothing is published before it does"
  case ${answer##*$'\n'} in
    200)
      answer=$(jq -c '[.users[].login]' <<<"${answer%$'\n'*}") || fail "crates.io says something else than the owners of plimsoll"
      compare_owners crates.io plimsoll "$answer"
      ;;
    404) refuse_free crates.io plimsoll ;;
    *) fail "crates.io answers ${answer##*$'\n'}: nothing is published before it says who owns plimsoll" ;;
  esac
}

# The address has the owner in it, so a tap that exists is that of whoever has the repository.
check_tap() {
  local tap=${repository%/*}/homebrew-plimsoll
  if GIT_TERMINAL_PROMPT=0 git ls-remote --quiet "$tap" HEAD >/dev/null 2>&1; then echo "Homebrew: $tap is there"
  else refuse "Homebrew: there is no tap $tap, or it cannot be read (scripts/release/README.md)"
  fi
}

for part in "$@"; do
  case $part in
    npm) check_npm ;;
    cargo) check_cargo ;;
    tap) check_tap ;;
    *) fail "unknown: $part (npm, cargo, tap)" 2 ;;
  esac
done
exit "$refused"
