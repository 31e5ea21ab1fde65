//! `plimsoll linear sync`: delivers the notes in the outbox, at the user's request.

use crate::client::RetryLimits;
use crate::client_setup;
use crate::deliver::{
    DeliveryReport, Requester, RunDelivery, deliver_notes_for_issue_until_error,
    redact_and_render_comment_body,
};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line};
use plimsoll_domain::{RunId, Settings};
use plimsoll_store::{Project, StoreError, clock, outbox};
use plimsoll_terminal::console::{fail, fail_with_store_error, print_text, print_warning};
use std::process::ExitCode;
use std::time::Duration;

/// Timeout of the whole delivery, for which the user waits.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(40);
const MAX_TRIES: u32 = 4;

/// Prints the full comment of each run that has undelivered notes.
pub(crate) fn print_undelivered_comments(project: &Project) -> ExitCode {
    match render_undelivered_comments(project) {
        Ok(comments) if comments.is_empty() => print_text("no notes to deliver"),
        Ok(comments) => comments.iter().for_each(print_text),
        Err(error) => return fail_with_store_error(&error),
    }
    ExitCode::SUCCESS
}

fn render_undelivered_comments(project: &Project) -> Result<Vec<String>, StoreError> {
    let render_comment = |run_id: &RunId| {
        let notes = outbox::read_notes(project, run_id)?;
        let issue_name = notes.first().map(|note| note.issue_name.clone()).unwrap_or_default();
        Ok(format!(
            "to {}:\n\n{}\n",
            to_safe_single_line(&issue_name),
            redact_and_render_comment_body(&notes).trim_end()
        ))
    };
    runs_with_undelivered_notes(project).iter().map(render_comment).collect()
}

fn runs_with_undelivered_notes(project: &Project) -> Vec<RunId> {
    outbox::runs_with_notes_oldest_first(project)
        .into_iter()
        .filter(|run_id| outbox::undelivered_note_count(project, run_id) > 0)
        .collect()
}

/// Delivers the undelivered notes and prints a report. The exit code is 0 if there were none or the delivery succeeded.
pub(crate) fn deliver_notes_for_user(project: &Project, settings: &Settings) -> ExitCode {
    if runs_with_undelivered_notes(project).is_empty() {
        print_text("no notes to deliver");
        return ExitCode::SUCCESS;
    }
    let Some(issue_name) = settings.linear.issue.as_deref() else {
        return fail_with_undelivered_count(
            project,
            &"no issue is set",
            "name it as `linear.issue` in your own settings file",
        );
    };
    let client = match client_setup::client_for_user(project, settings) {
        Ok(client) => client,
        Err(error) => return fail_with_undelivered_count(project, &error, error.hint()),
    };
    match deliver_notes_for_issue_until_error(
        project,
        &client,
        issue_name,
        RetryLimits::from_now(DELIVERY_TIMEOUT, MAX_TRIES),
        Requester::User,
    ) {
        Ok(report) => print_report(project, &report),
        Err(error) => fail_with_store_error(&error),
    }
}

fn print_report(project: &Project, report: &DeliveryReport) -> ExitCode {
    report.delivered_runs.iter().for_each(|delivery| print_text(describe_delivery(delivery)));
    for warning in report.delivered_runs.iter().flat_map(|delivery| &delivery.warnings) {
        print_warning(&format!("Linear reports: {}", to_safe_single_line(warning)));
    }
    for (run_id, other_issue) in &report.runs_for_other_issues {
        let message = format!(
            "notes of run {run_id} were not delivered: they are for {other_issue}, and your settings name another issue (`linear.issue`)"
        );
        print_warning(&to_safe_single_line(&message));
    }
    match (&report.error, &report.backoff) {
        (Some(error), _) => fail_with_undelivered_count(project, error, error.hint()),
        (None, Some(backoff)) => {
            let retry_time = clock::parse_timestamp(&backoff.retry_at)
                .map_or_else(|| backoff.retry_at.clone().to_string(), clock::format_local_time_with_seconds);
            fail_with_undelivered_count(
                project,
                &format!("Linear asked to wait until {retry_time}"),
                "try again then",
            )
        }
        _ if report.is_other_delivery_running => {
            fail("another plimsoll process is delivering notes\nhint: try again in a minute")
        }
        _ => ExitCode::SUCCESS,
    }
}

fn describe_delivery(delivery: &RunDelivery) -> String {
    let url_or_issue =
        if delivery.comment_url.is_empty() { &delivery.issue_name } else { &delivery.comment_url };
    let (notes_text, task_name) =
        (count_with_noun(delivery.note_count, "note"), to_safe_single_line(&delivery.task_name));
    format!("delivered {notes_text} of the run \"{task_name}\": {}", to_safe_single_line(url_or_issue))
}

fn fail_with_undelivered_count(project: &Project, error: &impl std::fmt::Display, hint: &str) -> ExitCode {
    let undelivered_notes_text = count_with_noun(outbox::undelivered_note_count_of_all_runs(project), "note");
    fail(format!(
        "{}; {undelivered_notes_text} not delivered yet\nhint: {hint}",
        to_safe_single_line(&error.to_string())
    ))
}
