#!/usr/bin/env bash
# Makes everything else of a release from its archives: install.sh, the Homebrew formula, the npm packages, the plugin's
# repository, the provenance statement, and SHA256SUMS over all of it, and over the list of what is linked if scripts/release/sbom.sh
# has put it there. It builds nothing: what it makes has the very programs of the archives, for the targets that have one. The address
# in all of them is `repository` in Cargo.toml.
#
# Usage: scripts/release/packages.sh [--out DIR] [--tag TAG]
#   --out DIR   the folder of the archives, also for what is made [default: target/release-archives]
#   --tag TAG   fail unless the tag is `v` plus the version in Cargo.toml, and the address is a real one
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "packages.sh is for Linux: it packs with GNU tar and the tools of a release machine" >&2; exit 1; }
called_from=$PWD
cd "$(dirname "$0")/../.."

fail() { printf 'packages.sh: %s\n' "$1" >&2; exit "${2:-1}"; }
out=${CARGO_TARGET_DIR:-$PWD/target}/release-archives tag=""
while [ $# -gt 0 ]; do
  case $1 in
    --out | --tag) [ -n "${2:-}" ] || fail "$1 needs a value" 2 ;;&
    --out) out=$2; shift 2 ;;
    --tag) tag=$2; shift 2 ;;
    *) fail "unknown argument: $1 (--out DIR, --tag TAG)" 2 ;;
  esac
