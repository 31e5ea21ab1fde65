#!/usr/bin/env bash
# Packs a release: an archive of static programs, completions, manual pages and the installer for each target, and SHA256SUMS
# over all archives in the folder. For Windows it packs a zip of programs that were built there, without manual pages and installer.
# The same programs and the same commit give the same bytes. What else a release has is made from the archives:
# scripts/release/packages.sh.
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

TARGETS="TRIPLE …" names several machines. PLIMSOLL_BIN_DIR names a folder of programs that are already built, for one; a target
of Windows needs it. PLIMSOLL_HOST_BIN_DIR names one of programs that run here and print completions [default: scripts/build.sh].
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

# Prints the processor that a program of Windows is for: its file names the place of a header, which names the processor.
windows_processor() { # file
  python3 - "$1" <<'PYTHON'
import struct, sys
data = open(sys.argv[1], "rb").read(4096)
start = struct.unpack_from("<I", data, 60)[0] if data[:2] == b"MZ" and len(data) >= 64 else len(data)
machine = struct.unpack_from("<H", data, start + 4)[0] if data[start:start + 4] == b"PE\0\0" else 0
print({0x8664: "x86_64", 0xAA64: "aarch64"}.get(machine, "none"))
PYTHON
}

programs_of() { # target; sets bin, speaker (the one that prints pages and completions must run here) and programs
  programs=(plimsoll plimsoll-fleet plimsoll-linear plimsoll-mcp plimsoll-otel)
  if is_windows "$1"; then
    [ -n "${PLIMSOLL_BIN_DIR:-}" ] || fail "programs for $1 are built on Windows: name their folder in PLIMSOLL_BIN_DIR"
    command -v python3 >/dev/null || fail "missing: python3, which packs the zip"
    # Fleets need what only Unix has.
    programs=(plimsoll plimsoll-linear plimsoll-mcp plimsoll-otel)
  fi
  bin=${PLIMSOLL_BIN_DIR:-$(scripts/build.sh --target "$1")}
  case $bin in /*) ;; *) bin=$called_from/$bin ;; esac
  speaker=$bin
  # For another kind of machine, this machine's build prints them.
  if is_windows "$1"; then speaker=${PLIMSOLL_HOST_BIN_DIR:-$(scripts/build.sh)}
  elif [ "$1" != "$own" ] && [ -z "${PLIMSOLL_BIN_DIR:-}" ]; then speaker=$(scripts/build.sh); fi
  case $speaker in /*) ;; *) speaker=$called_from/$speaker ;; esac
  local told program
  told=$("$speaker/plimsoll" --version) || fail "$speaker/plimsoll does not run on this machine"
  [ "$told" = "plimsoll $version" ] || fail "$speaker/plimsoll is \"$told\", but Cargo.toml says version $version"
  if is_windows "$1"; then
    for program in "${programs[@]}" plimsoll-hook; do
      [ -f "$bin/$program.exe" ] || fail "$bin lacks $program.exe"
      [ "$(windows_processor "$bin/$program.exe")" = "${1%%-*}" ] || fail "$bin/$program.exe is no program of Windows for ${1%%-*}"
    done
  else
    for program in "${programs[@]}" "${hooks[@]}"; do
      [ -x "$bin/$program" ] || fail "$bin lacks $program"
    done
  fi
}

fill_windows() { # the archive's folder
  local program
  mkdir -p "$1/bin" "$1/completions"
  for program in "${programs[@]}" plimsoll-hook; do cp -- "$bin/$program.exe" "$1/bin/"; done
  # Windows follows no link that a zip could keep, so each name is a file.
  for program in "${hooks[@]}"; do cp -- "$bin/plimsoll-hook.exe" "$1/bin/$program.exe"; done
  "$speaker/plimsoll" generate completions powershell >"$1/completions/plimsoll.ps1"
  # For Git Bash.
  "$speaker/plimsoll" generate completions bash >"$1/completions/plimsoll.bash"
  copy_documents "$1"
  # Notepad of an older Windows shows one line without these ends.
  sed 's/$/\r/' >"$1/INSTALL.txt" <<'TEXT'
Nobody has run Plimsoll on Windows yet. In WSL, use the archive for Linux instead.

1. Move this folder to where it can stay: the hook entries name the programs in bin by their paths.
2. In a terminal, in this folder:

   bin\plimsoll.exe init

   It writes the hook entries into Claude Code's settings. `bin\plimsoll.exe uninstall` removes them.
3. To call plimsoll by its name, add the folder bin to your PATH.

If Windows blocks the programs, because a browser has downloaded them: Get-ChildItem -Recurse | Unblock-File (PowerShell).
TEXT
}

copy_documents() { # the archive's folder
  cp README.md CHANGELOG.md LICENSE LICENSE-MIT LICENSE-APACHE crates/secrets/rules/LICENSE-betterleaks "$1/"
  cp -R docs "$1/"
}

fill() { # the archive's folder
  local shell file page
  mkdir -p "$1/bin" "$1/completions" "$1/man/man1"
  # Together, so that the names of one file stay that.
  (cd "$bin" && cp --preserve=links -- "${programs[@]}" "${hooks[@]}" "$1/bin/")
  # By this name cargo and npm know the file.
  ln -- "$1/bin/${hooks[0]}" "$1/bin/plimsoll-hook"
  for shell in bash zsh fish; do
    case $shell in zsh) file=_plimsoll ;; *) file=plimsoll.$shell ;; esac
    "$speaker/plimsoll" generate completions "$shell" >"$1/completions/$file"
  done
  for page in $("$speaker/plimsoll" generate man --list); do
    "$speaker/plimsoll" generate man "$page" >"$1/man/man1/$page.1"
  done
  copy_documents "$1"
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
  name=plimsoll-$version-$target archive=$(archive_name "$version" "$target")
  if is_windows "$target"; then
    fill_windows "$stage/$name"
    packed_zip "$stage" "$name" >"$out/$archive.new"
  else
    fill "$stage/$name"
    packed "$stage" "$name" >"$out/$archive.new"
  fi
  mv -f -- "$out/$archive.new" "$out/$archive"
  echo "$out/$archive"
done
(cd "$out" && LC_ALL=C && shopt -s nullglob && sha256sum -- plimsoll-*.tar.gz plimsoll-*.zip >SHA256SUMS.new && mv -f SHA256SUMS.new SHA256SUMS)
