//! One target: the one this program is named after.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (plimsoll_fuzzing::named(env!("CARGO_BIN_NAME")).expect("a target").body)(bytes));
