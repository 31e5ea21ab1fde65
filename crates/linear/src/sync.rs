//! `plimsoll linear sync`: delivers the notes in the outbox, at the user's request.

use crate::client::RetryLimits;
use crate::deliver::{Asked, Delivered, Report, body_of, deliver};
use crate::way;
use plimsoll_domain::text::{count_with_noun, to_single_line};
use plimsoll_domain::{RunId, Settings};
use plimsoll_store::{Project, StoreError, clock, outbox};
use plimsoll_terminal::console::{fail, fail_with_store_error, print_error, print_text};
use std::process::ExitCode;
use std::time::Duration;

/// The user waits this long for a delivery.
const TIMEOUT: Duration = Duration::from_secs(40);
const TRIES: u32 = 4;

/// Prints what would be sent, run by run.
pub(crate) fn show(project: &Project) -> ExitCode {
    match comments(project) {
        Ok(comments) if comments.is_empty() => print_text("no notes to deliver"),
        Ok(comments) => comments.iter().for_each(print_text),
        Err(error) => return fail_with_store_error(&error),
    }
    ExitCode::SUCCESS
}

fn comments(project: &Project) -> Result<Vec<String>, StoreError> {
    let comment = |run: &RunId| {
        let notes = outbox::read_notes(project, run)?;
        let issue = notes.first().map(|note| note.issue_name.clone()).unwrap_or_default();
        Ok(format!("to {}:\n\n{}\n", to_single_line(&issue), body_of(&notes).trim_end()))
    };
    waiting(project).iter().map(comment).collect()
}

fn waiting(project: &Project) -> Vec<RunId> {
    outbox::runs_with_notes(project)
        .into_iter()
        .filter(|run| outbox::undelivered_note_count(project, run) > 0)
        .collect()
}

/// Delivers the notes that wait; exit code 0 where none is left.
pub(crate) fn sync(project: &Project, settings: &Settings) -> ExitCode {
    if waiting(project).is_empty() {
        print_text("no notes to deliver");
        return ExitCode::SUCCESS;
    }
    let Some(issue) = settings.linear.issue.as_deref() else {
        return not_delivered(
            project,
            &"no issue is set",
            "name it as `linear.issue` in your own settings file",
        );
    };
    let linear = match way::of_user(project, settings) {
        Ok(linear) => linear,
        Err(error) => return not_delivered(project, &error, error.hint()),
    };
    match deliver(project, &linear, issue, RetryLimits::of(TIMEOUT, TRIES), Asked::ByUser) {
        Ok(report) => tell(project, &report),
        Err(error) => fail_with_store_error(&error),
    }
}

fn tell(project: &Project, report: &Report) -> ExitCode {
    report.delivered.iter().for_each(|one| print_text(sentence(one)));
    for warning in report.delivered.iter().flat_map(|one| &one.warnings) {
        print_error(&format!("Linear also says: {}", to_single_line(warning)));
    }
    for (run, other) in &report.elsewhere {
        let words = format!(
            "left: notes of run {run} are for {other}, and your settings name another issue (`linear.issue`)"
        );
        print_error(&to_single_line(&words));
    }
    match (&report.trouble, &report.wait) {
        (Some(error), _) => not_delivered(project, error, error.hint()),
        (None, Some(wait)) => {
            let until = clock::parse_timestamp(&wait.retry_at)
                .map_or_else(|| wait.retry_at.clone().to_string(), clock::format_local_time_with_seconds);
            not_delivered(project, &format!("Linear asked us to wait until {until}"), "try again then")
        }
        _ if report.is_busy => fail("another plimsoll is delivering now\nhint: try again in a minute"),
        _ => ExitCode::SUCCESS,
    }
}

fn sentence(one: &Delivered) -> String {
    let url = if one.url.is_empty() { &one.issue } else { &one.url };
    let (notes, task) = (count_with_noun(one.notes, "note"), to_single_line(&one.task));
    format!("delivered {notes} of the run \"{task}\": {}", to_single_line(url))
}

fn not_delivered(project: &Project, error: &impl std::fmt::Display, hint: &str) -> ExitCode {
    let left = count_with_noun(outbox::undelivered_note_count_of_all_runs(project), "note");
    fail(format!("{}; {left} not delivered yet\nhint: {hint}", to_single_line(&error.to_string())))
}
