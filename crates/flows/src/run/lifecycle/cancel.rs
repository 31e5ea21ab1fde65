//! Cancelling a run for good.

use super::newest::newest_run_id;
use super::{end_left_behind, orphan};
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
use plimsoll_domain::{Ending, Exit, RunState};
use plimsoll_launcher::client::Client;
use plimsoll_store::{Project, StoreError, clock, config, disk, lock, sessions, state_file};
use std::time::Duration;

/// Cancels the run for good. The session that works for it is ended by its next hook.
pub fn cancel(project: &Project) -> Result<Option<RunState>, StoreError> {
    let Some(run_id) = newest_run_id(project)? else { return Ok(None) };
    let settings = config::load_of_run(project, &run_id);
    let context = RunContext { project, settings: &settings, run_id: &run_id };
    // The state first: whoever looks at the run from here on ends it, whatever a kill leaves undone below.
    let cancelled = context.update(|state| {
        state.lifecycle.cancel(Some(clock::stamp(clock::now())));
        state.clone()
    })?;
    // Also for one that was cancelled before: that process may have died on the way.
    if let Some(state) = cancelled.as_ref().filter(|state| state.lifecycle.status() == Status::Cancelled) {
        tell_session(&context, state)?;
        context.note_once(JournalEntry::of_run(state, JournalEvent::Cancelled))?;
        // Only after the line: ending a client may take seconds, and the run is cancelled already.
        end_orphan(&context, state)?;
        archive_cancelled(&context)?;
    }
    Ok(cancelled)
}

/// It may never be judged any more: it is archived as it is. One whose session ends later is archived then
/// once more.
fn archive_cancelled(context: &RunContext<'_>) -> Result<(), StoreError> {
    match context.load_state()? {
        Some(state) if !is_archived(context.project, &state) => archive(context.project, &state),
        _ => Ok(()),
    }
}

/// The session's hooks look at its record after every batch of tools, and at the state only when they act.
fn tell_session(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let Some(session_id) = &state.session_id else { return Ok(()) };
    sessions::update(context.project, session_id, state_file::TIMEOUT, |record| record.end.cancelled = true)
}

/// One that was killed takes a moment to let go of its lock.
const DYING: Duration = Duration::from_millis(500);

/// A `plimsoll run` that lives ends its client itself; where it has died, its client is ended here.
fn end_orphan(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    // Held to the end: no `plimsoll run` can adopt the client while it is being ended.
    let Ok(_only) = lock::acquire_run(context.project, DYING) else { return Ok(()) };
    if let Some(orphan) = orphan(state) {
        // A kill after this line leaves the client alive: the next `plimsoll stop` comes here again and ends it.
        let reason = "cancelled, and its `plimsoll run` had died".to_owned();
        context.note_of_run(state, JournalEvent::ClientEnded { reason })?;
        Client::Adopted(orphan).end(Duration::from_secs(5));
        end_left_behind(state);
    }
    count_session(context, state)
}

/// Counts what the last session of a dead `plimsoll run` used: nobody judges it any more, and other runs share the limit of the day. A
/// shell loop has no output file; its gate counts.
fn count_session(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let output = session_output(context.project, state, "jsonl");
    if state.iteration_record.phase != Phase::Spawned || !disk::exists(&output) {
        return Ok(());
    }
    let mut reader = StreamReader::new(output, "");
    reader.read_on();
    let session_id = state.session_id.clone().unwrap_or_default();
    let record = sessions::load(context.project, &session_id);
    let ended = SessionResult { ending: Ending::Cancelled, ..reader.ended(Exit::default()) };
    let ended = complete_cost(context.project, &session_id, &record, ended);
    record_end(context, &ended).map(|_| ())
}
