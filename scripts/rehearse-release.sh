#!/usr/bin/env bash
# Rehearses a release from end to end, on this machine alone: makes the archives and packages of this version and of a next one, serves
# them on loopback, and in an empty HOME installs, uses, upgrades and removes Plimsoll by each way that docs/start.md names and that
# runs here: the download script, npm and npx, the plugin. The client is the real one. The first time takes some fifteen minutes on
# two cores, because both versions are compiled.
#
# Usage: scripts/rehearse-release.sh
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "rehearse-release.sh is for Linux: release.sh, which packs the archives, is" >&2; exit 1; }
cd "$(dirname "$0")/.."

begun=$SECONDS
step() { printf '%4d s  %s\n' $((SECONDS - begun)) "$1"; }
told() { printf '        %s\n' "$1"; }
fail() { printf 'rehearse-release.sh: %s\n' "$1" >&2; exit 1; }
[ $# = 0 ] || fail "no argument is known: $1"
for tool in curl git jq npm python3; do command -v "$tool" >/dev/null || fail "$tool is needed"; done

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
next=${version%.*}.$((${version##*.} + 1))
folder=${CARGO_TARGET_DIR:-$PWD/target}/rehearsal
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
www=$folder/www
claude=$(scripts/client.sh)
rm -rf "$www" "$folder/next" "$folder/plugin"
mkdir -p "$www" "$folder/next"

# --- two releases -------------------------------------------------------------------------------------------------

release() { # version; in its sources
  scripts/release.sh --out "$www/v$1" >/dev/null
  scripts/release/packages.sh --out "$www/v$1" >/dev/null
}
step "the release $version"
release "$version"
(cd "$www/v$version" && for file in *; do told "$file"; done)
step "the release $next: the same sources with another version"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --no-dereference -t "$folder/next" 2>/dev/null || true
(
  cd "$folder/next"
  sed -i "0,/^version = \"$version\"/s//version = \"$next\"/" Cargo.toml
  export CARGO_TARGET_DIR=$folder/build
  cargo update --quiet --workspace --offline
  release "$next"
)

# --- a server, and a machine with nothing on it -------------------------------------------------------------------

coproc server { exec python3 scripts/release/registry.py "$www"; }
# The server ends with its standard input.
trap 'exec {server[1]}>&- || true' EXIT
read -r address <&"${server[0]}"
home=""
new_home() { # name
  home=$folder/home-$1
  rm -rf "$home"
  mkdir -p "$home/project"
  git -C "$home/project" init -q
  printf 'registry=%s/npm/\n//%s/npm/:_authToken=rehearsal\nupdate-notifier=false\nfund=false\naudit=false\nprefix=%s/npm\n' \
    "$address" "${address#http://}" "$home" >"$home/.npmrc"
}
node=$(dirname "$(command -v node)")
# Programs of this machine's user are not on the PATH.
in_home() { # program and its arguments
  (cd "$home/project" && timeout 300 env -i HOME="$home" PATH="$home/.local/bin:$home/npm/bin:$(dirname "$claude"):$node:/usr/local/bin:/usr/bin:/bin" SHELL=/bin/bash \
    LANG=C.UTF-8 "$@")
}
says() { # what is to be printed, program and its arguments
  local wanted=$1 printed
  shift
  printed=$(in_home "$@") || fail "$*: $printed"
  case $printed in *"$wanted"*) ;; *) fail "$* does not say \"$wanted\": $printed" ;; esac
}
# The hooks of the user's settings start, also for a client with an empty PATH, and are those of a version.
check_hooks() { # version
  local command count=0
  while IFS= read -r command; do
    count=$((count + 1))
    printed=$(cd "$home/project" && env -i HOME="$home" PATH= /bin/sh -c "${command%% --*} version" </dev/null 2>&1) ||
      fail "the hook does not start without a PATH: $command: $printed"
    case $printed in *" $1") ;; *) fail "$command is not of version $1: $printed" ;; esac
  done < <(jq -r '[.hooks[][].hooks[].command] | unique[]' "$home/.claude/settings.json")
  told "$count hooks start with an empty PATH, all of version $1"
}
check_doctor() {
  local findings
  in_home plimsoll doctor --json >"$folder/doctor.json" || true
  findings=$(jq -c '[.findings[] | select(.severity == "problem") | .code]' "$folder/doctor.json")
  [ "$findings" = '[]' ] || fail "the doctor finds $findings"
  told "the doctor finds no fault"
}
play_demo() {
  in_home plimsoll demo --client "$claude" >"$folder/demo.txt" 2>&1 || fail "the demo: $(tail -n 20 "$folder/demo.txt")"
  told "$(grep -c '^✓' "$folder/demo.txt") checks of a whole run with the real client pass"
}
# Everything that is left in HOME, without what npm and the client keep for themselves.
check_nothing_is_left() {
  local left
  left=$(cd "$home" && find . \( -path ./project -o -path ./.npm -o -path ./.npmrc -o -path ./npm -o -path ./.claude.json -o -path ./.claude/plugins -o -path ./.cache \) -prune -o ! -type d -print |
    grep -v -e '^\./\.claude\.json\.backup' -e '^\./\.claude/backups/' || true)
  [ -z "$left" ] || fail "this is left in HOME: $left"
  told "nothing is left"
}

