//! The share of a session's usage that stayed with its subagents, from the session's turn log.

use crate::turns;
use plimsoll_domain::SessionId;
use plimsoll_domain::subagent_usage::{SubagentUsage, SubagentUsageEstimator};
use plimsoll_store::{Project, TurnLog};

/// Returns the usage of a session's subagents. Returns zero without a readable log, because missing usage is
/// no reason to fail.
pub(crate) fn read_subagent_usage_from_turn_log(project: &Project, session_id: &SessionId) -> SubagentUsage {
    let mut estimator = SubagentUsageEstimator::default();
    let lines = TurnLog::for_session_where_started_or_current(project, session_id)
        .and_then(|log| log.forward_lines().ok());
    for line in lines.into_iter().flatten().map_while(Result::ok) {
        if let Some(header) = turns::record_header(&line) {
            estimator.add_record_if_subagent_turn(&header);
        }
    }
    estimator.total_usage()
}
