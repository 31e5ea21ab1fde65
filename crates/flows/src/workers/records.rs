//! What is recorded of an item's sessions moves to the project before the worktree goes: git removes one with everything that
//! it ignores there.

use crate::turns::capture::CaptureLimits;
use crate::turns::catch_up;
use plimsoll_domain::RunId;
use plimsoll_store::{Project, StoreError, TurnLog, records, state_file};

/// Why a worktree has to stay.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepReason {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the turn log of the session {0} is not whole in the project: plimsoll turns verify says what is wrong"
    )]
    NotWhole(String),
}

/// Copies the records of a worktree into the project, and checks the turn logs there.
pub(super) fn move_to(from: &Project, main: &Project) -> Result<(), KeepReason> {
    // What a killed hook has left unread. The transcript may be gone; then nothing more can be had of it.
    let _ = catch_up::sync(from, CaptureLimits::USER);
    let run = state_file::load(from, None)?.map_or_else(|| RunId::from("unknown"), |state| state.run_id);
    records::copy_all(from, main, &run)?;
    for session in records::sessions(from) {
        let logs = [from, main].map(|project| TurnLog::of(project, &session).filter(TurnLog::exists));
        match logs {
            [None, _] => {}
            [Some(_), Some(log)] if log.verify()?.is_whole() => {}
            [Some(_), _] => return Err(KeepReason::NotWhole(session.to_string())),
        }
    }
    Ok(())
}
