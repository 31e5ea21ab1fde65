#!/bin/bash
# To be read by scripts that build for macOS on Linux, in the folder of the workspace: zig compiles and links, and whatever it keeps
# is in target/, too.

PATH=$(scripts/zig.sh):$PATH
kept=${CARGO_TARGET_DIR:-$PWD/target}/zig-cache
export PATH CARGO_ZIGBUILD_CACHE_DIR="$kept/zigbuild" ZIG_GLOBAL_CACHE_DIR="$kept/global" ZIG_LOCAL_CACHE_DIR="$kept/local"
# Apple's frameworks are not to be had here. To link, their names and those of the functions are enough: scripts/macos/frameworks.
for name in AARCH64 X86_64; do
  flags=CARGO_TARGET_${name}_APPLE_DARWIN_RUSTFLAGS
  export "$flags=${!flags:-} -Clink-arg=-Fscripts/macos/frameworks"
done
