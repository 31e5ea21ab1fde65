#!/usr/bin/env bash
# Packs a release: an archive of static programs, completions, manual pages and the installer for each target, and SHA256SUMS
# over all archives in the folder. The same programs and the same commit give the same bytes. What else a release has is made
# from the archives: scripts/release/packages.sh.
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "release.sh is for Linux: its archives are the same bytes each time by GNU tar; from there it builds for macOS, too" >&2; exit 1; }
called_from=$PWD
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
Usage: scripts/release.sh [--target TRIPLE] [--out DIR] [--tag TAG]

  --target TRIPLE  the machine to build for [default: each of TARGETS, else this one, static musl]
  --out DIR        where to write the archives [default: target/release-archives]
  --tag TAG        fail unless the tag is `v` plus the version in Cargo.toml, and `repository` there is a real address

TARGETS="TRIPLE …" names several machines. PLIMSOLL_BIN_DIR names a folder of programs that are already built, for one.
TEXT
}
fail() { printf 'release.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
wrong() { printf 'release.sh: %s\n' "$1" >&2; usage >&2; exit 2; }

own=$(uname -m)-unknown-linux-musl
read -r -a targets <<<"${TARGETS:-$own}"
out=${CARGO_TARGET_DIR:-$PWD/target}/release-archives tag=""
while [ $# -gt 0 ]; do
  case $1 in
    --target | --out | --tag) [ -n "${2:-}" ] || wrong "$1 needs a value" ;;&
    --target) targets=("$2"); shift 2 ;;
    --out) out=$2; shift 2 ;;
    --tag) tag=$2; shift 2 ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown argument: $1" ;;
  esac
done
case $out in /*) ;; *) out=$called_from/$out ;; esac
mkdir -p -- "$out"

[ ${#targets[@]} = 1 ] || [ -z "${PLIMSOLL_BIN_DIR:-}" ] || wrong "PLIMSOLL_BIN_DIR has the programs of one target"

# shellcheck source=scripts/release/constants.sh
. scripts/release/constants.sh
# shellcheck source=scripts/release/archive.sh
. scripts/release/archive.sh
check_tag "$tag"
PLIMSOLL_COMMIT=${PLIMSOLL_COMMIT:-$(commit)}
export PLIMSOLL_COMMIT

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mapfile -t hooks <crates/hooks/programs.txt

programs_of() { # target; sets bin, and speaker: the one that prints pages and completions must run here
  bin=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh --target "$1")}
  case $bin in /*) ;; *) bin=$called_from/$bin ;; esac
  speaker=$bin
  # For another kind of machine, this machine's build prints them.
  if [ "$1" != "$own" ] && [ -z "${PLIMSOLL_BIN_DIR:-}" ]; then speaker=$(scripts/build.sh); fi
  local told
  told=$("$speaker/plimsoll" --version) || fail "$speaker/plimsoll does not run on this machine"
  [ "$told" = "plimsoll $version" ] || fail "$speaker/plimsoll is \"$told\", but Cargo.toml says version $version"
  for program in plimsoll plimsoll-fleet plimsoll-linear plimsoll-mcp plimsoll-otel "${hooks[@]}"; do
    [ -x "$bin/$program" ] || fail "$bin lacks $program"
  done
}

fill() { # the archive's folder
  local shell file page
  mkdir -p "$1/bin" "$1/completions" "$1/man/man1"
  # Together, so that the names of one file stay that.
  (cd "$bin" && cp --preserve=links -- plimsoll plimsoll-fleet plimsoll-linear plimsoll-mcp plimsoll-otel "${hooks[@]}" "$1/bin/")
  # By this name cargo and npm know the file.
  ln -- "$1/bin/${hooks[0]}" "$1/bin/plimsoll-hook"
  for shell in bash zsh fish; do
    case $shell in zsh) file=_plimsoll ;; *) file=plimsoll.$shell ;; esac
    "$speaker/plimsoll" generate completions "$shell" >"$1/completions/$file"
  done
  for page in $("$speaker/plimsoll" generate man --list); do
    "$speaker/plimsoll" generate man "$page" >"$1/man/man1/$page.1"
  done
  cp README.md CHANGELOG.md LICENSE LICENSE-MIT LICENSE-APACHE crates/secrets/rules/LICENSE-betterleaks "$1/"
  cp -R docs "$1/"
  cp scripts/install.sh "$1/"
  cat >"$1/INSTALL.txt" <<'TEXT'
./install.sh                  programs to ~/.local/bin, completions and manual pages below ~/.local/share
./install.sh --prefix DIR     somewhere else
./install.sh --uninstall      out again

By hand: copy everything in bin/ into one folder of your PATH; the hooks are looked for beside plimsoll.
Then: plimsoll init
TEXT
}

for target in "${targets[@]}"; do
  programs_of "$target"
  name=plimsoll-$version-$target
  fill "$stage/$name"
  packed "$stage" "$name" >"$out/$name.tar.gz.new"
  mv -f -- "$out/$name.tar.gz.new" "$out/$name.tar.gz"
  echo "$out/$name.tar.gz"
done
(cd "$out" && LC_ALL=C && sha256sum -- plimsoll-*.tar.gz >SHA256SUMS.new && mv -f SHA256SUMS.new SHA256SUMS)
