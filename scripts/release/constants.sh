#!/bin/bash
# To be read by the scripts that make a release, in the folder of the workspace: the version and the address, each of which
# stands in Cargo.toml alone.

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
[ -n "$version" ] || fail "Cargo.toml has no version"
[ -n "$repository" ] || fail "Cargo.toml has no repository"

# A tag makes a release for others: then the address must be one that they can reach.
check_tag() { # tag, or nothing
  [ -n "$1" ] || return 0
  [ "$1" = "v$version" ] || fail "the tag is $1, but Cargo.toml says version $version"
  case $repository in
    *://example.invalid/*) fail "\`repository\` in Cargo.toml is $repository: put the real address there, then write the pages again (scripts/release/README.md)" ;;
  esac
}

# The commit that is checked out, with -dirty behind it if files differ; empty outside of git.
commit() { git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || true; }
