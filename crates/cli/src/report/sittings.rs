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
