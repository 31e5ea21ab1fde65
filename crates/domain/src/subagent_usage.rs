//! Estimates the tokens that stayed in subagents' own context windows. Only the last message of a subagent comes back to the
//! session.

use crate::log_line::{MAIN_STREAM, RecordHeader, RecordKind, TokenUsage};
use crate::text::{count_with_noun, format_tokens};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The tokens that stayed in the context windows of the subagents of one or more sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubagentUsage {
    /// The number of subagents that made at least one response.
    #[serde(rename = "agents")]
    pub agent_count: u32,
    /// The tokens that filled their windows, without the tokens they began with and those of their last message.
    pub tokens: u64,
}

impl SubagentUsage {
    /// Renders the usage as a clause; `None` if it is zero.
    pub fn render_summary(self) -> Option<String> {
        let agents_text = count_with_noun(self.agent_count as usize, "subagent");
        (self.tokens > 0)
            .then(|| format!("about {} tokens stayed with {agents_text}", format_tokens(self.tokens)))
    }
}

impl AddAssign for SubagentUsage {
    fn add_assign(&mut self, other: SubagentUsage) {
        self.agent_count = self.agent_count.saturating_add(other.agent_count);
        self.tokens = self.tokens.saturating_add(other.tokens);
    }
}

/// Estimates a [`SubagentUsage`] from the turns of a session, in their order.
#[derive(Debug, Default)]
pub struct SubagentUsageEstimator {
    agents: BTreeMap<String, SubagentWindow>,
}

#[derive(Debug, Default)]
struct SubagentWindow {
    first_input_tokens: u64,
    peak_tokens: u64,
    last_output_tokens: u64,
}

impl SubagentUsageEstimator {
    /// Adds one record of the session's log. Only turns of subagents with a known usage count.
    pub fn add_record_if_subagent_turn(&mut self, header: &RecordHeader) {
        if header.kind == RecordKind::Turn
            && header.stream != MAIN_STREAM
            && let Some(usage) = header.usage
            && usage.total_input() > 0
        {
            self.agents.entry(header.stream.clone()).or_default().add_response(usage);
        }
    }

    /// Returns the sum over all subagents.
    pub fn total_usage(&self) -> SubagentUsage {
        let tokens =
            self.agents.values().map(SubagentWindow::tokens_kept_in_window).fold(0, u64::saturating_add);
        SubagentUsage { agent_count: u32::try_from(self.agents.len()).unwrap_or(u32::MAX), tokens }
    }
}

impl SubagentWindow {
    fn add_response(&mut self, usage: TokenUsage) {
        if self.peak_tokens == 0 {
            self.first_input_tokens = usage.total_input();
        }
        self.peak_tokens = self.peak_tokens.max(usage.total_input().saturating_add(usage.output));
        self.last_output_tokens = usage.output;
    }

    fn tokens_kept_in_window(&self) -> u64 {
        self.peak_tokens.saturating_sub(self.first_input_tokens).saturating_sub(self.last_output_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn_header(stream: &str, sent: u64, output: u64) -> RecordHeader {
        RecordHeader {
            format_version: 1,
            sequence_number: 1,
            recorded_at: crate::Timestamp::UNKNOWN,
            kind: RecordKind::Turn,
            stream: stream.to_owned(),
            turn_number: None,
            message_id: None,
            succeeded: None,
            failure_reason: None,
            usage: Some(TokenUsage { cache_read: sent, output, ..TokenUsage::default() }),
            transcript_offset: None,
            pending_file: None,
            content_hash: String::new(),
        }
    }

    #[test]
    fn first_input_and_last_output_of_a_subagent_do_not_count() {
        for (turns, expected) in [
            (vec![], (0, 0)),
            (vec![turn_header(MAIN_STREAM, 20_000, 100), turn_header(MAIN_STREAM, 90_000, 100)], (0, 0)),
            // It began with 10,000 tokens, 30,000 more came in, and its last message had 500.
            (vec![turn_header("a", 10_000, 100), turn_header("a", 40_000, 500)], (1, 30_000)),
            // A subagent that answers at once has read nothing.
            (vec![turn_header("a", 10_000, 900)], (1, 0)),
            // Neither its own compaction nor a response without a usage makes the sum smaller.
            (
                vec![turn_header("a", 10_000, 0), turn_header("a", 90_000, 0), turn_header("a", 20_000, 0)],
                (1, 80_000),
            ),
            (
                vec![
                    turn_header("a", 0, 0),
                    turn_header("a", 10_000, 0),
                    turn_header("a", 15_000, 0),
                    turn_header("a", 0, 0),
                ],
                (1, 5_000),
            ),
            (
                vec![
                    turn_header("a", 10_000, 0),
                    turn_header("b", 10_000, 0),
                    turn_header("a", 12_000, 0),
                    turn_header("b", 13_000, 0),
                ],
                (2, 5_000),
            ),
        ] {
            let mut estimator = SubagentUsageEstimator::default();
            turns.iter().for_each(|turn| estimator.add_record_if_subagent_turn(turn));
            let SubagentUsage { agent_count: agents, tokens } = estimator.total_usage();
            assert_eq!((agents, tokens), expected, "{turns:?}");
        }
    }

    #[test]
    fn the_summary_is_omitted_if_no_tokens_stayed_with_subagents() {
        assert_eq!(SubagentUsage::default().render_summary(), None);
        assert_eq!(SubagentUsage { agent_count: 2, tokens: 0 }.render_summary(), None);
        let summary = SubagentUsage { agent_count: 1, tokens: 34_000 }.render_summary();
        assert_eq!(summary.as_deref(), Some("about 34k tokens stayed with 1 subagent"));
    }
}
