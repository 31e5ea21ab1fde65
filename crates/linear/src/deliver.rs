//! Delivers notes as one comment per run. Each delivery writes the full text, so a repeated delivery changes nothing. The comment's
//! id is saved before anything is sent: after a crash between request and response, the next attempt finds the comment.

use crate::client::{
    LinearClient, LinearError, PostedComment, RequestedWait as Wait, RetryLimits, WithWarnings,
};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, LinearDelivered};
use plimsoll_domain::linear::{LinearBackoff, LinearComment, LinearNote};
use plimsoll_flows::linear::failure;
use plimsoll_store::{Project, StoreError, clock, journal, outbox};
use std::time::Duration;

/// The requester of a delivery. A user's request ignores the backoff after failures, except a rate limit set by Linear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requester {
    Run,
    User,
}

/// The delivered notes of one run.
#[derive(Debug)]
pub(crate) struct RunDelivery {
    pub(crate) task_name: String,
    pub(crate) issue_name: String,
    pub(crate) note_count: usize,
    pub(crate) comment_url: String,
    /// Errors that Linear returned together with the comment.
    pub(crate) warnings: Vec<String>,
}

/// The result of a delivery over all runs.
#[derive(Debug, Default)]
pub(crate) struct DeliveryReport {
    pub(crate) delivered_runs: Vec<RunDelivery>,
    /// The error that stopped the delivery; the remaining runs were not attempted.
    pub(crate) error: Option<LinearError>,
    /// False if the previous attempt failed with the same error.
    pub(crate) is_new_error: bool,
    /// The active backoff because of which nothing was attempted.
    pub(crate) backoff: Option<LinearBackoff>,
    /// Skipped runs whose notes name an issue other than the configured one, as pairs of run id and issue name.
    pub(crate) runs_for_other_issues: Vec<(String, String)>,
    /// True if another process holds the delivery lock.
    pub(crate) is_other_delivery_running: bool,
}

/// How long a user's delivery waits for the lock of another one. A run does not wait at all.
const USER_LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Delivers the undelivered notes of each run, oldest run first, until the first error. Runs whose notes name another issue
/// are skipped, because an agent can write the notes and only the user's settings may choose the issue. Nothing is sent
/// while a backoff applies to the requester or another delivery holds the lock.
pub(crate) fn deliver_notes_for_issue_until_error(
    project: &Project,
    client: &LinearClient,
    configured_issue: &str,
    limits: RetryLimits,
    requester: Requester,
) -> Result<DeliveryReport, StoreError> {
    let mut report = DeliveryReport::default();
    let lock_timeout = if requester == Requester::User { USER_LOCK_TIMEOUT } else { Duration::ZERO };
    let _lock = match outbox::lock_delivery(project, lock_timeout) {
        Ok(lock) => lock,
        Err(StoreError::Locked { .. }) => {
            return Ok(DeliveryReport { is_other_delivery_running: true, ..report });
        }
        Err(error) => return Err(error),
    };
    let previous_backoff = outbox::load_backoff(project);
    let active_backoff = previous_backoff.as_ref().filter(|backoff| failure::is_backoff_active(backoff));
    if let Some(backoff) =
        active_backoff.filter(|backoff| backoff.is_rate_limited || requester == Requester::Run)
    {
        return Ok(DeliveryReport { backoff: Some(backoff.clone()), ..report });
    }
    for run_id in outbox::runs_with_notes_oldest_first(project) {
        if outbox::undelivered_note_count(project, &run_id) == 0 {
            continue;
        }
        if let Some(run_issue) = issue_name_of_run(project, &run_id)?
            .filter(|run_issue| !run_issue.eq_ignore_ascii_case(configured_issue))
        {
            report.runs_for_other_issues.push((run_id.to_string(), run_issue));
            continue;
        }
        match post_comment_if_run_has_new_notes(project, client, limits, &run_id)? {
            Ok(delivery) => report.delivered_runs.extend(delivery),
            Err(error) => {
                report.is_new_error = save_backoff_and_journal_error_if_new(
                    project,
                    &run_id,
                    previous_backoff.as_ref(),
                    &error,
                )?;
                report.error = Some(error);
                return Ok(report);
            }
        }
    }
    if previous_backoff.is_some() {
        outbox::save_or_remove_backoff(project, None)?;
    }
    Ok(report)
}

