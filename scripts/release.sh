#!/usr/bin/env bash
# Packs a release: one archive of static programs, completions, manual pages and this installer, and SHA256SUMS
# over all archives in the folder. The same programs and the same commit give the same bytes.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
Usage: scripts/release.sh [--target TRIPLE] [--out DIR] [--tag TAG]
       scripts/release.sh --sums [--out DIR]

  --target TRIPLE  the machine to build for [default: this one, static musl]
  --out DIR        where to write the archive [default: target/release-archives]
  --tag TAG        fail unless the tag is `v` plus the version in Cargo.toml
  --sums           only write SHA256SUMS again, for archives collected from several machines

PLIMSOLL_BIN_DIR names a folder of programs that are already built.
TEXT
}
fail() { printf 'release.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
wrong() { printf 'release.sh: %s\n' "$1" >&2; usage >&2; exit 2; }

own=$(uname -m)-unknown-linux-musl
target=$own out=${CARGO_TARGET_DIR:-$PWD/target}/release-archives tag="" only_sums=""
while [ $# -gt 0 ]; do
  case $1 in
    --target | --out | --tag) [ -n "${2:-}" ] || wrong "$1 needs a value" ;;&
    --target) target=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --tag) tag=$2; shift 2 ;;
    --sums) only_sums=yes; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown argument: $1" ;;
  esac
done
case $out in /*) ;; *) out=$called_from/$out ;; esac
mkdir -p -- "$out"

sums() {
  (cd "$out" && LC_ALL=C && sha256sum -- plimsoll-*.tar.gz >SHA256SUMS.new && mv -f SHA256SUMS.new SHA256SUMS)
}
if [ -n "$only_sums" ]; then
  sums
  cat "$out/SHA256SUMS"
  exit 0
fi

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
[ -n "$version" ] || fail "Cargo.toml has no version"
[ -z "$tag" ] || [ "$tag" = "v$version" ] || fail "the tag is $tag, but Cargo.toml says version $version"

bin=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh --target "$target")}
case $bin in /*) ;; *) bin=$called_from/$bin ;; esac
# Pages and completions come from the program itself, which must run here: for another kind of machine,
# this machine's build prints them.
speaker=$bin
if [ "$target" != "$own" ] && [ -z "${PLIMSOLL_BIN_DIR:-}" ]; then speaker=$(scripts/build.sh); fi
told=$("$speaker/plimsoll" --version) || fail "$speaker/plimsoll does not run on this machine"
[ "$told" = "plimsoll $version" ] || fail "$speaker/plimsoll is \"$told\", but Cargo.toml says version $version"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
name=plimsoll-$version-$target
root=$stage/$name
mkdir -p "$root/bin" "$root/completions" "$root/man/man1"

mapfile -t hooks <crates/hooks/programs.txt
for program in plimsoll plimsoll-linear plimsoll-mcp "${hooks[@]}"; do
  [ -x "$bin/$program" ] || fail "$bin lacks $program"
done
# Together, so that the names of one file stay that.
(cd "$bin" && cp --preserve=links -- plimsoll plimsoll-linear plimsoll-mcp "${hooks[@]}" "$root/bin/")
for shell in bash zsh fish; do
  case $shell in zsh) file=_plimsoll ;; *) file=plimsoll.$shell ;; esac
  "$speaker/plimsoll" generate completions "$shell" >"$root/completions/$file"
done
for page in $("$speaker/plimsoll" generate man --list); do
  "$speaker/plimsoll" generate man "$page" >"$root/man/man1/$page.1"
done
cp README.md CHANGELOG.md LICENSE LICENSE-MIT LICENSE-APACHE crates/secrets/rules/LICENSE-betterleaks "$root/"
cp -R docs "$root/"
cp scripts/install.sh "$root/"
cat >"$root/INSTALL.txt" <<'TEXT'
./install.sh                  programs to ~/.local/bin, completions and manual pages below ~/.local/share
./install.sh --prefix DIR     somewhere else
./install.sh --uninstall      out again

By hand: copy everything in bin/ into one folder of your PATH; the hooks are looked for beside plimsoll.
Then: plimsoll init
TEXT

# The time of the commit, nobody's name, one order: nothing of this machine or this hour.
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
archive=$out/$name.tar.gz
LC_ALL=C tar --create --format=ustar --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner \
  --mode=u=rwX,go=rX --directory="$stage" "$name" | gzip --no-name -9 >"$archive.new"
mv -f -- "$archive.new" "$archive"
sums
echo "$archive"