done
case $out in /*) ;; *) out=$called_from/$out ;; esac
for tool in jq npm; do command -v "$tool" >/dev/null || fail "$tool is needed"; done

# shellcheck source=scripts/release/constants.sh
. scripts/release/constants.sh
# shellcheck source=scripts/release/archive.sh
. scripts/release/archive.sh
check_tag "$tag"

# --- the archives -------------------------------------------------------------------------------------------------

# A target as the others call it: its name at npm, and what `uname -sm` says there.
declare -A npm_name=(
  [x86_64-unknown-linux-musl]=linux-x64 [aarch64-unknown-linux-musl]=linux-arm64
  [x86_64-apple-darwin]=darwin-x64 [aarch64-apple-darwin]=darwin-arm64
  [x86_64-pc-windows-msvc]=win32-x64 [aarch64-pc-windows-msvc]=win32-arm64
  # Only to try a release on Linux.
  [x86_64-pc-windows-gnu]=win32-x64
)
declare -A uname_name=(
  [x86_64-unknown-linux-musl]='Linux x86_64' [aarch64-unknown-linux-musl]='Linux aarch64'
  [x86_64-apple-darwin]='Darwin x86_64' [aarch64-apple-darwin]='Darwin arm64'
)
targets=() unix_targets=() windows_targets=()
for target in "${!npm_name[@]}"; do
  [ -f "$out/$(archive_name "$version" "$target")" ] || continue
  targets+=("$target")
  if is_windows "$target"; then windows_targets+=("$target"); else unix_targets+=("$target"); fi
done
[ ${#unix_targets[@]} -gt 0 ] || fail "there is no archive plimsoll-$version-TARGET.tar.gz in $out: scripts/release.sh makes them"
sort_names() { printf '%s\n' "$@" | LC_ALL=C sort; }
mapfile -t targets < <(sort_names "${targets[@]}")
mapfile -t unix_targets < <(sort_names "${unix_targets[@]}")
[ ${#windows_targets[@]} = 0 ] || mapfile -t windows_targets < <(sort_names "${windows_targets[@]}")
duplicate=$(for target in "${targets[@]}"; do printf '%s\n' "${npm_name[$target]}"; done | LC_ALL=C sort | uniq -d)
[ -z "$duplicate" ] || fail "$out has two archives for $duplicate: remove one"
[ ${#windows_targets[@]} = 0 ] || command -v python3 >/dev/null || fail "python3 is needed, which unpacks the zip for Windows"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
for target in "${unix_targets[@]}"; do tar -xzf "$out/$(archive_name "$version" "$target")" -C "$stage"; done
for target in "${windows_targets[@]}"; do
  python3 -m zipfile -e "$out/$(archive_name "$version" "$target")" "$stage"
  # Python does not set the modes that are in the zip.
  chmod 755 "$stage/plimsoll-$version-$target/bin"/*.exe
done
root_of() { printf '%s' "$stage/plimsoll-$version-$1"; }
sha256_of() { sha256sum <"$1" | cut -d' ' -f1; }
# A template with the constants filled in.
filled() { # template, targets
  sed -e "s|@VERSION@|$version|g" -e "s|@REPOSITORY@|$repository|g" -e "s|@TARGETS@|$2|g" "$1"
}
put() { # from standard input, whole or not at all
  cat >"$out/$1.new"
  mv -f -- "$out/$1.new" "$out/$1"
}

# --- install.sh and the formula -----------------------------------------------------------------------------------

filled scripts/release/install.sh "${unix_targets[*]}" | put install.sh
chmod 755 "$out/install.sh"

formula() {
  local system target line
  while IFS= read -r line; do
    [ "$line" = '@TARGETS@' ] || { printf '%s\n' "$line"; continue; }
    for system in darwin linux; do
      printf '%s\n' "${unix_targets[@]}" | grep -q -- "-$system" || continue
      printf '  on_%s do\n' "${system/darwin/macos}"
      for target in "${unix_targets[@]}"; do
        case $target in *-"$system"*) ;; *) continue ;; esac
        case $target in x86_64*) echo '    on_intel do' ;; *) echo '    on_arm do' ;; esac
        printf '      url "%s"\n' "$repository/releases/download/v$version/plimsoll-$version-$target.tar.gz"
        printf '      sha256 "%s"\n    end\n' "$(sha256_of "$out/plimsoll-$version-$target.tar.gz")"
      done
      printf '  end\n\n'
    done
  done <scripts/release/plimsoll.rb
}
formula | sed -e "s|@VERSION@|$version|g" -e "s|@REPOSITORY@|$repository|g" | put plimsoll.rb

# --- npm ----------------------------------------------------------------------------------------------------------

# What every package says. Nothing runs when npm installs: there are no scripts, and npm 12 would not run them.
manifest() { # name, description, more fields as JSON
  jq -n --arg name "$1" --arg version "$version" --arg description "$2" --arg url "$repository" --argjson more "$3" \
    '{name: $name, version: $version, description: $description, license: "MIT OR Apache-2.0", homepage: $url,
      repository: {type: "git", url: "git+\($url).git"}} + $more'
}
licenses=(LICENSE LICENSE-MIT LICENSE-APACHE crates/secrets/rules/LICENSE-betterleaks)
programs_for() { # target
  if is_windows "$1"; then printf '%s.exe\n' plimsoll plimsoll-hook plimsoll-linear plimsoll-mcp plimsoll-otel
  else printf '%s\n' plimsoll plimsoll-fleet plimsoll-hook plimsoll-linear plimsoll-mcp plimsoll-otel; fi
}
copy_programs() { # target, folder
  local program
  for program in $(programs_for "$1"); do cp "$(root_of "$1")/bin/$program" "$2/"; done
}
folders=()
optional='{}' windows='[]'
for target in "${targets[@]}"; do
  name=@plimsoll/${npm_name[$target]} folder=$stage/npm/${npm_name[$target]} more='{}'
  mkdir -p "$folder/bin"
  # The names of the hook programs would be eight copies: npm keeps no links. `plimsoll init` makes them.
  copy_programs "$target" "$folder/bin"
  cp "${licenses[@]}" "$folder/"
  if is_windows "$target"; then
    # npm starts an .exe directly, without a shell and without node. The main package is not for Windows: the file that npm makes there
    # of start.sh would start "/bin/sh" (docs/decisions/windows-packages.md).
    more='{"bin": {"plimsoll": "bin/plimsoll.exe"}}'
    windows=$(jq -n --argjson all "$windows" --arg name "$name" '$all + [$name]')
  else
    optional=$(jq -n --argjson all "$optional" --arg name "$name" --arg version "$version" '$all + {($name): $version}')
  fi
  # Yarn would keep the package zipped otherwise.
  manifest "$name" "The programs of Plimsoll for ${npm_name[$target]}" \
    "$(jq -n --arg both "${npm_name[$target]}" --argjson more "$more" \
      '($both | split("-")) as [$os, $cpu] | {os: [$os], cpu: [$cpu], preferUnplugged: true} + $more')" \
    >"$folder/package.json"
  folders+=("$folder")
done
folder=$stage/npm/plimsoll
mkdir -p "$folder/bin"
cp scripts/release/npm/find.js scripts/release/npm/start.sh "$folder/bin/"
cp "${licenses[@]}" README.md "$folder/"
manifest plimsoll "The load line for Claude Code" \
  "$(jq -n --argjson optional "$optional" --argjson windows "$windows" '{bin: {plimsoll: "bin/start.sh"}, os: ["linux", "darwin"],
    engines: {node: ">=18"}, optionalDependencies: $optional, plimsoll: {windowsPackages: $windows}}')" \
  >"$folder/package.json"
(cd "$out" && npm pack --silent --offline --ignore-scripts "${folders[@]}" "$folder" >/dev/null) || fail "npm cannot pack"

# --- the plugin's repository --------------------------------------------------------------------------------------

plugin=$stage/plimsoll-plugin-$version
mkdir -p "$plugin/.claude-plugin"
cp -R hooks-config/plugin "$plugin/plugin"
# Reports of evals that somebody ran here.
rm -rf "$plugin/plugin/evals/results"
# What Claude Code writes beside a module that it loads from a checkout.
rm -rf "$plugin/plugin/.claude-plugin/types" "$plugin/plugin/tsconfig.json" "$plugin/plugin/.gitignore"
cp "${licenses[@]}" "$plugin/"
filled scripts/release/plugin/README.md "${targets[*]}" >"$plugin/README.md"
jq '.plugins[0].source = "./plugin"
  | .plugins[0].description = "Hooks, slash commands, the frame agent and the MCP server of Plimsoll, with its programs."' \
  .claude-plugin/marketplace.json >"$plugin/.claude-plugin/marketplace.json"
jq --arg url "$repository" --arg version "$version" '.version = $version | .homepage = $url | .description |= sub(" It needs Plimsoll.s programs."; "")' \
  hooks-config/plugin/.claude-plugin/plugin.json >"$plugin/plugin/.claude-plugin/plugin.json"
# One PATH for all systems, with the plugin's folder at its end: an installed program comes first. On Unix the entry with the semicolon
# is an absolute path that nobody but root can create. Windows reads up to the semicolon one entry that is no valid path.
# shellcheck disable=SC2016  # Claude Code fills it in
server_path=':${CLAUDE_PLUGIN_ROOT}/bin'
# shellcheck disable=SC2016
[ ${#windows_targets[@]} = 0 ] || server_path+=':/;${CLAUDE_PLUGIN_ROOT}/bin'
jq --arg more "$server_path" '.mcpServers.plimsoll.env.PATH += $more' hooks-config/plugin/.mcp.json >"$plugin/plugin/.mcp.json"
jq --arg words "there is no program of the plugin for this machine" \
  '.systemMessage |= sub("its programs are not installed"; $words)' \
  hooks-config/plugin/hooks/missing.json >"$plugin/plugin/hooks/missing.json"
mkdir "$plugin/plugin/bin"
for program in plimsoll plimsoll-mcp; do
  sed -e "s|@PROGRAM@|$program|g" scripts/release/plugin/start.sh >"$plugin/plugin/bin/$program"
  chmod 755 "$plugin/plugin/bin/$program"
done
for target in "${unix_targets[@]}"; do
  folder="$plugin/plugin/programs/${uname_name[$target]}"
  mkdir -p "$folder"
  copy_programs "$target" "$folder"
  # Git keeps links, and one file is an eighth of eight.
  while read -r name; do ln -s plimsoll-hook "$folder/$name"; done <crates/hooks/programs.txt
done
# Windows starts the .exe beside the script that an entry names. arm64 runs these programs, too, by emulation. The names of one file are
# hard links, so the archive and git have it once.
for target in "${windows_targets[@]}"; do
  case $target in x86_64-*) ;; *) continue ;; esac
  for program in plimsoll plimsoll-linear plimsoll-mcp plimsoll-otel; do cp "$(root_of "$target")/bin/$program.exe" "$plugin/plugin/bin/"; done
  first=""
  for script in "$plugin"/plugin/hooks/plimsoll-*; do
    if [ -z "$first" ]; then first=$script.exe && cp "$(root_of "$target")/bin/plimsoll-hook.exe" "$first"; else ln "$first" "$script.exe"; fi
  done
done
packed "$stage" "plimsoll-plugin-$version" | put "plimsoll-plugin-$version.tar.gz"

# --- where it came from, and the sums -----------------------------------------------------------------------------

# Everything of this version, and nothing that an earlier call left.
files=(install.sh plimsoll.rb "plimsoll-plugin-$version.tar.gz" "plimsoll-$version.tgz")
for target in "${targets[@]}"; do files+=("$(archive_name "$version" "$target")" "plimsoll-${npm_name[$target]}-$version.tgz"); done
[ ! -f "$out/plimsoll.cdx.json" ] || files+=(plimsoll.cdx.json)

# A statement in the form of SLSA's provenance. It is signed by nobody: it says what the maker of the release claims. What
# GitHub attests is apart, and can be checked (docs/platforms.md).
statement() {
  local subjects
  subjects=$(for file in "${files[@]}"; do
    jq -n --arg name "$file" --arg sum "$(sha256_of "$out/$file")" '{name: $name, digest: {sha256: $sum}}'
  done | jq -s 'sort_by(.name)')
  jq -n --argjson subjects "$subjects" --arg version "$version" --arg url "$repository" --arg commit "$(commit)" \
    --arg targets "${targets[*]}" --arg lock "$(sha256_of Cargo.lock)" --arg rustc "$(rustc --version 2>/dev/null || true)" \
    --arg run "${GITHUB_RUN_ID:+${GITHUB_SERVER_URL:-}/${GITHUB_REPOSITORY:-}/actions/runs/$GITHUB_RUN_ID}" '{
      _type: "https://in-toto.io/Statement/v1",
      subject: $subjects,
      predicateType: "https://slsa.dev/provenance/v1",
      predicate: {
        buildDefinition: {
          buildType: "\($url)#scripts/release.sh",
          externalParameters: {version: $version, targets: ($targets | split(" "))},
          internalParameters: {rustc: $rustc},
          resolvedDependencies: [
            {uri: "git+\($url)", digest: {gitCommit: ($commit | sub("-dirty$"; ""))},
             annotations: {modified: ($commit | endswith("-dirty"))}},
            {name: "Cargo.lock", digest: {sha256: $lock}}
          ]
        },
        runDetails: {builder: {id: (if $run == "" then "\($url)/unattested" else $run end)}}
      }
    }'
}
statement | put "plimsoll-$version.intoto.json"
files+=("plimsoll-$version.intoto.json")
(cd "$out" && printf '%s\n' "${files[@]}" | LC_ALL=C sort | xargs -d '\n' sha256sum --) | put SHA256SUMS
printf '%s\n' "${files[@]}" SHA256SUMS
