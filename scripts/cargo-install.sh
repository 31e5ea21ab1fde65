#!/usr/bin/env bash
# Installs the programs as `cargo install --git` does, from what is committed here, with an empty HOME and an empty CARGO_HOME; what
# Plimsoll needs from others comes from crates.io. Then the programs set themselves up there, work, and are removed again. The first
# time takes some ten minutes on two cores.
#
# Usage: scripts/cargo-install.sh
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'cargo-install.sh: %s\n' "$1" >&2; exit 1; }
[ $# = 0 ] || fail "no argument is known: $1"
for tool in git jq; do command -v "$tool" >/dev/null || fail "$tool is needed"; done
# macOS has no such program: there it takes as long as it takes.
limited() { if command -v timeout >/dev/null; then command timeout "$@"; else shift; "$@"; fi; }

target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
folder=$target/cargo-install
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
commit=$(git rev-parse HEAD)
begun=$SECONDS
step() { printf '%4d s  %s\n' $((SECONDS - begun)) "$1"; }

rm -rf "$folder/home"
mkdir -p "$folder/home"
# The compiler itself: rustup's own programs look for it in HOME.
compiler=$(dirname "$(rustup which cargo 2>/dev/null || command -v cargo)")
as_nobody() { # program and its arguments: nothing of this machine's user
  (cd "$folder/home" && limited 3600 env -i HOME="$folder/home" PATH="$folder/home/.cargo/bin:$compiler:/usr/local/bin:/usr/bin:/bin" \
    CARGO_TARGET_DIR="$folder/build" LANG=C.UTF-8 "$@")
}
step "cargo install --locked --git file://… plimsoll"
as_nobody cargo install --quiet --locked --git "file://$PWD" --rev "$commit" plimsoll || fail "cargo cannot install it"

step "what is there"
bin=$folder/home/.cargo/bin
names=$(cd "$bin" && LC_ALL=C ls)
[ "$names" = $'plimsoll\nplimsoll-fleet\nplimsoll-hook\nplimsoll-linear\nplimsoll-mcp\nplimsoll-otel' ] || fail "these are not the six programs: $names"
for program in $names; do
  case $program in plimsoll-hook) continue ;; esac
  as_nobody "$program" --version --json |
    jq -e --arg name "$program" --arg version "$version" --arg commit "$commit" '.program == $name and .version == $version and .commit == $commit' >/dev/null ||
    fail "$program does not say which build it is"
done
(cd "$bin" && wc -c plimsoll* | awk '$2 != "total" { printf "        %s %s bytes\n", $2, $1 }')
as_nobody plimsoll init --user >"$folder/init.txt" || fail "init: $(cat "$folder/init.txt")"
! grep -q Careful "$folder/init.txt" || fail "init: $(cat "$folder/init.txt")"
command=$(jq -r '.hooks.Stop[0].hooks[0].command' "$folder/home/.claude/settings.json")
# By a path that an upgrade keeps: an editor may start the client with another PATH.
[ "$command" = "$bin/plimsoll-stop-gate" ] || fail "the hook in the settings is $command"
while read -r hook; do
  [ "$(as_nobody "$hook" version)" = "$hook $version" ] || fail "$hook does not start"
done <crates/hooks/programs.txt
[ "$(as_nobody plimsoll-stop-gate <<<'{}')" = '{}' ] || fail "a hook does not answer"
as_nobody plimsoll doctor --json >"$folder/doctor.json" || true
faults=$(jq -c '[.findings[].code | select(startswith("programs."))]' "$folder/doctor.json")
case $faults in '[]') ;; *) echo "        the doctor names $faults" ;; esac
step "init, the hooks, and the doctor"

as_nobody plimsoll uninstall --user >/dev/null || fail "plimsoll uninstall"
as_nobody cargo uninstall --quiet plimsoll || fail "cargo uninstall"
[ -z "$(find "$bin" -type f)" ] || fail "cargo uninstall has left $(ls "$bin")"
step "removed"
