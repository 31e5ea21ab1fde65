//! What `plimsoll run` starts this program for. It reads one line from our standard output and our exit code: 0 and what the
//! user should hear, 1 and why nothing could be sent, which the run remembers. Any other code says that this program failed.

use crate::client::RetryLimits;
use crate::deliver::{Asked, Report, deliver};
use crate::way::{self, WayError};
use plimsoll_domain::text::to_single_line;
use plimsoll_flows::linear::delivery::RETRY_HINT;
use plimsoll_flows::linear::key::KeySource;
use plimsoll_store::{Project, environment};
use plimsoll_terminal::console::print_text;
use std::process::ExitCode;
use std::time::Duration;

/// A run has better things to do than to try often: the notes wait.
const TRIES: u32 = 2;

/// Says why notes cannot be delivered at all.
pub(crate) fn ready(source: KeySource) -> ExitCode {
    match way::of_run(source) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => no_way(&error),
    }
}

/// Delivers what waits for an issue; says what went wrong if that is news.
pub(crate) fn deliver_for_run(issue: &str, within: Duration) -> ExitCode {
    let limits = RetryLimits::of(within, TRIES);
    // The run has the same project: the folder that it has started us in.
    let project = Project::with_local_files(&environment::current_dir());
    // When the run began, it was told where a wrong key came from.
    let linear = match way::of_run(KeySource::Variable) {
        Ok(linear) => linear,
        Err(error) => return no_way(&error),
    };
    match deliver(&project, &linear, issue, limits, Asked::ByRun) {
        Ok(Report { trouble: Some(trouble), is_new_trouble: true, .. }) => {
            report(&format!("{trouble}; {RETRY_HINT}"));
        }
        Ok(_) => {}
        Err(error) => report(&format!("{error}; {}", error.hint())),
    }
    ExitCode::SUCCESS
}

fn no_way(error: &WayError) -> ExitCode {
    report(&format!("{error}; {}", error.hint()));
    ExitCode::FAILURE
}

fn report(words: &str) {
    print_text(to_single_line(words));
}
