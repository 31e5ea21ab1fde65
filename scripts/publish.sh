#!/usr/bin/env bash
# Publishes the packages on crates.io, each after those that it needs, so that `cargo install plimsoll` works. It only tries, until
# it is told otherwise: everything but the upload, with each package compiled from what would be uploaded.
# docs/start.md shows how the packages are installed.
#
# Usage: scripts/publish.sh [--list | --no-verify | --really]
#   --list        only print the packages, in their order
#   --no-verify   try without compiling
#   --really      publish
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'publish.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
arguments=(--dry-run) list=""
case "$*" in
  "") ;;
  --list) list=yes ;;
  --no-verify) arguments=(--dry-run --no-verify) ;;
  --really) arguments=() ;;
  *) fail "Usage: scripts/publish.sh [--list | --no-verify | --really]" 2 ;;
esac
command -v jq >/dev/null || fail "jq is needed"

# The packages of the workspace that may be published; each goes out of the list after all that it needs.
order() {
  cargo metadata --locked --no-deps --format-version 1 | jq -r '
    [.packages[] | select(.publish == null) | {name, needs: [.dependencies[] | select(.path and .kind != "dev") | .name]}]
    | def next: (map(.name)) as $left | map(select(all(.needs[]; IN($left[]) | not)));
      def all_in_order: if length == 0 then empty
        else next as $now | if ($now | length) == 0 then error("a circle: \(map(.name))") else
          ($now | sort_by(.name)[] | .name), (. - $now | all_in_order) end end;
      all_in_order'
}
ordered=$(order)
[ -n "$ordered" ] || fail "no package may be published"
printf '%s\n' "$ordered"
[ -z "$list" ] || exit 0

# shellcheck source=scripts/release/constants.sh
. scripts/release/constants.sh
if [ ${#arguments[@]} = 0 ]; then
  # Everybody will read what is published, and nobody can take it back.
  check_tag "v$version"
  case $(commit) in *-dirty | "") fail "files differ from what is committed" ;; esac
fi
# Cargo uploads them in this order by itself, and takes those that are not there yet from here.
# shellcheck disable=SC2046  # words without a space
cargo publish --locked ${arguments[@]+"${arguments[@]}"} $(sed 's/^/--package /' <<<"$ordered")