# --- the download script ------------------------------------------------------------------------------------------

new_home script
install() { # version
  in_home sh -c "curl -fsSL '$address/v$1/install.sh' | sh -s -- --from '$address/v$1'" >"$folder/installed.txt" || fail "install.sh: $(cat "$folder/installed.txt")"
}
step "the download script: install $version, init, a run"
install "$version"
says "plimsoll $version" plimsoll --version
in_home plimsoll init --user >/dev/null
check_hooks "$version"
check_doctor
play_demo
step "the download script: upgrade to $next"
install "$next"
says "plimsoll $next" plimsoll --version
in_home plimsoll init --user >/dev/null
check_hooks "$next"
check_doctor
step "the download script: remove"
in_home plimsoll uninstall --user >/dev/null
in_home sh -c "curl -fsSL '$address/v$next/install.sh' | sh -s -- --uninstall" >/dev/null
check_nothing_is_left

# --- npm ----------------------------------------------------------------------------------------------------------

publish() { # version
  local file
  # The main package last: it names the others.
  for file in "$www/v$1"/plimsoll-*-"$1".tgz "$www/v$1/plimsoll-$1.tgz"; do
    case $file in *-plugin-*) continue ;; esac
    in_home npm publish --silent --access public "$file" >/dev/null || fail "npm publish $file"
    told "published ${file##*/}"
  done
}
new_home npx
step "npm: publish $version; npx plimsoll init"
publish "$version"
in_home npx --yes plimsoll init --user >/dev/null
says "plimsoll $version" plimsoll --version
says "plimsoll-fleet $version" plimsoll-fleet --version
check_hooks "$version"
check_doctor
play_demo
step "npm: publish $next; npx plimsoll@latest init"
publish "$next"
in_home npx --yes plimsoll@latest init --user >/dev/null
says "plimsoll $next" plimsoll --version
check_hooks "$next"
check_doctor
step "npm: npm's cache is removed, and so is Plimsoll"
rm -rf "$home/.npm"
check_hooks "$next"
in_home plimsoll uninstall --user >/dev/null
[ ! -e "$home/.local/bin/plimsoll" ] || fail "the link is left: $home/.local/bin/plimsoll"
rm -rf "$home/.local/share/plimsoll"
check_nothing_is_left

new_home npm
step "npm: npm install -g plimsoll, upgrade, remove"
in_home npm install --silent -g "plimsoll@$version" >/dev/null
in_home plimsoll init --user >/dev/null
check_hooks "$version"
in_home npm install --silent -g plimsoll@latest >/dev/null
in_home plimsoll init --user >/dev/null
says "plimsoll $next" plimsoll --version
check_hooks "$next"
in_home plimsoll uninstall --user >/dev/null
in_home npm uninstall --silent -g plimsoll >/dev/null
rm -rf "$home/.local/share/plimsoll"
check_nothing_is_left

# --- the plugin ---------------------------------------------------------------------------------------------------

# The contents of the archive, as the newest commit of the plugin's repository.
commit_plugin() { # version
  mkdir -p "$folder/plugin"
  find "$folder/plugin" -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +
  tar -xzf "$www/v$1/plimsoll-plugin-$1.tar.gz" --strip-components 1 -C "$folder/plugin"
  [ -d "$folder/plugin/.git" ] || git -C "$folder/plugin" init -q -b main
  git -C "$folder/plugin" add -A
  git -C "$folder/plugin" -c user.name=Release -c user.email=release@example.invalid commit -qm "Release $1"
  rm -rf "$www/plugin.git"
  git clone -q --bare "$folder/plugin" "$www/plugin.git"
}
new_home plugin
plugin() { in_home env DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 "$claude" plugin "$@" >"$folder/plugin.txt" 2>&1 || fail "claude plugin $*: $(cat "$folder/plugin.txt")"; }
installed_version() { jq -r '.plugins["plimsoll@plimsoll"][0].version' "$home/.claude/plugins/installed_plugins.json"; }
step "the plugin: install $version"
commit_plugin "$version"
plugin marketplace add "$address/plugin.git"
plugin install plimsoll@plimsoll
[ "$(installed_version)" = "$version" ] || fail "the plugin is of version $(installed_version)"
step "the plugin: upgrade to $next"
commit_plugin "$next"
plugin marketplace update plimsoll
plugin update plimsoll@plimsoll
[ "$(installed_version)" = "$next" ] || fail "the plugin is of version $(installed_version)"
step "the plugin: remove"
plugin uninstall plimsoll@plimsoll
step "done"
