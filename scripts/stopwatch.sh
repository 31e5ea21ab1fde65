#!/bin/bash
# To be read by a script that has set STAGE, a folder that is there: makes $STAGE/stopwatch (scripts/bench/stopwatch.rs),
# $STAGE/floor, a program that does nothing, and $STAGE/scan, which reads a file; static where that can be had, as ours are.
static_target=$(uname -m)-unknown-linux-musl
rustc --print target-libdir --target "$static_target" 2>/dev/null | xargs -r test -d || static_target=""
for program in stopwatch floor scan; do
  rustc --edition 2024 -O -C panic=abort -C strip=symbols ${static_target:+--target "$static_target"} \
    -o "$STAGE/$program" "scripts/bench/$program.rs"
done
