//! Delivering: one comment a run, written whole each time, so that twice is once. Its id is known and on the disk before
//! anything is sent: after a crash between sending and hearing the answer, the next try finds the comment there.

use crate::client::{Linear, LinearError, Posted, RetryLimits, Wait as Asks, WithWarnings};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, LinearDelivered};
use plimsoll_domain::linear::{LinearBackoff, LinearComment, LinearNote};
use plimsoll_flows::linear::failure;
use plimsoll_store::{Project, StoreError, clock, journal, outbox};
use std::time::Duration;

/// Who wants it: the user waits for the answer, and is refused only what Linear itself has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    ByRun,
    ByUser,
}

/// What has been delivered of one run.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) task: String,
    pub(crate) issue: String,
    pub(crate) notes: usize,
    pub(crate) url: String,
    /// What Linear complained of beside it.
    pub(crate) warnings: Vec<String>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) delivered: Vec<Delivered>,
    /// Why the rest was not; nothing is tried after it.
    pub(crate) trouble: Option<LinearError>,
    /// True when it was not the same trouble before.
    pub(crate) is_new_trouble: bool,
    /// Nothing was tried, because it is not the time.
    pub(crate) wait: Option<LinearBackoff>,
    /// Runs whose notes are for an issue that the user's settings do not name, and that issue.
    pub(crate) elsewhere: Vec<(String, String)>,
    /// Another program is delivering.
    pub(crate) is_busy: bool,
}

/// The user may wait for another delivery to end; a run has better things to do.
const USERS_TIMEOUT: Duration = Duration::from_secs(20);

/// Delivers what waits for an issue, run by run, oldest first. An agent can write the notes: what they name
/// as their issue must be what the user's settings name.
pub(crate) fn deliver(
    project: &Project,
    linear: &Linear,
    issue: &str,
    limits: RetryLimits,
    asked: Asked,
) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let others = if asked == Asked::ByUser { USERS_TIMEOUT } else { Duration::ZERO };
    let _lock = match outbox::lock_delivery(project, others) {
        Ok(lock) => lock,
        Err(StoreError::Locked { .. }) => return Ok(Report { is_busy: true, ..report }),
        Err(error) => return Err(error),
    };
    let before = outbox::load_backoff(project);
    let lasts = before.as_ref().filter(|wait| failure::is_backoff_active(wait));
    if let Some(wait) = lasts.filter(|wait| wait.is_rate_limited || asked == Asked::ByRun) {
        return Ok(Report { wait: Some(wait.clone()), ..report });
    }
    for run_id in outbox::runs_with_notes(project) {
        if outbox::undelivered_note_count(project, &run_id) == 0 {
            continue;
        }
        if let Some(other) = issue_of(project, &run_id)?.filter(|other| !other.eq_ignore_ascii_case(issue)) {
            report.elsewhere.push((run_id.to_string(), other));
            continue;
        }
        match deliver_run(project, linear, limits, &run_id)? {
            Ok(delivered) => report.delivered.extend(delivered),
            Err(trouble) => {
                report.is_new_trouble = note_trouble(project, &run_id, before.as_ref(), &trouble)?;
                report.trouble = Some(trouble);
                return Ok(report);
            }
        }
    }
    if before.is_some() {
        outbox::save_backoff(project, None)?;
    }
    Ok(report)
}

/// The issue of a run's comment, or of the one that it will have.
fn issue_of(project: &Project, run_id: &RunId) -> Result<Option<String>, StoreError> {
    if let Some(comment) = outbox::load_comment(project, run_id) {
        return Ok(Some(comment.issue_name));
    }
    Ok(outbox::read_notes(project, run_id)?.into_iter().next().map(|note| note.issue_name))
}

/// One run: its comment is made, or gets its new text.
fn deliver_run(
    project: &Project,
    linear: &Linear,
    limits: RetryLimits,
    run_id: &RunId,
) -> Result<Result<Option<Delivered>, LinearError>, StoreError> {
    let notes = outbox::read_notes(project, run_id)?;
    let Some((first, last)) = notes.first().zip(notes.last()) else { return Ok(Ok(None)) };
    let known = outbox::load_comment(project, run_id);
    let mut comment = known.unwrap_or_else(|| LinearComment::for_run(run_id, &first.issue_name, 0));
    // The id follows from the run. What the record says in its place could be anybody's comment.
    comment.id = LinearComment::for_run(run_id, &comment.issue_name, comment.generation).id;
    let new = notes.len().saturating_sub(comment.delivered_note_count);
    if new == 0 {
        return Ok(Ok(None));
    }
    let body = linear.key().taken_out_of(&body_of(&notes));
    let mut posted = post(project, linear, limits, run_id, &comment, &body)?;
    if comment.is_created && posted.as_ref().is_err_and(LinearError::is_not_found) {
        // It was deleted; the run is reported all the same.
        comment = LinearComment::for_run(run_id, &comment.issue_name, comment.generation + 1);
        posted = post(project, linear, limits, run_id, &comment, &body)?;
    }
    let answer = match posted {
        Ok(answer) => answer,
        Err(trouble) => return Ok(Err(trouble)),
    };
    comment.is_created = true;
    comment.delivered_note_count = notes.len();
    comment.url = Some(answer.what.url.clone()).filter(|url| !url.is_empty());
    // A kill before this sends the same text once more, to the same comment.
    outbox::save_comment(project, run_id, &comment)?;
    let delivered = Delivered {
        task: last.task_name.clone(),
        issue: comment.issue_name.clone(),
        notes: new,
        url: answer.what.url,
        warnings: answer.warnings.iter().map(ToString::to_string).collect(),
    };
    // The journal last: a kill before it loses the line, and nothing is sent again.
    note_delivery(project, last, &delivered)?;
    Ok(Ok(Some(delivered)))
}

