//! Cancelling a run for good.

use super::newest::newest_run_id;
use super::orphans::{end_left_behind, orphan};
use crate::context::session_usage::complete_cost;
use crate::run::archive::{archive, is_archived};
use crate::run::ended_session::record_end;
use crate::run::session_output;
use crate::run::stream_reader::StreamReader;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::state::Phase;
use plimsoll_domain::status::Status;
use plimsoll_domain::{Ending, Exit, RunId, RunState};
use plimsoll_launcher::client::Client;
use plimsoll_store::{
    Durability, Project, StoreError, clock, config, disk, journal, lock, sessions, state_file,
};
use std::time::Duration;

/// Cancels the run for good. The session that works for it is ended by its next hook.
pub fn cancel(project: &Project) -> Result<Option<RunState>, StoreError> {
    let Some(run_id) = newest_run_id(project)? else { return Ok(None) };
    // The state first: whoever looks at the run from here on ends it, whatever a kill leaves undone below.
    let cancelled = state_file::update(project, Some(&run_id), Durability::Durable, |state| {
        state.lifecycle.cancel(Some(clock::stamp(clock::now())));
        state.clone()
    })?;
    // Also for one that was cancelled before: that process may have died on the way.
    if let Some(state) = cancelled.as_ref().filter(|state| state.lifecycle.status() == Status::Cancelled) {
        tell_session(project, state)?;
        let line = JournalEntry::of_run(state, JournalEvent::Cancelled);
        if !journal::tells(project, &line) {
            journal::note(project, line)?;
        }
        // Only after the line: ending a client may take seconds, and the run is cancelled already.
        end_orphan(project, state)?;
        archive_cancelled(project, &run_id)?;
    }
    Ok(cancelled)
}

/// It may never be judged any more: it is archived as it is. One whose session ends later is archived then
/// once more.
fn archive_cancelled(project: &Project, run_id: &RunId) -> Result<(), StoreError> {
    match state_file::load(project, Some(run_id))? {
        Some(state) if !is_archived(project, &state) => archive(project, &state),
        _ => Ok(()),
    }
}

/// The session's hooks look at its record after every batch of tools, and at the state only when they act.
fn tell_session(project: &Project, state: &RunState) -> Result<(), StoreError> {
    let Some(session_id) = &state.session_id else { return Ok(()) };
    sessions::update(project, session_id, state_file::TIMEOUT, |record| record.end.cancelled = true)
}

/// One that was killed takes a moment to let go of its lock.
const DYING: Duration = Duration::from_millis(500);

/// A `plimsoll run` that lives ends its client itself; where it has died, its client is ended here.
fn end_orphan(project: &Project, state: &RunState) -> Result<(), StoreError> {
    // Held to the end: no `plimsoll run` can adopt the client while it is being ended.
    let Ok(_only) = lock::acquire_run(project, DYING) else { return Ok(()) };
    if let Some(orphan) = orphan(state) {
        // A kill after this line leaves the client alive: the next `plimsoll stop` comes here again and ends it.
        let reason = "cancelled, and its `plimsoll run` had died".to_owned();
        journal::note(project, JournalEntry::of_run(state, JournalEvent::ClientEnded { reason }))?;
        Client::Adopted(orphan).end(Duration::from_secs(5));
        end_left_behind(state);
    }
    count_session(project, state)
}

/// Counts what the last session of a dead `plimsoll run` used: nobody judges it any more, and other runs share the limit of the day. A
/// shell loop has no output file; its gate counts.
fn count_session(project: &Project, state: &RunState) -> Result<(), StoreError> {
    let output = session_output(project, state, "jsonl");
    if state.iteration_record.phase != Phase::Spawned || !disk::exists(&output) {
        return Ok(());
    }
    let mut reader = StreamReader::new(output, "");
    reader.read_on();
    let session_id = state.session_id.clone().unwrap_or_default();
    let record = sessions::load(project, &session_id);
    let ended = SessionResult { ending: Ending::Cancelled, ..reader.ended(Exit::default()) };
    let ended = complete_cost(project, &session_id, &record, ended);
    let settings = config::load_of_run(project, &state.run_id);
    record_end(&RunContext { project, settings: &settings, run_id: &state.run_id }, &ended).map(|_| ())
}
