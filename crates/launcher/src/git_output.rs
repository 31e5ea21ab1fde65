//! What git prints, whatever it was asked.

use crate::Outcome;

/// Why a git failed: its own verdict, else the last line that it or a hook printed.
pub(crate) fn last_words(outcome: &Outcome) -> String {
    let errors = String::from_utf8_lossy(&outcome.stderr);
    let output = String::from_utf8_lossy(&outcome.stdout);
    let mut lines = errors.lines().rev().chain(output.lines().rev());
    let verdict = errors.lines().find_map(|line| line.strip_prefix("fatal: "));
    let words = verdict.or_else(|| lines.find(|line| !line.trim().is_empty())).map(str::to_owned);
    let nothing = if outcome.code.is_none() { "a signal ended it" } else { "it failed without a word" };
    words.or_else(|| outcome.trouble.clone()).unwrap_or_else(|| nothing.to_owned())
}

/// The entries of a list whose entries end with a zero byte.
pub(crate) fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}
