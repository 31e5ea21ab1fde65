//! Reads the run's sessions from the journal: their start, end, item, cost and verdict.

use super::contents::RunSession;
use super::entry::RunEntry;
use plimsoll_domain::journal::{CheckpointWritten, JournalEvent, VerdictReached};
use plimsoll_domain::{SessionEnding, SessionId};
use plimsoll_protocol::event::SessionSource;

/// Returns the sessions in order, without sessions that were planned but never started.
pub(super) fn started_sessions(entries: &[RunEntry<'_>]) -> Vec<RunSession> {
    let mut list = SessionList::default();
    entries.iter().for_each(|entry| list.apply_journal_entry(entry));
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
    fn apply_journal_entry(&mut self, entry: &RunEntry<'_>) {
        match entry.event() {
            JournalEvent::Planned(planned) => self.sessions.push(RunSession {
                iteration: entry.iteration().unwrap_or(0),
                resumes_checkpoint: planned.resumes_checkpoint,
                item: planned.item.as_ref().map(|item| entry.redact(item)),
                ..RunSession::default()
            }),
            // The start after a compaction is not the start of a session.
            JournalEvent::SessionStart { source: SessionSource::Compact } => {}
            // A shell loop records no `ClientStarted` event, so `SessionStart` marks the start.
            JournalEvent::ClientStarted { .. } | JournalEvent::SessionStart { .. } => {
                self.set_start_time_and_id_if_unset(entry);
            }
            JournalEvent::Checkpoint(checkpoint) => self.set_item_from_checkpoint_if_unset(entry, checkpoint),
            JournalEvent::SessionEnd(session_end) => {
                self.set_end_time_if_unset_and_raise_peak(entry, session_end.peak_percent);
            }
            JournalEvent::IterationClosed(iteration_end) => {
                self.set_end_time_if_unset_and_raise_peak(entry, Some(iteration_end.peak_percent));
            }
            JournalEvent::Verdict(verdict) => self.record_run_totals_and_first_verdict(entry, verdict),
            _ => {}
        }
    }

    /// Returns the last session if the entry belongs to it.
    fn last_session_if_entry_belongs(&mut self, entry: &RunEntry<'_>) -> Option<&mut RunSession> {
        let iteration = entry.iteration()?;
        let last_session = self.sessions.last_mut()?;
        let is_same_session = entry
            .session_id()
            .is_none_or(|id| last_session.session_id.as_deref().is_none_or(|session_id| session_id == id));
        (last_session.iteration == iteration && is_same_session).then_some(last_session)
    }

    fn set_start_time_and_id_if_unset(&mut self, entry: &RunEntry<'_>) {
        let Some(session) = self.last_session_if_entry_belongs(entry) else { return };
        session.started_at.get_or_insert(entry.recorded_at);
        if session.session_id.is_none() {
            session.session_id = entry.session_id().map(str::to_owned).map(SessionId::from);
        }
    }

    fn set_item_from_checkpoint_if_unset(&mut self, entry: &RunEntry<'_>, checkpoint: &CheckpointWritten) {
        let item = checkpoint.item.as_ref().map(|item| entry.redact(item));
        if let Some(session) =
            self.last_session_if_entry_belongs(entry).filter(|session| session.item.is_none())
        {
            session.item = item;
        }
    }

    fn set_end_time_if_unset_and_raise_peak(&mut self, entry: &RunEntry<'_>, new_peak_percent: Option<u64>) {
        let Some(session) = self.last_session_if_entry_belongs(entry) else { return };
        session.ended_at.get_or_insert(entry.recorded_at);
        session.peak_percent = session.peak_percent.max(new_peak_percent.filter(|peak| *peak > 0));
    }

    /// Records the session's first verdict. The session's usage is the run's total minus the total at the previous verdict.
    fn record_run_totals_and_first_verdict(&mut self, entry: &RunEntry<'_>, verdict: &VerdictReached) {
        let (previous_cost_usd, previous_tokens) = (self.run_cost_usd, self.run_tokens);
        self.run_cost_usd = verdict.cost_usd.unwrap_or(previous_cost_usd);
        self.run_tokens = verdict.tokens.unwrap_or(previous_tokens);
        let Some(session) =
            self.last_session_if_entry_belongs(entry).filter(|session| session.verdict_at.is_none())
        else {
            return;
        };
        session.verdict_at = Some(entry.recorded_at);
        session.cost_usd = verdict.cost_usd.map(|usd| (usd - previous_cost_usd).max(0.0));
        session.tokens = verdict.tokens.map(|tokens| tokens.saturating_sub(previous_tokens));
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
        let sessions = started_sessions(&RunEntry::for_run(&journal, &"r1".into()));
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
