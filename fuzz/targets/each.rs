//! A fuzz target. All programs share this file; each runs the target that it is named after.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (plimsoll_fuzzing::target_by_name(env!("CARGO_BIN_NAME")).expect("a target").check_input)(bytes));
