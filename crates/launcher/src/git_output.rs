//! Parsing that is common to the output of all git commands.

use crate::CommandOutcome;

/// Returns the reason why git failed: its `fatal:` message, otherwise the last line that git or a hook printed.
pub(crate) fn fatal_message_or_last_output_line(outcome: &CommandOutcome) -> String {
    let stderr_text = String::from_utf8_lossy(&outcome.stderr);
    let stdout_text = String::from_utf8_lossy(&outcome.stdout);
    let mut lines_from_end = stderr_text.lines().rev().chain(stdout_text.lines().rev());
    let fatal_message = stderr_text.lines().find_map(|line| line.strip_prefix("fatal: "));
    let reason =
        fatal_message.or_else(|| lines_from_end.find(|line| !line.trim().is_empty())).map(str::to_owned);
    let fallback =
        if outcome.exit_code.is_none() { "a signal ended it" } else { "it failed without a message" };
    reason.or_else(|| outcome.start_error.clone()).unwrap_or_else(|| fallback.to_owned())
}

/// Returns the nonempty entries of a list whose entries end with a zero byte.
pub(crate) fn split_nul_terminated(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}
