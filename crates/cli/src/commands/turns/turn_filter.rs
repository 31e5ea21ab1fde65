//! The options that select turns.

use clap::Args;
use plimsoll_domain::Timestamp;
use plimsoll_flows::turns::TurnSelection;
use plimsoll_terminal::value_parsers;

/// Options that select turns.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct TurnFilter {
    /// Only this session: the beginning of its id is enough
    #[arg(long, value_name = "SESSION")]
    pub(super) session: Option<String>,
    /// Also the turns of subagents
    #[arg(long)]
    pub(super) all_streams: bool,
    /// Only turns that failed
    #[arg(long)]
    failures: bool,
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
    /// Only turns since a time (07:00, 2026-01-07) or for a duration (12h)
    #[arg(long, value_name = "TIME", value_parser = value_parsers::timestamp_moved_back_a_day_if_in_future)]
    since: Option<Timestamp>,
}

impl TurnFilter {
    /// Converts the options to a selection.
    pub(super) fn to_selection(&self) -> TurnSelection {
        let TurnFilter { session, all_streams, failures, tool, text, file, iteration, since } = self.clone();
        TurnSelection {
            session_id_prefix: session,
            include_subagents: all_streams,
            only_failures: failures,
            tool_name: tool,
            contained_text: text,
            file_path: file,
            iteration,
            earliest_time: since,
        }
    }
}
