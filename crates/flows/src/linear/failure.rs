//! A delivery that failed: when it may be tried again, and whether anybody has to hear of it.

use chrono::{DateTime, Utc};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::linear::Wait;
use plimsoll_store::{Project, StoreError, clock, journal, outbox};
use std::time::Duration;

/// When it is tried again after this many failures in a row, where Linear has not said so itself.
pub fn backoff(failures: u32) -> DateTime<Utc> {
    clock::now() + Duration::from_secs(plimsoll_policy::linear::backoff_seconds(failures))
}

/// True while nothing may be sent.
pub fn lasts(wait: &Wait) -> bool {
    clock::moment(&wait.until).is_some_and(|until| until > clock::now())
}

/// Remembers when it may be tried again; the journal hears of each trouble once. True if it was not the same trouble
/// before.
pub fn note(
    project: &Project,
    run_id: &RunId,
    before: Option<&Wait>,
    now: &Wait,
) -> Result<bool, StoreError> {
    let is_new = before.is_none_or(|wait| wait.trouble != now.trouble);
    // Before the journal's line: a kill in between loses the line, but not the wait that Linear asked for.
    outbox::save_wait(project, Some(now))?;
    if is_new {
        let iteration = outbox::notes(project, run_id)?.last().map_or(0, |note| note.iteration);
        let (trouble, until) = (now.trouble.clone(), Some(now.until.clone()));
        let event = JournalEvent::LinearFailed { trouble, until };
        journal::note(project, JournalEntry::new(event).run(Some((run_id, iteration))))?;
    }
    Ok(is_new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_new_once_and_keeps_the_next_try_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let wait = |trouble: &str, failures| Wait {
            until: clock::stamp(backoff(failures)),
            failures,
            trouble: trouble.to_owned(),
            ..Wait::default()
        };
        let mut heard = Vec::new();
        for (failures, trouble) in [(1, "no network"), (2, "no network"), (3, "no key")] {
            let before = outbox::wait(&project);
            let new = note(&project, &"r1".into(), before.as_ref(), &wait(trouble, failures)).unwrap();
            heard.push(new);
        }
        assert_eq!(heard, [true, false, true]);
        assert_eq!(journal::read(&project).unwrap().len(), 2);
        assert!(lasts(&outbox::wait(&project).unwrap()));
        assert!(!lasts(&Wait {
            until: clock::stamp(clock::now() - Duration::from_secs(1)),
            ..Wait::default()
        }));
    }
}
