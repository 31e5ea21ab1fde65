//! Cancels a run permanently.

use super::newest_run::run_id_from_state_or_copy;
use super::{end_surviving_processes, find_live_client_of_current_iteration};
use crate::context::session_usage::add_estimated_usage_if_cost_is_missing;
use crate::run::archive::{archive_run_and_clean_up_prompt_and_memory, is_end_archived};
use crate::run::ended_session::record_session_end_and_cost_once;
use crate::run::session_output_path;
use crate::run::stream_reader::StreamReader;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use plimsoll_domain::journal::{JournalEntry, JournalEvent};
use plimsoll_domain::state::IterationPhase;
use plimsoll_domain::status::RunStatus;
use plimsoll_domain::{ProcessExit, RunState, SessionEnding};
use plimsoll_launcher::client::LaunchedClient;
use plimsoll_store::{Project, StoreError, clock, config, disk, lock, sessions, state_file};
use std::time::Duration;

/// Cancels the newest run permanently. A running session is ended by its next hook; the client of a
/// `plimsoll run` that has died is ended here. Returns the resulting state, which is not canceled if the run
/// had already ended; `None` if there is no run.
pub fn cancel_newest_run_and_end_orphaned_client(project: &Project) -> Result<Option<RunState>, StoreError> {
    let Some(run_id) = run_id_from_state_or_copy(project)? else { return Ok(None) };
    let settings = config::load_for_run(project, &run_id);
    let context = RunContext { project, settings: &settings, run_id: &run_id };
    // The state is written first: any process that reads it ends the run, even if this process is killed
    // before the steps below.
    let canceled_state = context.update_state(|state| {
        state.lifecycle.cancel_if_open(Some(clock::to_timestamp(clock::now())));
        state.clone()
    })?;
    // Also for a run that was canceled before, because the process that did so may have died.
    if let Some(state) =
        canceled_state.as_ref().filter(|state| state.lifecycle.status() == RunStatus::Canceled)
    {
        mark_session_canceled(&context, state)?;
        context
            .append_entry_unless_near_journal_end(JournalEntry::for_run(state, JournalEvent::Cancelled))?;
        // Only after the journal line: ending a client may take seconds, and the run is already canceled.
        end_orphaned_client_and_record_end(&context, state)?;
        archive_canceled_run(&context)?;
    }
    Ok(canceled_state)
}

/// Archives a canceled run as it is, because it may never be judged. If its session ends later, it is
/// archived once more.
fn archive_canceled_run(context: &RunContext<'_>) -> Result<(), StoreError> {
    match context.load_newest_state()? {
        Some(state) if !is_end_archived(context.project, &state) => {
            archive_run_and_clean_up_prompt_and_memory(context.project, &state)
        }
        _ => Ok(()),
    }
}

/// Marks the session's record as canceled: the session's hooks read it after every batch of tools, and the
/// state only when they act.
fn mark_session_canceled(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let Some(session_id) = &state.session_id else { return Ok(()) };
    sessions::update_session_record(context.project, session_id, state_file::LOCK_TIMEOUT, |record| {
        record.end.is_canceled = true;
    })
}

/// How long to wait for the run lock: a killed process takes a moment to release it.
const LOCK_TIMEOUT_AFTER_KILL: Duration = Duration::from_millis(500);

/// Ends the client of a `plimsoll run` that has died; a living one ends its client itself.
fn end_orphaned_client_and_record_end(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    // Locked until this function returns, so that no `plimsoll run` adopts the client while it is being ended.
    let Ok(_run_lock) = lock::acquire_run_lock(context.project, LOCK_TIMEOUT_AFTER_KILL) else {
        return Ok(());
    };
    if let Some(orphan) = find_live_client_of_current_iteration(state) {
        // A kill after this line leaves the client alive, and the next `plimsoll stop` ends it.
        let reason = "canceled; its `plimsoll run` had crashed".to_owned();
        context.journal_run_event(state, JournalEvent::ClientEnded { reason })?;
        LaunchedClient::Adopted(orphan).terminate_with_descendants(Duration::from_secs(5));
        end_surviving_processes(state);
    }
    record_orphaned_session_end(context, state)
}

/// Records the end and the cost of the last session of a dead `plimsoll run`. The session is no longer judged,
/// but its cost counts toward the daily limit of all runs. Does nothing for a shell loop, which has no output
/// file and whose gate records its sessions.
fn record_orphaned_session_end(context: &RunContext<'_>, state: &RunState) -> Result<(), StoreError> {
    let output_path = session_output_path(context.project, state, "jsonl");
    if state.iteration_record.phase != IterationPhase::Spawned || !disk::exists(&output_path) {
        return Ok(());
    }
    let mut reader = StreamReader::new(output_path, "");
    reader.read_new_events();
    let session_id = state.session_id.clone().unwrap_or_default();
    let record = sessions::load_session_record(context.project, &session_id);
    let result =
        SessionResult { ending: SessionEnding::Canceled, ..reader.session_result(ProcessExit::default()) };
    let result = add_estimated_usage_if_cost_is_missing(context.project, &session_id, &record, result);
    record_session_end_and_cost_once(context, &result).map(|_| ())
}
