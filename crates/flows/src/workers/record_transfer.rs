//! Copies the records of an item's sessions to the project before the worktree is removed. Git removes a
//! worktree with all ignored files in it.

use crate::turns::capture::CaptureLimits;
use crate::turns::catch_up;
use plimsoll_domain::RunId;
use plimsoll_store::{Project, StoreError, TurnLog, records, state_file};

/// Why the records of a worktree could not be transferred, so that it has to be kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordTransferError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the turn log of the session {0} in the project is damaged: see plimsoll turns verify")]
    IncompleteTurnLog(String),
}

/// Copies the records of a worktree into the project, and verifies the turn logs there.
pub(super) fn record_missing_turns_then_copy_and_verify(
    worktree_project: &Project,
    main_project: &Project,
) -> Result<(), RecordTransferError> {
    // Records the turns that a killed hook has not recorded. An error is ignored, because without the
    // transcript nothing more can be recorded.
    let _ = catch_up::record_missing_turns_of_all_sessions(
        worktree_project,
        CaptureLimits::FOR_USER_COMMAND_OR_RUN,
    );
    let run_id = state_file::load_state(worktree_project, None)?
        .map_or_else(|| RunId::from("unknown"), |state| state.run_id);
    records::copy_sessions_runs_handoffs_and_journal(worktree_project, main_project, &run_id)?;
    for session_id in records::sessions_with_record_or_turn_log(worktree_project) {
        let turn_logs = [worktree_project, main_project].map(|project| {
            TurnLog::for_session_where_started_or_current(project, &session_id).filter(TurnLog::exists)
        });
        match turn_logs {
            [None, _] => {}
            [Some(_), Some(turn_log)] if turn_log.verify()?.is_intact() => {}
            [Some(_), _] => return Err(RecordTransferError::IncompleteTurnLog(session_id.to_string())),
        }
    }
    Ok(())
}
