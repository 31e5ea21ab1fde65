#!/usr/bin/env bash
# Publishes the npm packages of a release: those with programs first, the main package that needs them last. It refuses unless
# all their names are ours (scripts/release/names.sh). Called again after a failure it publishes what is missing.
#
# Usage: scripts/release/npm.sh DIR [OPTION …]    DIR has the packages; the options are for `npm publish`
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")/../.."

fail() { printf 'npm.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
[ -n "${1:-}" ] || fail "Usage: scripts/release/npm.sh DIR [OPTION …]" 2
folder=$1
shift
case $folder in /*) ;; *) folder=$called_from/$folder ;; esac
scripts/release/names.sh npm || fail "nothing was published"
# shellcheck source=scripts/release/constants.sh
. scripts/release/constants.sh

main=$folder/plimsoll-$version.tgz
[ -f "$main" ] || fail "$main is missing: scripts/release/packages.sh makes it"
# The packages with programs, by the end of their names. The main package does not need those for Windows, but names them.
platforms=$(tar -xzOf "$main" package/package.json |
  jq -r '(.optionalDependencies | keys[]), .plimsoll.windowsPackages[] | sub("^@plimsoll/"; "")')
for platform in $platforms; do
  [ -f "$folder/plimsoll-$platform-$version.tgz" ] || fail "$folder/plimsoll-$platform-$version.tgz is missing"
done

# Prints the checksum of a file as npm writes it.
compute_integrity() { node -e 'const { createHash } = require("crypto");
  console.log("sha512-" + createHash("sha512").update(require("fs").readFileSync(process.argv[1])).digest("base64"))' "$1"; }

# Prints the checksum of a version that is in the registry; nothing if it is not there.
fetch_integrity() { # package@version
  local answer
  if answer=$(npm view "$1" dist.integrity --json 2>/dev/null); then jq -r '.' <<<"${answer:-\"\"}"
  elif [ "$(jq -r '.error.code? // empty' <<<"$answer" 2>/dev/null)" != E404 ]; then fail "npm does not answer about $1"
  fi
}

publish() { # file, options
  local file=$1 package published
  shift
  package=$(tar -xzOf "$file" package/package.json | jq -r '"\(.name)@\(.version)"')
  published=$(fetch_integrity "$package")
  if [ -z "$published" ]; then npm publish --access public "$@" "$file"
  elif [ "$published" = "$(compute_integrity "$file")" ]; then echo "$package is published already"
  else fail "$package is published with other bytes: a version is never changed, so make another one"
  fi
}

for platform in $platforms; do publish "$folder/plimsoll-$platform-$version.tgz" "$@"; done
publish "$main" "$@"
