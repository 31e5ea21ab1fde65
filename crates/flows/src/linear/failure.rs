//! A failed delivery: when it is retried, and whether it is reported.

use chrono::{DateTime, Utc};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::linear::LinearBackoff;
use plimsoll_store::{Project, StoreError, clock, journal, outbox};
use std::time::Duration;

/// Returns when to retry after this many failures in a row, if Linear has not named a time.
pub fn retry_time_after_failures(failures: u32) -> DateTime<Utc> {
    clock::now() + Duration::from_secs(plimsoll_policy::linear::backoff_seconds(failures))
}

/// Returns true while nothing may be sent.
pub fn is_backoff_active(backoff: &LinearBackoff) -> bool {
    clock::parse_timestamp(&backoff.retry_at).is_some_and(|retry_at| retry_at > clock::now())
}

/// Saves when to retry, and writes each new error to the journal once. Returns true if the error differs from
/// the previous one.
pub fn record_failure(
    project: &Project,
    run_id: &RunId,
    previous: Option<&LinearBackoff>,
    current: &LinearBackoff,
) -> Result<bool, StoreError> {
    let is_new = previous.is_none_or(|previous| previous.last_error != current.last_error);
    // Before the journal's line: a kill in between loses the line, but not the delay that Linear asked for.
    outbox::save_backoff(project, Some(current))?;
    if is_new {
        let iteration =
            outbox::read_notes(project, run_id)?.last().map_or(0, |note| note.iteration_or_item_number);
        let (last_error, retry_at) = (current.last_error.clone(), Some(current.retry_at.clone()));
        let event = JournalEvent::LinearFailed { error: last_error, retry_at };
        journal::append_entry(project, JournalEntry::new(event).with_run(Some((run_id, iteration))))?;
    }
    Ok(is_new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_new_once_and_delays_the_next_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let backoff_with = |error: &str, failures| LinearBackoff {
            retry_at: clock::to_timestamp(retry_time_after_failures(failures)),
            failure_count: failures,
            last_error: error.to_owned(),
            ..LinearBackoff::default()
        };
        let mut new_failures = Vec::new();
        for (failures, error) in [(1, "no network"), (2, "no network"), (3, "no key")] {
            let previous = outbox::load_backoff(&project);
            let is_new =
                record_failure(&project, &"r1".into(), previous.as_ref(), &backoff_with(error, failures))
                    .unwrap();
            new_failures.push(is_new);
        }
        assert_eq!(new_failures, [true, false, true]);
        assert_eq!(journal::read_entries(&project).unwrap().len(), 2);
        assert!(is_backoff_active(&outbox::load_backoff(&project).unwrap()));
        assert!(!is_backoff_active(&LinearBackoff {
            retry_at: clock::to_timestamp(clock::now() - Duration::from_secs(1)),
            ..LinearBackoff::default()
        }));
    }
}
