//! What stayed with subagents: their reading fills their own windows, and only their last words come back.

use crate::log_line::{Header, MAIN, RecordKind, Tokens};
use crate::text::{counted, tokens};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// What stayed with the subagents of a session, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubagentUsage {
    /// Subagents that worked.
    pub agents: u32,
    /// What filled their windows while they worked, without what they began with and what they handed back.
    pub tokens: u64,
}

impl SubagentUsage {
    /// In words; none if nothing stayed with them.
    pub fn words(self) -> Option<String> {
        let agents = counted(self.agents as usize, "subagent");
        (self.tokens > 0).then(|| format!("about {} tokens stayed with {agents}", tokens(self.tokens)))
    }
}

impl AddAssign for SubagentUsage {
    fn add_assign(&mut self, more: SubagentUsage) {
        self.agents = self.agents.saturating_add(more.agents);
        self.tokens = self.tokens.saturating_add(more.tokens);
    }
}

/// Estimates it from a session's turns, in their order.
#[derive(Debug, Default)]
pub struct Tally {
    agents: BTreeMap<String, Agent>,
}

#[derive(Debug, Default)]
struct Agent {
    began_with: u64,
    fullest: u64,
    handed_back: u64,
}

impl Tally {
    /// Takes one record of the session's log.
    pub fn take(&mut self, header: &Header) {
        if header.kind == RecordKind::Turn
            && header.stream != MAIN
            && let Some(usage) = header.usage
            && usage.sent() > 0
        {
            self.agents.entry(header.stream.clone()).or_default().answer(usage);
        }
    }

    /// What it comes to.
    pub fn total(&self) -> SubagentUsage {
        let tokens = self.agents.values().map(Agent::kept).fold(0, u64::saturating_add);
        SubagentUsage { agents: u32::try_from(self.agents.len()).unwrap_or(u32::MAX), tokens }
    }
}

impl Agent {
    fn answer(&mut self, usage: Tokens) {
        if self.fullest == 0 {
            self.began_with = usage.sent();
        }
        self.fullest = self.fullest.max(usage.sent().saturating_add(usage.output));
        self.handed_back = usage.output;
    }

    fn kept(&self) -> u64 {
        self.fullest.saturating_sub(self.began_with).saturating_sub(self.handed_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(stream: &str, sent: u64, output: u64) -> Header {
        Header {
            v: 1,
            seq: 1,
            at: crate::Timestamp::UNKNOWN,
            kind: RecordKind::Turn,
            stream: stream.to_owned(),
            number: None,
            message: None,
            success: None,
            reason: None,
            usage: Some(Tokens { cache_read: sent, output, ..Tokens::default() }),
            read: None,
            pending: None,
            content: String::new(),
        }
    }

    #[test]
    fn what_stayed_is_what_filled_their_windows_without_their_beginning_and_their_last_words() {
        for (turns, expected) in [
            (vec![], (0, 0)),
            (vec![turn(MAIN, 20_000, 100), turn(MAIN, 90_000, 100)], (0, 0)),
            // It began with 10,000; 30,000 more came in; it said 500 at the end.
            (vec![turn("a", 10_000, 100), turn("a", 40_000, 500)], (1, 30_000)),
            // One that answers at once has read nothing.
            (vec![turn("a", 10_000, 900)], (1, 0)),
            // A compaction of its own does not make it smaller, nor does a response without an account.
            (vec![turn("a", 10_000, 0), turn("a", 90_000, 0), turn("a", 20_000, 0)], (1, 80_000)),
            (vec![turn("a", 0, 0), turn("a", 10_000, 0), turn("a", 15_000, 0), turn("a", 0, 0)], (1, 5_000)),
            (
                vec![turn("a", 10_000, 0), turn("b", 10_000, 0), turn("a", 12_000, 0), turn("b", 13_000, 0)],
                (2, 5_000),
            ),
        ] {
            let mut tally = Tally::default();
            turns.iter().for_each(|turn| tally.take(turn));
            let SubagentUsage { agents, tokens } = tally.total();
            assert_eq!((agents, tokens), expected, "{turns:?}");
        }
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(SubagentUsage::default().words(), None);
        assert_eq!(SubagentUsage { agents: 2, tokens: 0 }.words(), None);
        let words = SubagentUsage { agents: 1, tokens: 34_000 }.words();
        assert_eq!(words.as_deref(), Some("about 34k tokens stayed with 1 subagent"));
    }
}
