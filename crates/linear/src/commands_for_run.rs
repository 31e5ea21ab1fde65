//! The commands that `plimsoll run` starts. The run reads one line of standard output and the exit code. With code 0 the line is a
//! message for the user; with code 1 it is the reason why nothing can be sent, which the run stores. Any other code means that this
//! program failed.

use crate::client::RetryLimits;
use crate::client_setup::{self, ClientSetupError};
use crate::deliver::{DeliveryReport, Requester, deliver_notes_for_issue_until_error};
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_flows::linear::delivery::RETRY_HINT;
use plimsoll_flows::linear::key::KeySource;
use plimsoll_store::{Project, environment};
use plimsoll_terminal::console::print_text;
use std::process::ExitCode;
use std::time::Duration;

/// Few tries, because the run waits for the delivery and the notes stay in the outbox anyway.
const MAX_TRIES: u32 = 2;

/// Checks that a client can be set up. If not, prints the reason and returns exit code 1.
pub(crate) fn check_delivery_setup(source: KeySource) -> ExitCode {
    match client_setup::client_for_run(source) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => fail_with_setup_error(&error),
    }
}

/// Delivers the undelivered notes for an issue. A Linear error is printed only if the previous attempt did not fail with the
/// same one. The exit code is 1 only if the client cannot be set up.
pub(crate) fn deliver_notes_and_print_new_error(issue_name: &str, time_limit: Duration) -> ExitCode {
    let limits = RetryLimits::from_now(time_limit, MAX_TRIES);
    // The run started this process in its project's folder.
    let project = Project::with_local_files(&environment::current_dir());
    // The source no longer matters: `ready` reported an invalid key with its source when the run started.
    let client = match client_setup::client_for_run(KeySource::Variable) {
        Ok(client) => client,
        Err(error) => return fail_with_setup_error(&error),
    };
    match deliver_notes_for_issue_until_error(&project, &client, issue_name, limits, Requester::Run) {
        Ok(DeliveryReport { error: Some(linear_error), is_new_error: true, .. }) => {
            print_one_line(&format!("{linear_error}; {RETRY_HINT}"));
        }
        Ok(_) => {}
        Err(error) => print_one_line(&format!("{error}; {}", error.hint())),
    }
    ExitCode::SUCCESS
}

fn fail_with_setup_error(error: &ClientSetupError) -> ExitCode {
    print_one_line(&format!("{error}; {}", error.hint()));
    ExitCode::FAILURE
}

fn print_one_line(text: &str) {
    print_text(to_safe_single_line(text));
}
