//! `--follow`: what comes, as it comes.

use super::journal::Journal;
use super::page::LogPage;
use super::tell::EventPrinter;
use crate::console::say_error;
use plimsoll_store::{Project, lock, state_file};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often it looks.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
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
    while !is_closed_after_a_nap() {
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

/// Waits a little; true as soon as our standard output has no reader.
fn is_closed_after_a_nap() -> bool {
    let stdout = rustix::stdio::stdout();
    // HUP and ERR are reported without being asked for: no write is needed to see that the reader is gone.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let answer = poll(&mut watched, Some(&NAP));
    answer.is_ok() && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
