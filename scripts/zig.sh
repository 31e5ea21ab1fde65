#!/usr/bin/env bash
# Says where cargo-zigbuild lies, and zig for it: a compiler and linker for macOS that runs on Linux. Both are pinned and come from
# PyPI into target/ (never anywhere else); the first time that is about 100 MB.
set -euo pipefail
[ "$(uname -s)" = Linux ] || { echo "zig.sh is for Linux: a Mac has a compiler of its own" >&2; exit 1; }
cd "$(dirname "$0")/.."

zig=0.17.1
zigbuild=0.24.1
folder="${CARGO_TARGET_DIR:-$PWD/target}/zig-$zig-$zigbuild"
if [ ! -e "$folder/complete" ]; then
  command -v python3 >/dev/null || scripts/debian.sh python3 python3-venv
  echo "installing zig $zig and cargo-zigbuild $zigbuild into $folder" >&2
  python3 -m venv --clear "$folder" >&2 || { scripts/debian.sh python3-venv; python3 -m venv --clear "$folder" >&2; }
  timeout 600 "$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    "ziglang==$zig" "cargo-zigbuild==$zigbuild" >&2 || {
    echo "missing: ziglang $zig and cargo-zigbuild $zigbuild, which PyPI has (pip's words are above)" >&2
    exit 1
  }
  touch "$folder/complete"
fi
echo "$folder/bin"