/// Returns the issue of a run's comment, or of its first note if it has no comment yet.
fn issue_name_of_run(project: &Project, run_id: &RunId) -> Result<Option<String>, StoreError> {
    if let Some(comment) = outbox::load_comment_state(project, run_id) {
        return Ok(Some(comment.issue_name));
    }
    Ok(outbox::read_notes(project, run_id)?.into_iter().next().map(|note| note.issue_name))
}

/// Creates or updates the comment of one run. Returns `Ok(Ok(None))` if the run has no new notes.
fn post_comment_if_run_has_new_notes(
    project: &Project,
    client: &LinearClient,
    limits: RetryLimits,
    run_id: &RunId,
) -> Result<Result<Option<RunDelivery>, LinearError>, StoreError> {
    let notes = outbox::read_notes(project, run_id)?;
    let Some((first_note, last_note)) = notes.first().zip(notes.last()) else { return Ok(Ok(None)) };
    let saved_comment = outbox::load_comment_state(project, run_id);
    let mut comment =
        saved_comment.unwrap_or_else(|| LinearComment::for_run(run_id, &first_note.issue_name, 0));
    // The id is derived again, because an agent can edit the saved record and name somebody else's comment.
    comment.id = LinearComment::for_run(run_id, &comment.issue_name, comment.generation).id;
    let new_note_count = notes.len().saturating_sub(comment.delivered_note_count);
    if new_note_count == 0 {
        return Ok(Ok(None));
    }
    let body = client.key().redact_from(&redact_and_render_comment_body(&notes));
    let mut post_result =
        save_and_create_or_update_comment(project, client, limits, run_id, &comment, &body)?;
    if comment.is_created && post_result.as_ref().is_err_and(LinearError::is_not_found) {
        // The comment was deleted in Linear, so a new one is created under the next generation's id.
        comment = LinearComment::for_run(run_id, &comment.issue_name, comment.generation + 1);
        post_result = save_and_create_or_update_comment(project, client, limits, run_id, &comment, &body)?;
    }
    let posted_comment = match post_result {
        Ok(posted_comment) => posted_comment,
        Err(error) => return Ok(Err(error)),
    };
    comment.is_created = true;
    comment.delivered_note_count = notes.len();
    comment.url = Some(posted_comment.data.url.clone()).filter(|url| !url.is_empty());
    // If the process is killed before this, the next delivery sends the same text to the same comment.
    outbox::save_comment_state(project, run_id, &comment)?;
    let delivery = RunDelivery {
        task_name: last_note.task_name.clone(),
        issue_name: comment.issue_name.clone(),
        note_count: new_note_count,
        comment_url: posted_comment.data.url,
        warnings: posted_comment.warnings.iter().map(ToString::to_string).collect(),
    };
    // The journal entry is written last. If the process is killed before this, only the entry is lost and nothing is sent again.
    record_delivery_in_journal(project, last_note, &delivery)?;
    Ok(Ok(Some(delivery)))
}

type PostResult = Result<WithWarnings<PostedComment>, LinearError>;

fn save_and_create_or_update_comment(
    project: &Project,
    client: &LinearClient,
    limits: RetryLimits,
    run_id: &RunId,
    comment: &LinearComment,
    body: &str,
) -> Result<PostResult, StoreError> {
    if comment.is_created {
        return Ok(client.update_comment(&comment.id, body, limits));
    }
    // Saved before sending, because after a crash the next process must know the comment's id.
    outbox::save_comment_state(project, run_id, comment)?;
    Ok(match client.create_comment(&comment.id, &comment.issue_name, body, limits) {
        // Linear may reject the request because an earlier attempt created the comment and its response was lost.
        Err(rejection @ LinearError::Rejected { .. }) => match client.fetch_comment(&comment.id, limits) {
            Ok(_) => client.update_comment(&comment.id, body, limits),
            Err(LinearError::Rejected { .. } | LinearError::UnexpectedResponse { .. }) => Err(rejection),
            Err(error) => Err(error),
        },
        result => result,
    })
}

