//! From the journal to the run's sessions: when each began and ended, what it was about, what it came to.

use super::contents::RunSession;
use super::entry::RunLine;
use plimsoll_domain::journal::{CheckpointWritten, JournalEvent, VerdictReached};
use plimsoll_domain::{Ending, SessionId};
use plimsoll_protocol::event::Source;

/// The sessions in their order. One that was planned and never started is none.
pub(super) fn sessions(entries: &[RunLine<'_>]) -> Vec<RunSession> {
    let mut night = SessionList::default();
    entries.iter().for_each(|entry| night.take(entry));
    night.sessions.retain(|session| session.began.is_some());
    night.sessions
}

#[derive(Default)]
struct SessionList {
    sessions: Vec<RunSession>,
    /// What the run had used by the verdict before.
    usd: f64,
    tokens: u64,
}

impl SessionList {
    fn take(&mut self, entry: &RunLine<'_>) {
        match entry.event() {
            JournalEvent::Planned(planned) => self.sessions.push(RunSession {
                iteration: entry.iteration().unwrap_or(0),
                resuming: planned.resuming,
                item: planned.item.as_ref().map(|item| entry.words(item)),
                ..RunSession::default()
            }),
            // After a compaction it is no beginning.
            JournalEvent::SessionStart { source: Source::Compact } => {}
            // A shell loop writes no `spawned` line: SessionStart is the beginning there.
            JournalEvent::Spawned { .. } | JournalEvent::SessionStart { .. } => self.begin(entry),
            JournalEvent::Checkpoint(written) => self.checkpoint(entry, written),
            JournalEvent::SessionEnd(ended) => self.end(entry, ended.peak_percent),
            JournalEvent::IterationClosed(closed) => self.end(entry, Some(closed.peak_percent)),
            JournalEvent::Verdict(reached) => self.judge(entry, reached),
            _ => {}
        }
    }

    /// The last session, if the entry is about it.
    fn present(&mut self, entry: &RunLine<'_>) -> Option<&mut RunSession> {
        let iteration = entry.iteration()?;
        let last = self.sessions.last_mut()?;
        let same = entry.session_id().is_none_or(|id| last.session_id.as_deref().is_none_or(|own| own == id));
        (last.iteration == iteration && same).then_some(last)
    }

    fn begin(&mut self, entry: &RunLine<'_>) {
        let Some(session) = self.present(entry) else { return };
        session.began.get_or_insert(entry.at);
        if session.session_id.is_none() {
            session.session_id = entry.session_id().map(str::to_owned).map(SessionId::from);
        }
    }

    fn checkpoint(&mut self, entry: &RunLine<'_>, written: &CheckpointWritten) {
        let item = written.item.as_ref().map(|item| entry.words(item));
        if let Some(session) = self.present(entry).filter(|session| session.item.is_none()) {
            session.item = item;
        }
    }

    fn end(&mut self, entry: &RunLine<'_>, peak: Option<u64>) {
        let Some(session) = self.present(entry) else { return };
        session.ended.get_or_insert(entry.at);
        session.peak = session.peak.max(peak.filter(|peak| *peak > 0));
    }

    /// What it has used is what the run has used by now, less what it had before.
    fn judge(&mut self, entry: &RunLine<'_>, reached: &VerdictReached) {
        let (usd_before, tokens_before) = (self.usd, self.tokens);
        self.usd = reached.cost_usd.unwrap_or(usd_before);
        self.tokens = reached.tokens.unwrap_or(tokens_before);
        let Some(session) = self.present(entry).filter(|session| session.judged.is_none()) else { return };
        session.judged = Some(entry.at);
        session.usd = reached.cost_usd.map(|usd| (usd - usd_before).max(0.0));
        session.tokens = reached.tokens.map(|tokens| tokens.saturating_sub(tokens_before));
        let detail = reached.ending.as_ref().and_then(Ending::detail).filter(|detail| !detail.is_empty());
        session.detail = detail.map(|detail| entry.words(detail));
        session.ending.clone_from(&reached.ending);
        session.ticked = entry.list(reached.ticked.as_deref().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::journal::JournalEntry;
    use serde_json::{Value, json};

    fn line(event: &str, iteration: u32, session: &str, facts: &Value) -> JournalEntry {
        let mut line =
            json!({"at": "2026-01-06T22:00:00Z", "event": event, "run_id": "r1", "iteration": iteration});
        if !session.is_empty() {
            line["session_id"] = json!(session);
        }
        line.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn what_each_session_used_is_what_the_run_had_used_more() {
        let none = json!({});
        let used = |usd: f64, tokens: u64| json!({"marker": "RALPH_CONTINUE|next|", "cost_usd": usd, "tokens": tokens, "ticked": ["a"]});
        let journal = [
            line("planned", 1, "", &json!({"item": "a"})),
            line("spawned", 1, "s1", &none),
            line("verdict", 1, "s1", &used(1.0, 100)),
            // Planned, and killed before it began: none.
            line("planned", 2, "", &none),
            line("planned", 2, "", &none),
            line("spawned", 2, "s2", &none),
            // Killed: it has no end, and its number comes again.
            line("planned", 2, "", &json!({"item": "b"})),
            line("spawned", 2, "s3", &none),
            // Another session's words are not its own.
            line("session_end", 2, "s2", &json!({"peak_percent": 99})),
            line("session_end", 2, "s3", &json!({"peak_percent": 12})),
            line("verdict", 2, "s3", &used(1.5, 160)),
            // A deadline in a pause: no session's.
            line("verdict", 2, "", &json!({"marker": "RALPH_STOP|deadline|"})),
        ];
        let sessions = sessions(&RunLine::of_run(&journal, &"r1".into()));
        let told: Vec<_> = sessions
            .iter()
            .map(|session| {
                (
                    session.session_id.as_deref().unwrap(),
                    session.tokens,
                    session.peak,
                    session.ended.is_some(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [("s1", Some(100), None, false), ("s2", None, None, false), ("s3", Some(60), Some(12), true)]
        );
        assert!((sessions[2].usd.unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(sessions[2].item.as_ref().unwrap().text(), "b");
    }
}
