//! What stayed with a session's subagents, from its turn log.

use crate::turns;
use plimsoll_domain::SessionId;
use plimsoll_domain::subagent_usage::{SubagentUsage, Tally};
use plimsoll_store::{Project, TurnLog};

/// The subagents' usage in one session; zero if there is no readable log, because a missing figure is no reason to fail.
pub(crate) fn in_session(project: &Project, session_id: &SessionId) -> SubagentUsage {
    let mut tally = Tally::default();
    let lines = TurnLog::of(project, session_id).and_then(|log| log.forwards().ok());
    for line in lines.into_iter().flatten().map_while(Result::ok) {
        if let Some(header) = turns::header(&line) {
            tally.take(&header);
        }
    }
    tally.total()
}