/// Renders the comment of a run. Secrets are redacted again, because an agent can write the notes.
pub(crate) fn redact_and_render_comment_body(notes: &[LinearNote]) -> String {
    let redact = plimsoll_secrets::redact;
    let notes: Vec<LinearNote> = notes
        .iter()
        .map(|note| LinearNote {
            text: redact(&note.text),
            task_name: redact(&note.task_name),
            ..note.clone()
        })
        .collect();
    plimsoll_policy::linear::render_comment_shortening_or_omitting_oldest(
        &notes,
        plimsoll_policy::linear::MAX_COMMENT_CHARS,
    )
}

fn record_delivery_in_journal(
    project: &Project,
    last_note: &LinearNote,
    run_delivery: &RunDelivery,
) -> Result<(), StoreError> {
    let event = LinearDelivered {
        issue: run_delivery.issue_name.clone(),
        note_count: run_delivery.note_count,
        url: run_delivery.comment_url.clone(),
        warnings: run_delivery.warnings.clone(),
    };
    let entry = JournalEntry::new(JournalEvent::LinearDelivered(event));
    journal::append_entry(
        project,
        entry.with_run(Some((&last_note.run_id, last_note.iteration_or_item_number))),
    )
}

/// Saves the backoff until the next attempt, and journals a new error. Returns true if the error differs from the previous one.
fn save_backoff_and_journal_error_if_new(
    project: &Project,
    run_id: &RunId,
    previous_backoff: Option<&LinearBackoff>,
    error: &LinearError,
) -> Result<bool, StoreError> {
    let failure_count = previous_backoff.map_or(0, |backoff| backoff.failure_count) + 1;
    let (retry_at, is_rate_limited) = retry_time_and_is_rate_limited(error, failure_count);
    let backoff = LinearBackoff {
        retry_at: clock::to_timestamp(retry_at),
        is_rate_limited,
        failure_count,
        last_error: error.to_string(),
    };
    failure::save_backoff_and_journal_new_error(project, run_id, previous_backoff, &backoff)
}

/// Returns the time of the next attempt, and true for a rate limit. After a rate limit the time is the one that Linear
/// asks for, if it names one; otherwise it is that of our own backoff.
fn retry_time_and_is_rate_limited(
    error: &LinearError,
    failure_count: u32,
) -> (chrono::DateTime<chrono::Utc>, bool) {
    let default_retry_at = failure::retry_time_after_failures(failure_count);
    match error {
        LinearError::RateLimited { requested_wait: Wait::UntilUnixMillis(unix_millis) } => {
            // Timestamps have whole seconds. The time is rounded up, so that the next attempt is never too early.
            (clock::from_unix_seconds(unix_millis.div_ceil(1_000)).unwrap_or(default_retry_at), true)
        }
        LinearError::RateLimited { requested_wait: Wait::ForDuration(duration) } => {
            (clock::now() + *duration + Duration::from_secs(1), true)
        }
        LinearError::RateLimited { requested_wait: Wait::Unspecified } => (default_retry_at, true),
        _ => (default_retry_at, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_body_omits_passwords() {
        let note_with_text =
            |text: &str| LinearNote { text: text.into(), task_name: "T".into(), ..LinearNote::default() };
        let body = redact_and_render_comment_body(&[note_with_text(
            "logged in with postgres://me:hunter2hunter2@db/x, all is well",
        )]);
        assert!(!body.contains("hunter2") && body.contains("all is well"), "{body}");
    }

    #[test]
    fn rate_limit_sets_retry_time_and_timeout_uses_own_backoff() {
        let rate_limited =
            LinearError::RateLimited { requested_wait: Wait::UntilUnixMillis(1_767_786_300_001) };
        assert_eq!(
            retry_time_and_is_rate_limited(&rate_limited, 1),
            (clock::from_unix_seconds(1_767_786_301).unwrap(), true)
        );
        let timed_out = LinearError::Timeout { host: "x".into(), timeout: Duration::from_secs(1) };
        let (retry_at, is_rate_limited) = retry_time_and_is_rate_limited(&timed_out, 1);
        assert!(!is_rate_limited && retry_at > clock::now() + Duration::from_secs(50));
    }
}
