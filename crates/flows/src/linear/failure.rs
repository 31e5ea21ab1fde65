//! Computes when to retry a failed delivery to Linear, and writes an error to the journal only if it differs from the
//! previous one.

use chrono::{DateTime, Utc};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::linear::LinearBackoff;
use plimsoll_store::{Project, StoreError, clock, journal, outbox};
use std::time::Duration;

/// Returns when to retry after this many consecutive failures, if Linear has not specified a time.
pub fn retry_time_after_failures(failure_count: u32) -> DateTime<Utc> {
    clock::now() + Duration::from_secs(plimsoll_policy::linear::backoff_seconds(failure_count))
}

/// Returns true if the time to retry has not been reached yet.
pub fn is_backoff_active(backoff: &LinearBackoff) -> bool {
    clock::parse_timestamp(&backoff.retry_at).is_some_and(|retry_at| retry_at > clock::now())
}

/// Saves when to retry, and writes the error to the journal if it differs from the previous one. Returns true
/// if it does.
pub fn save_backoff_and_journal_new_error(
    project: &Project,
    run_id: &RunId,
    previous_backoff: Option<&LinearBackoff>,
    new_backoff: &LinearBackoff,
) -> Result<bool, StoreError> {
    let is_new_error = previous_backoff.is_none_or(|previous| previous.last_error != new_backoff.last_error);
    // Saved before the journal entry is written: a kill in between loses the entry, but not the delay that
    // Linear requested.
    outbox::save_or_remove_backoff(project, Some(new_backoff))?;
    if is_new_error {
        let iteration =
            outbox::read_notes(project, run_id)?.last().map_or(0, |note| note.iteration_or_item_number);
        let (last_error, retry_at) = (new_backoff.last_error.clone(), Some(new_backoff.retry_at.clone()));
        let event = JournalEvent::LinearFailed { error: last_error, retry_at };
        journal::append_entry(project, JournalEntry::new(event).with_run(Some((run_id, iteration))))?;
    }
    Ok(is_new_error)
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
            let is_new = save_backoff_and_journal_new_error(
                &project,
                &"r1".into(),
                previous.as_ref(),
                &backoff_with(error, failures),
            )
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