type Answered = Result<WithWarnings<Posted>, LinearError>;

fn post(
    project: &Project,
    linear: &Linear,
    limits: RetryLimits,
    run_id: &RunId,
    comment: &LinearComment,
    body: &str,
) -> Result<Answered, StoreError> {
    if comment.is_created {
        return Ok(linear.update(&comment.id, body, limits));
    }
    // Before it is sent: after a crash the next process must know what to look for.
    outbox::save_comment(project, run_id, comment)?;
    Ok(match linear.create(&comment.id, &comment.issue_name, body, limits) {
        // It may have been refused because an earlier try came through, whose answer did not.
        Err(refusal @ LinearError::Refused { .. }) => match linear.comment(&comment.id, limits) {
            Ok(_) => linear.update(&comment.id, body, limits),
            Err(LinearError::Refused { .. } | LinearError::Strange { .. }) => Err(refusal),
            Err(trouble) => Err(trouble),
        },
        answered => answered,
    })
}

/// The comment as it is sent. An agent can write the notes: they are searched for secrets once more.
pub(crate) fn body_of(notes: &[LinearNote]) -> String {
    let clean = plimsoll_secrets::redact;
    let notes: Vec<LinearNote> = notes
        .iter()
        .map(|note| LinearNote { text: clean(&note.text), task_name: clean(&note.task_name), ..note.clone() })
        .collect();
    plimsoll_policy::linear::render_comment(&notes, plimsoll_policy::linear::MAX_COMMENT_CHARS)
}

fn note_delivery(project: &Project, last: &LinearNote, delivered: &Delivered) -> Result<(), StoreError> {
    let delivery = LinearDelivered {
        issue: delivered.issue.clone(),
        note_count: delivered.notes,
        url: delivered.url.clone(),
        warnings: delivered.warnings.clone(),
    };
    let entry = JournalEntry::new(JournalEvent::LinearDelivered(delivery));
    journal::append_entry(project, entry.with_run(Some((&last.run_id, last.iteration_or_item_number))))
}

/// Remembers when it may be tried again. True if it is a new trouble.
fn note_trouble(
    project: &Project,
    run_id: &RunId,
    before: Option<&LinearBackoff>,
    trouble: &LinearError,
) -> Result<bool, StoreError> {
    let failures = before.map_or(0, |wait| wait.failure_count) + 1;
    let (until, is_limit) = until(trouble, failures);
    let wait = LinearBackoff {
        retry_at: clock::to_timestamp(until),
        is_rate_limited: is_limit,
        failure_count: failures,
        last_error: trouble.to_string(),
    };
    failure::record_failure(project, run_id, before, &wait)
}

/// When it is tried again, and whether Linear has said so.
fn until(trouble: &LinearError, failures: u32) -> (chrono::DateTime<chrono::Utc>, bool) {
    let own = failure::retry_time_after_failures(failures);
    match trouble {
        LinearError::Limited { wait: Asks::Until(milliseconds) } => {
            // Stamps have whole seconds: rather one too late.
            (clock::from_unix_seconds(milliseconds.div_ceil(1_000)).unwrap_or(own), true)
        }
        LinearError::Limited { wait: Asks::For(time) } => {
            (clock::now() + *time + Duration::from_secs(1), true)
        }
        LinearError::Limited { wait: Asks::Unknown } => (own, true),
        _ => (own, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_password_is_left_out_of_the_body() {
        let note =
            |words: &str| LinearNote { text: words.into(), task_name: "T".into(), ..LinearNote::default() };
        let body = body_of(&[note("logged in with postgres://me:hunter2hunter2@db/x, all is well")]);
        assert!(!body.contains("hunter2") && body.contains("all is well"), "{body}");
    }

    #[test]
    fn a_limit_is_kept_to_the_second_and_a_failure_is_tried_again_by_itself() {
        let limited = LinearError::Limited { wait: Asks::Until(1_767_786_300_001) };
        assert_eq!(until(&limited, 1), (clock::from_unix_seconds(1_767_786_301).unwrap(), true));
        let silent = LinearError::Silent { host: "x".into(), limit: Duration::from_secs(1) };
        let (first, is_limit) = until(&silent, 1);
        assert!(!is_limit && first > clock::now() + Duration::from_secs(50));
    }
}
