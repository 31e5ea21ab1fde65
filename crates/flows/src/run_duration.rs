//! How long a run has worked.

use plimsoll_domain::RunState;
use plimsoll_store::clock;

/// Returns the time from the start of a run until now, or until its end. Returns `None` if the run has paused, because it has
/// not worked all that time.
pub(crate) fn seconds_of_work_if_never_paused(state: &RunState) -> Option<u64> {
    if state.lifecycle.pause_count() > 0 {
        return None;
    }
    let started_at = clock::parse_timestamp(&state.project_at_start.started_at)?;
    let ended_at = state.lifecycle.ended_at().and_then(clock::parse_timestamp).unwrap_or_else(clock::now);
    u64::try_from((ended_at - started_at).num_seconds()).ok()
}
