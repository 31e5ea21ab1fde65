//! A `ralph-state.json` that no run of ours wrote: what `gate` and `monitor` answer for its loop, and what is said of it
//! elsewhere.

use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::run::foreign;
use plimsoll_flows::run::foreign::Answer;
use plimsoll_policy::foreign::{Loop, missing_marks, standing};
use plimsoll_store::{Project, StoreError, state_file};
use plimsoll_terminal::console::{fail_with, say, say_error};
use plimsoll_terminal::standard_input;
use std::process::ExitCode;

/// Judges for the loop; none if the state is a run's of ours, or there is none.
pub(crate) fn gate(project: &Project) -> Option<ExitCode> {
    let judged = foreign::is_at_work(project).and_then(|is_at_work| {
        // The session's output is what the loop pipes to us: it ends when the session does.
        let input = if is_at_work { standard_input::to_the_end() } else { None };
        foreign::gate(project, input.as_deref())
    });
    answer(judged)
}

/// Watches for the loop; none if the state is a run's of ours, or there is none.
pub(crate) fn monitor(project: &Project, input: Option<&[u8]>) -> Option<ExitCode> {
    answer(foreign::monitor(project, input))
}

fn answer(answered: Result<Option<Answer>, StoreError>) -> Option<ExitCode> {
    match answered {
        Ok(None) => None,
        Ok(Some(Answer { line, complaints, exit })) => {
            complaints.iter().for_each(say_error);
            line.iter().for_each(say);
            Some(exit.into())
        }
        Err(error) => Some(fail_with(error, ExitStatus::InternalError)),
    }
}

/// What is to be said of a state that is not ours; none if there is none.
pub(crate) fn words(project: &Project) -> Option<String> {
    let document = state_file::foreign(project).ok().flatten()?;
    Some(standing(&project.relative(project.state()), &missing_marks(&document), &Loop::of(&document)))
}
