//! What every command line of ours does before and after it is parsed.

use crate::console;
use plimsoll_protocol::foreign_words::visible;
use std::process::ExitCode;

/// True for `plimsoll --version --json`, in either order. For clap `--version` is the end of a command line.
pub fn asks_for_build() -> bool {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let is = |word: &std::ffi::OsString, names: &[&str]| names.iter().any(|name| word == name);
    let version = |word| is(word, &["--version", "-V"]);
    let json = |word| is(word, &["--json"]);
    matches!(&words[..], [one, other] if version(one) && json(other) || json(one) && version(other))
}

/// Prints the help that was asked for, or what is wrong with a command line. clap paints both, and lets the escape
/// characters of an argument pass (a shell completes the name of a file): then it is told without colours.
pub fn misread(error: &clap::Error) -> ExitCode {
    let is_plain = |word: std::ffi::OsString| {
        let word = word.to_string_lossy();
        visible(&word) == word
    };
    if std::env::args_os().all(is_plain) {
        // A reader that has gone away is a normal end.
        let _ = error.print();
    } else {
        console::note(error.render().to_string().trim_end());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
