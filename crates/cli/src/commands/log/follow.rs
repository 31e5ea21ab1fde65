//! `--follow`: what comes, as it comes.

use crate::journal_lines::EventPrinter;
use crate::journal_lines::journal::Journal;
use crate::journal_lines::page::LogPage;
use plimsoll_store::{Project, lock, state_file};
use plimsoll_terminal::console::{is_closed_after, say_error};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often it looks.
const NAP: Duration = Duration::from_millis(200);
/// A verdict is in the state a moment before it is in the journal.
const QUIET: Duration = Duration::from_secs(1);

/// Shows what comes, until the run is over and nothing more does, or the reader is gone.
pub(super) fn follow(
    project: &Project,
    mut journal: Journal,
    mut teller: EventPrinter,
    mut page: LogPage,
) -> ExitCode {
    let mut heard = Instant::now();
    while !is_closed_after(NAP) {
        // A journal that cannot be read just now may be readable again later.
        let news = journal.news().unwrap_or_default();
        if !news.is_empty() {
            heard = Instant::now();
        }
        if !news.iter().filter_map(|line| teller.tell(line)).all(|line| page.print(&line)) {
            break;
        }
        if heard.elapsed() >= QUIET
            && let Some(words) = over(project)
        {
            say_error(&words);
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Words about a run that is over; none while it is not, or its `plimsoll run` has still to tell somebody.
fn over(project: &Project) -> Option<String> {
    let state = state_file::load(project, None).ok().flatten().filter(|state| state.lifecycle.is_over())?;
    let name = plimsoll_domain::text::one_line(&state.options.task_name);
    (!lock::is_run_held(project))
        .then(|| format!("the run \"{name}\" is over ({})", state.lifecycle.status()))
}
