#!/usr/bin/env bash
# Lists what the programs of a release are built from, in the form of CycloneDX (a software bill of materials): plimsoll.cdx.json.
# cargo-cyclonedx makes the list; it is built in target/ (never anywhere else) with the versions of its own lock file.
#
# Usage: scripts/release/sbom.sh [--out DIR]    [default: target/release-archives]
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")/../.."

fail() { printf 'sbom.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
target=${CARGO_TARGET_DIR:-$PWD/target} out=""
case "$*" in
  "") out=$target/release-archives ;;
  "--out "?*) out=$2 ;;
  *) fail "Usage: scripts/release/sbom.sh [--out DIR]" 2 ;;
esac
case $out in /*) ;; *) out=$called_from/$out ;; esac
for tool in jq git; do command -v "$tool" >/dev/null || fail "$tool is needed"; done
mkdir -p "$out"

version=0.5.9
folder=$target/cyclonedx-$version
[ -x "$folder/bin/cargo-cyclonedx" ] || cargo install --quiet --locked --root "$folder" cargo-cyclonedx --version "$version" >&2

# It writes a file beside each Cargo.toml, so it gets a copy of what is committed.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git archive HEAD | tar -x -C "$copy"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
cd "$copy"
"$folder/bin/cargo-cyclonedx" cyclonedx -qq --manifest-path crates/plimsoll/Cargo.toml --target all --format json --spec-version 1.5

# It knows no features, and lists what only tests enable and what only other platforms need. What cargo builds for the targets of
# a release is the shorter list.
for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl x86_64-apple-darwin aarch64-apple-darwin \
  x86_64-pc-windows-msvc aarch64-pc-windows-msvc; do
  cargo tree --quiet --locked --package plimsoll --edges normal,build --target "$target" --prefix none --format '{p}'
done | sed -n 's/^\([^ ]*\) v\([^ ]*\).*/\1@\2/p' | LC_ALL=C sort -u >built
jq --rawfile built built '
  ($built | split("\n")) as $built
  | .components |= map(select("\(.name)@\(.version)" as $name | $built | index($name)))
  | ([.components[]."bom-ref"] + [.metadata.component."bom-ref"]) as $kept
  | .dependencies |= map(select(.ref as $ref | $kept | index($ref)) | .dependsOn = [.dependsOn[]? | select(. as $ref | $kept | index($ref))])
  | .metadata.properties = []
' crates/plimsoll/plimsoll.cdx.json |
  sed -e "s|file://$copy/|file:///|g" -e 's|?download_url=file:[^"#]*||g' >"$out/plimsoll.cdx.json.new"
[ "$(jq '.components | length' "$out/plimsoll.cdx.json.new")" = $(($(wc -l <built) - 1)) ] || fail "packages that cargo builds are not in the list"
mv -f -- "$out/plimsoll.cdx.json.new" "$out/plimsoll.cdx.json"
echo "$out/plimsoll.cdx.json"
