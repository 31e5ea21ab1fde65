//! Which turns are meant.

use crate::value_parsers;
use clap::Args;
use plimsoll_domain::Timestamp;
use plimsoll_domain::turn::Reason;
use plimsoll_flows::turns::Selection;

/// Which turns are meant.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Which {
    /// Only this session: the beginning of its id is enough
    #[arg(long, value_name = "SESSION")]
    pub(super) session: Option<String>,
    /// Also the turns of subagents
    #[arg(long)]
    pub(super) all_streams: bool,
    /// Only this subagent: its id, or the beginning of it
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only turns that failed
    #[arg(long)]
    failures: bool,
    /// Only turns that failed for this reason: tool_error, tool_denied, hook_blocked, unknown_tool, parse_error, interrupted, max_tokens, refusal, api_error, abandoned
    #[arg(long, value_parser = value_parsers::reason)]
    reason: Option<Reason>,
    /// Only turns that called this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only turns with this text in words, calls or results
    #[arg(long)]
    text: Option<String>,
    /// Only turns whose calls name this file: its path, or the end of it
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Only turns of this iteration of a run
    #[arg(long, value_name = "N", value_parser = value_parsers::whole_number::<u64>)]
    iteration: Option<u64>,
    /// Only turns since a time (07:00, 2026-01-07, RFC 3339) or a duration ago (12h)
    #[arg(long, value_name = "TIME", value_parser = value_parsers::past)]
    since: Option<Timestamp>,
    /// Only turns until this time
    #[arg(long, value_name = "TIME", value_parser = value_parsers::past)]
    until: Option<Timestamp>,
}

impl Which {
    /// What the options say.
    pub(super) fn selection(&self) -> Selection {
        let Which {
            session,
            all_streams,
            agent,
            failures,
            reason,
            tool,
            text,
            file,
            iteration,
            since,
            until,
        } = self.clone();
        Selection { session, all_streams, agent, failures, reason, tool, text, file, iteration, since, until }
    }
}
