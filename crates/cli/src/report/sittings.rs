//! From the journal to the run's sessions: when each began and ended, what it was about, what it came to.

use super::entry::Entry;
use super::night::Sitting;

/// The sessions in their order. One that was planned and never started is none.
pub(super) fn sittings(entries: &[Entry<'_>]) -> Vec<Sitting> {
    let mut night = Night::default();
    entries.iter().for_each(|entry| night.take(entry));
    night.sittings.retain(|sitting| sitting.began.is_some());
    night.sittings
}

#[derive(Default)]
struct Night {
    sittings: Vec<Sitting>,
    /// What the run had used by the verdict before.
    usd: f64,
    tokens: u64,
}

impl Night {
    fn take(&mut self, entry: &Entry<'_>) {
        match entry.event() {
            "planned" => self.sittings.push(Sitting {
                iteration: entry.iteration().unwrap_or(0),
                resuming: entry.value["resuming"] == true,
                item: entry.words("item"),
                ..Sitting::default()
            }),
            "spawned" => self.begin(entry),
            // In a loop of one's own nobody tells of the start; after a compaction it is none.
            "session_start" if entry.raw("source") != Some("compact") => self.begin(entry),
            "checkpoint" => self.checkpoint(entry),
            "session_end" => self.end(entry),
            "iteration_closed" => self.end(entry),
            "verdict" => self.judge(entry),
            _ => {}
        }
    }

    /// The last session, if the entry is about it.
    fn present(&mut self, entry: &Entry<'_>) -> Option<&mut Sitting> {
        let iteration = entry.iteration()?;
        let last = self.sittings.last_mut()?;
        let same =
            entry.raw("session_id").is_none_or(|id| last.session_id.as_deref().is_none_or(|own| own == id));
        (last.iteration == iteration && same).then_some(last)
    }

    fn begin(&mut self, entry: &Entry<'_>) {
        let Some(sitting) = self.present(entry) else { return };
        sitting.began.get_or_insert(entry.at);
        if sitting.session_id.is_none() {
            sitting.session_id = entry.raw("session_id").map(str::to_owned);
        }
    }

    fn checkpoint(&mut self, entry: &Entry<'_>) {
        let item = entry.words("item");
        if let Some(sitting) = self.present(entry).filter(|sitting| sitting.item.is_none()) {
            sitting.item = item;
        }
    }

    fn end(&mut self, entry: &Entry<'_>) {
        let peak = entry.number("peak_percent").filter(|peak| *peak > 0);
        let Some(sitting) = self.present(entry) else { return };
        sitting.ended.get_or_insert(entry.at);
        sitting.peak = sitting.peak.max(peak);
    }

    /// What it has used is what the run has used by now, less what it had before.
    fn judge(&mut self, entry: &Entry<'_>) {
        let (usd, tokens) = (entry.value["cost_usd"].as_f64(), entry.number("tokens"));
        let (usd_before, tokens_before) = (self.usd, self.tokens);
        (self.usd, self.tokens) = (usd.unwrap_or(usd_before), tokens.unwrap_or(tokens_before));
        let ticked = entry.list("ticked");
        let ending = entry.ending();
        let detail = ending.and_then(|(_, detail)| detail).map(|detail| entry.line(detail));
        let Some(sitting) = self.present(entry).filter(|sitting| sitting.judged.is_none()) else { return };
        sitting.judged = Some(entry.at);
        sitting.usd = usd.map(|usd| (usd - usd_before).max(0.0));
        sitting.tokens = tokens.map(|tokens| tokens.saturating_sub(tokens_before));
        sitting.ending = ending.map(|(word, _)| word.to_owned());
        sitting.detail = detail;
        sitting.ticked = ticked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::words::Cleaner;
    use serde_json::{Value, json};

    fn line(event: &str, iteration: u64, session: &str, facts: &Value) -> Value {
        let mut line =
            json!({"at": "2026-01-06T22:00:00Z", "event": event, "run_id": "r1", "iteration": iteration});
        if !session.is_empty() {
            line["session_id"] = json!(session);
        }
        line.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        line
    }

    #[test]
    fn what_each_session_used_is_what_the_run_had_used_more() {
        let none = json!({});
        let used = |usd: f64, tokens: u64| json!({"cost_usd": usd, "tokens": tokens, "ticked": ["a"]});
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
        let cleaner = Cleaner;
        let sittings = sittings(&Entry::of_run(&journal, "r1", &cleaner));
        let told: Vec<_> = sittings
            .iter()
            .map(|sitting| {
                (
                    sitting.session_id.as_deref().unwrap(),
                    sitting.tokens,
                    sitting.peak,
                    sitting.ended.is_some(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [("s1", Some(100), None, false), ("s2", None, None, false), ("s3", Some(60), Some(12), true)]
        );
        assert!((sittings[2].usd.unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(sittings[2].item.as_ref().unwrap().text(), "b");
    }
}
