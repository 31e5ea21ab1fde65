//! The sessions of the run, from the journal: start and end, item, cost and verdict of each.

use super::contents::RunSession;
use super::entry::RunEntry;
use plimsoll_domain::journal::{CheckpointWritten, JournalEvent, VerdictReached};
use plimsoll_domain::{SessionEnding, SessionId};
use plimsoll_protocol::event::SessionSource;

/// Returns the sessions in order, without those that were planned but never started.
pub(super) fn run_sessions(entries: &[RunEntry<'_>]) -> Vec<RunSession> {
    let mut list = SessionList::default();
    entries.iter().for_each(|entry| list.add_entry(entry));
    list.sessions.retain(|session| session.started_at.is_some());
    list.sessions
}

#[derive(Default)]
struct SessionList {
    sessions: Vec<RunSession>,
    /// The run's totals up to the previous verdict.
    run_cost_usd: f64,
    run_tokens: u64,
}

impl SessionList {
    fn add_entry(&mut self, entry: &RunEntry<'_>) {
        match entry.event() {
            JournalEvent::Planned(planned) => self.sessions.push(RunSession {
                iteration: entry.iteration().unwrap_or(0),
                is_resuming: planned.resumes_checkpoint,
                item: planned.item.as_ref().map(|item| entry.redact(item)),
                ..RunSession::default()
            }),
            // The start after a compaction is not the start of a session.
            JournalEvent::SessionStart { source: SessionSource::Compact } => {}
            // A shell loop writes no `spawned` entry, so there SessionStart is the start.
            JournalEvent::ClientStarted { .. } | JournalEvent::SessionStart { .. } => {
                self.record_start(entry);
            }
            JournalEvent::Checkpoint(checkpoint) => self.record_item_of_checkpoint(entry, checkpoint),
            JournalEvent::SessionEnd(session_end) => self.record_end(entry, session_end.peak_percent),
            JournalEvent::IterationClosed(iteration_end) => {
                self.record_end(entry, Some(iteration_end.peak_percent));
            }
            JournalEvent::Verdict(verdict) => self.record_verdict(entry, verdict),
            _ => {}
        }
    }

    /// Returns the last session if the entry belongs to it.
    fn session_of_entry(&mut self, entry: &RunEntry<'_>) -> Option<&mut RunSession> {
        let iteration = entry.iteration()?;
        let last = self.sessions.last_mut()?;
        let is_same_session = entry
            .session_id()
            .is_none_or(|id| last.session_id.as_deref().is_none_or(|session_id| session_id == id));
        (last.iteration == iteration && is_same_session).then_some(last)
    }

    fn record_start(&mut self, entry: &RunEntry<'_>) {
        let Some(session) = self.session_of_entry(entry) else { return };
        session.started_at.get_or_insert(entry.at);
        if session.session_id.is_none() {
            session.session_id = entry.session_id().map(str::to_owned).map(SessionId::from);
        }
    }

    fn record_item_of_checkpoint(&mut self, entry: &RunEntry<'_>, checkpoint: &CheckpointWritten) {
        let item = checkpoint.item.as_ref().map(|item| entry.redact(item));
        if let Some(session) = self.session_of_entry(entry).filter(|session| session.item.is_none()) {
            session.item = item;
        }
    }

    fn record_end(&mut self, entry: &RunEntry<'_>, peak: Option<u64>) {
        let Some(session) = self.session_of_entry(entry) else { return };
        session.ended_at.get_or_insert(entry.at);
        session.peak_percent = session.peak_percent.max(peak.filter(|peak| *peak > 0));
    }

    /// Records the verdict on a session. The session's usage is the run's total minus its total at the previous verdict.
    fn record_verdict(&mut self, entry: &RunEntry<'_>, verdict: &VerdictReached) {
        let (usd_before, tokens_before) = (self.run_cost_usd, self.run_tokens);
        self.run_cost_usd = verdict.cost_usd.unwrap_or(usd_before);
        self.run_tokens = verdict.tokens.unwrap_or(tokens_before);
        let Some(session) = self.session_of_entry(entry).filter(|session| session.judged_at.is_none()) else {
            return;
        };
        session.judged_at = Some(entry.at);
        session.cost_usd = verdict.cost_usd.map(|usd| (usd - usd_before).max(0.0));
        session.tokens = verdict.tokens.map(|tokens| tokens.saturating_sub(tokens_before));
        let detail =
            verdict.ending.as_ref().and_then(SessionEnding::detail_text).filter(|detail| !detail.is_empty());
        session.ending_detail = detail.map(|detail| entry.redact(detail));
        session.ending.clone_from(&verdict.ending);
        session.ticked_items = entry.redact_all(verdict.ticked_items.as_deref().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::journal::JournalEntry;
    use serde_json::{Value, json};

    fn journal_entry(event: &str, iteration: u32, session: &str, fields: &Value) -> JournalEntry {
        let mut line =
            json!({"at": "2026-01-06T22:00:00Z", "event": event, "run_id": "r1", "iteration": iteration});
        if !session.is_empty() {
            line["session_id"] = json!(session);
        }
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn the_usage_of_a_session_is_the_increase_of_the_run_totals() {
        let no_fields = json!({});
        let verdict_fields = |usd: f64, tokens: u64| json!({"marker": "RALPH_CONTINUE|next|", "cost_usd": usd, "tokens": tokens, "ticked": ["a"]});
        let journal = [
            journal_entry("planned", 1, "", &json!({"item": "a"})),
            journal_entry("spawned", 1, "s1", &no_fields),
            journal_entry("verdict", 1, "s1", &verdict_fields(1.0, 100)),
            // Planned, and killed before it began: not a session.
            journal_entry("planned", 2, "", &no_fields),
            journal_entry("planned", 2, "", &no_fields),
            journal_entry("spawned", 2, "s2", &no_fields),
            // Killed: it has no end, and its number is used again.
            journal_entry("planned", 2, "", &json!({"item": "b"})),
            journal_entry("spawned", 2, "s3", &no_fields),
            // An entry of another session is ignored.
            journal_entry("session_end", 2, "s2", &json!({"peak_percent": 99})),
            journal_entry("session_end", 2, "s3", &json!({"peak_percent": 12})),
            journal_entry("verdict", 2, "s3", &verdict_fields(1.5, 160)),
            // A deadline during a pause belongs to no session.
            journal_entry("verdict", 2, "", &json!({"marker": "RALPH_STOP|deadline|"})),
        ];
        let sessions = run_sessions(&RunEntry::for_run(&journal, &"r1".into()));
        let results: Vec<_> = sessions
            .iter()
            .map(|session| {
                (
                    session.session_id.as_deref().unwrap(),
                    session.tokens,
                    session.peak_percent,
                    session.ended_at.is_some(),
                )
            })
            .collect();
        assert_eq!(
            results,
            [("s1", Some(100), None, false), ("s2", None, None, false), ("s3", Some(60), Some(12), true)]
        );
        assert!((sessions[2].cost_usd.unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(sessions[2].item.as_ref().unwrap().text(), "b");
    }
}
