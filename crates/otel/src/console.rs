//! What this program prints.

use plimsoll_domain::text::SafeText;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Prints a page of words; a reader that has gone away is a normal end.
#[expect(clippy::disallowed_methods, reason = "the one place of this program that prints")]
pub(crate) fn say(text: impl Display) {
    let mut out = std::io::stdout();
    let _ = out.write_all(page(text).as_bytes()).and_then(|()| out.flush());
}

/// Says on standard error what went wrong: exit code 1.
#[expect(clippy::disallowed_methods, reason = "the one place of this program that complains")]
pub(crate) fn fail(error: impl Display) -> ExitCode {
    let _ = std::io::stderr().write_all(page(format!("plimsoll: {error}")).as_bytes());
    ExitCode::FAILURE
}

fn page(text: impl Display) -> String {
    SafeText::page(&format!("{text}\n")).as_str().to_owned()
}
