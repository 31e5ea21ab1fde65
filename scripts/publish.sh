#!/usr/bin/env bash
# Reserves the name `plimsoll` on crates.io, by an empty package that says how to install Plimsoll. Nothing else of it is published
# there (docs/decisions/cargo-registry.md). It only tries, until it is told otherwise.
#
# Usage: scripts/publish.sh [--really]
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'publish.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
arguments=(--dry-run)
case "$*" in
  "") ;;
  --really) arguments=() ;;
  *) fail "Usage: scripts/publish.sh [--really]" 2 ;;
esac
# shellcheck source=scripts/release/constants.sh
. scripts/release/constants.sh
# Everybody will read the address, and nobody can take it back.
[ ${#arguments[@]} != 0 ] || check_tag "v$version"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/src"
cat >"$folder/Cargo.toml" <<TEXT
[package]
name = "plimsoll"
version = "0.0.0"
edition = "2024"
description = "The name of Plimsoll, the load line for Claude Code. To install it: cargo install --locked --git $repository plimsoll"
license = "MIT OR Apache-2.0"
repository = "$repository"
readme = "README.md"
TEXT
cat >"$folder/README.md" <<TEXT
# Plimsoll, the load line for Claude Code

This package only reserves the name. To install Plimsoll with cargo:

    cargo install --locked --git $repository plimsoll

Other ways are on the project's page: $repository
TEXT
echo '#![doc = include_str!("../README.md")]' >"$folder/src/lib.rs"
cargo publish --quiet --manifest-path "$folder/Cargo.toml" --target-dir "$folder/target" ${arguments[@]+"${arguments[@]}"}
