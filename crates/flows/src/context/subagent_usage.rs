//! What stayed with a session's subagents, from its turn log.

use crate::turns;
use plimsoll_domain::SessionId;
use plimsoll_domain::subagent_usage::{SubagentUsage, Tally};
use plimsoll_store::{Project, TurnLog};

/// Of one session; nothing if there is no log, or none that can be read: it is a figure, and no reason to fail.
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
