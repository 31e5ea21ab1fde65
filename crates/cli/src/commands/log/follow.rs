//! `plimsoll log --follow`: prints new journal lines as they arrive.

use crate::journal_lines::JournalDescriber;
use crate::journal_lines::journal::JournalReader;
use crate::journal_lines::page::LogPage;
use plimsoll_store::{Project, lock, state_file};
use plimsoll_terminal::console::{print_notice, wait_and_check_stdout_closed};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often the journal is read for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long the journal must have no new lines before `--follow` ends: a verdict is written to the state shortly before
/// the journal.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// Prints new journal lines until the run has ended and the journal has no new lines, or until the output is closed.
pub(super) fn follow_journal(
    project: &Project,
    mut journal: JournalReader,
    mut describer: JournalDescriber,
    mut page: LogPage,
) -> ExitCode {
    let mut last_new_lines_at = Instant::now();
    while !wait_and_check_stdout_closed(POLL_INTERVAL) {
        // A journal that cannot be read just now may be readable again later.
        let new_lines = journal.read_new_complete_lines().unwrap_or_default();
        if !new_lines.is_empty() {
            last_new_lines_at = Instant::now();
        }
        if !new_lines
            .iter()
            .filter_map(|line| describer.describe_line(line))
            .all(|line| page.print_line(&line))
        {
            break;
        }
        if last_new_lines_at.elapsed() >= QUIET_PERIOD
            && let Some(message) = ended_run_message(project)
        {
            print_notice(&message);
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Returns a message if the run has ended. Returns `None` while it is open, or while its `plimsoll run` still holds the run lock.
fn ended_run_message(project: &Project) -> Option<String> {
    let state =
        state_file::load_state(project, None).ok().flatten().filter(|state| state.lifecycle.has_ended())?;
    let name = plimsoll_domain::text::to_safe_single_line(&state.options.task_name);
    (!lock::is_run_locked(project))
        .then(|| format!("the run \"{name}\" has ended ({})", state.lifecycle.status()))
}
