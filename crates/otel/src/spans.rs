//! The spans of a run: the run, in it each iteration, each item of a parallel run, each pause and each merge; in an iteration its
//! checkpoints and the gate, and in the gate its verify commands and reviews. Pure: what `plimsoll run --json` prints goes in.
//!
//! A session's own spans, which the client exports, are below the iteration's: it has the id that the session's `TRACEPARENT`
//! names. A run that goes on in another process has a span for each of them, below the first.

mod open;

use open::Open;
use opentelemetry_proto::tonic::trace::v1::Span;
use plimsoll_domain::journal::{
    CheckpointWritten, ItemReturned, ItemsMerged, IterationClosed, IterationPlanned, JournalEvent, RunEnded,
    RunStartFacts, SessionEnded, StreamEntry, StreamEvent, TicksReverted, VerdictReached, VerifyCommandsRan,
    WorkerEnded, WorkerStarted,
};
use plimsoll_domain::review::ReviewOutcome;
use plimsoll_domain::{RunId, RunStatus, Timestamp};
use plimsoll_policy::telemetry::trace::{self, TraceContext};
use plimsoll_store::clock;
use std::collections::BTreeMap;

/// What is open of a run, and what has been ended since it was asked last.
#[derive(Debug)]
pub(crate) struct Spans {
    run_id: RunId,
    trace: TraceContext,
    run: Option<Open>,
    iteration: Option<Iteration>,
    pause: Option<Open>,
    /// Items at work, by their worker.
    items: BTreeMap<usize, Open>,
    /// Items whose runs have ended, and when: they wait to be merged.
    offered: BTreeMap<String, u64>,
    /// How many spans have an id of their own count.
    made: u64,
    ended: Vec<Span>,
}

#[derive(Debug)]
struct Iteration {
    open: Open,
    /// The gate's, from the session's end on.
    gate: Option<Open>,
}

/// Nanoseconds since 1970; 0 for a stamp that says nothing.
pub(crate) fn nanos(at: &Timestamp) -> u64 {
    let nanos = clock::parse_timestamp(at).and_then(|moment| moment.timestamp_nanos_opt());
    nanos.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(0)
}

impl Spans {
    pub(crate) fn of(run_id: &RunId, trace: TraceContext) -> Spans {
        Spans {
            run_id: run_id.clone(),
            trace,
            run: None,
            iteration: None,
            pause: None,
            items: BTreeMap::new(),
            offered: BTreeMap::new(),
            made: 0,
            ended: Vec::new(),
        }
    }

    /// Takes an event; answers with the spans that it ended.
    pub(crate) fn take(&mut self, entry: &StreamEntry) -> Vec<Span> {
        let at = nanos(&entry.recorded_at);
        match &entry.event {
            StreamEvent::Client { model, version } => self.client(model, version),
            StreamEvent::Pause { until, reason, .. } => self.begin_pause(until, reason, at),
            StreamEvent::PauseEnded => self.end_pause(at),
            StreamEvent::RunEnded(ended) => self.end_run(ended, at),
            // No part of the run's time; all but tools, which the client exports itself, is in the logs.
            StreamEvent::Tool { .. }
            | StreamEvent::Retry { .. }
            | StreamEvent::StopRequested
            | StreamEvent::ToolsDenied { .. }
            | StreamEvent::Compacted
            | StreamEvent::Reading(_) => {}
            StreamEvent::Journal(event) => self.take_from_journal(entry, event, at),
        }
        std::mem::take(&mut self.ended)
    }

    fn take_from_journal(&mut self, entry: &StreamEntry, event: &JournalEvent, at: u64) {
        match event {
            JournalEvent::RunStarted(begun) => self.begin_run(entry, begun, false, at),
            JournalEvent::RunResumed(begun) => self.begin_run(entry, begun, true, at),
            JournalEvent::Planned(planned) => self.begin_iteration(entry, planned, at),
            JournalEvent::Checkpoint(written) => self.checkpoint(written, at),
            JournalEvent::SessionEnd(ended) => self.end_session(entry, ended, at),
            JournalEvent::VerifyCommandsRan(verified) => self.verified(verified, at),
            JournalEvent::Reviewed(reviewed) => self.reviewed(reviewed, at),
            JournalEvent::TicksReverted(taken) => self.taken_back(taken),
            JournalEvent::IterationClosed(closed) => self.closed(closed),
            JournalEvent::Verdict(reached) => self.judged(reached, at),
            JournalEvent::WorkerBegan(began) => self.begin_item(began, at),
            JournalEvent::WorkerEnded(ended) => self.end_item(ended, at),
            JournalEvent::ItemsMerged(landed) => self.landed(landed, at),
            JournalEvent::ItemReturned(back) => self.sent_back(back, at),
            // No part of the run's time, or told by one of the above. The logs have every event, so a new one is not lost here.
            _ => {}
        }
    }

    /// The run's process is gone without having said how it ended.
    pub(crate) fn cut_off(&mut self, at: u64) -> Vec<Span> {
        if let Some(run) = &mut self.run {
            run.fail("the process of the run ended without a word");
        }
        self.end_all(at);
        std::mem::take(&mut self.ended)
    }

    fn begin_run(&mut self, entry: &StreamEntry, begun: &RunStartFacts, goes_on: bool, at: u64) {
        let first = trace::run_span_id(&self.run_id);
        let (id, above) = if goes_on {
            (trace::derive_span_id(&self.run_id, &format!("run {}", entry.recorded_at)), Some(first))
        } else {
            (first, None)
        };
        // What the user's own environment says is nearer to the truth than that there was an earlier process.
        let parent = self.trace.parent_span_id.clone().or(above).unwrap_or_default();
        let mut run = Open::new(id, parent, "plimsoll run", at);
        run.attributes
            .text("plimsoll.run_id", self.run_id.as_str())
            .maybe("plimsoll.run_name", begun.task_name.as_deref())
            .flag("plimsoll.resumed", goes_on);
        if let Some(most) = begun.max_iterations {
            run.attributes.count("plimsoll.max_iterations", most);
        }
        self.run = Some(run);
    }

    fn begin_iteration(&mut self, entry: &StreamEntry, planned: &IterationPlanned, at: u64) {
        self.end_pause(at);
        self.end_iteration(at);
        let id = match &entry.session_id {
            Some(session_id) => trace::session_span_id(&self.run_id, session_id),
            None => self.new_id("iteration", at),
        };
        let mut open = Open::new(id, self.run_span(), "iteration", at);
        about_session(&mut open, entry);
        open.attributes
            .maybe("plimsoll.item", planned.item.as_deref())
            .flag("plimsoll.resuming", planned.resumes_checkpoint);
        self.iteration = Some(Iteration { open, gate: None });
    }

    /// A session that an earlier process began: its own span has that one's id, and this is below it.
    fn adopt(&mut self, entry: &StreamEntry, at: u64) {
        if self.iteration.is_some() {
            return;
        }
        let from = self.run.as_ref().map_or(at, |run| run.from);
        let parent = match &entry.session_id {
            Some(session_id) => trace::session_span_id(&self.run_id, session_id),
            None => self.run_span(),
        };
        let mut open = Open::new(self.new_id("iteration", at), parent, "iteration", from);
        about_session(&mut open, entry);
        open.attributes.flag("plimsoll.adopted", true);
        self.iteration = Some(Iteration { open, gate: None });
    }

    fn client(&mut self, model: &str, version: &str) {
        if let Some(iteration) = &mut self.iteration {
            let attributes = &mut iteration.open.attributes;
            // Not by the name of the GenAI conventions: it is no request to a model, and would count as one.
            attributes.text("plimsoll.model", model).text("plimsoll.client_version", version);
        }
    }

    fn taken_back(&mut self, taken: &TicksReverted) {
        if let Some(gate) = self.iteration.as_mut().and_then(|iteration| iteration.gate.as_mut()) {
            gate.attributes.texts("plimsoll.ticks_taken_back", taken.items.iter().map(String::as_str));
        }
    }

    fn checkpoint(&mut self, written: &CheckpointWritten, at: u64) {
        // A short session's is told with the verdict; it was the session's all the same.
        let iteration = self.iteration.as_ref().map(|iteration| iteration.open.id.clone());
        let parent = iteration.unwrap_or_else(|| self.run_span());
        let mut open = Open::new(self.new_id("checkpoint", at), parent, "checkpoint", at);
        open.attributes
            .text("plimsoll.level", &format!("{}", written.level))
            .maybe("plimsoll.handoff", Some(&written.handoff_path));
        if let Some(percent) = written.percent {
            open.attributes.count("plimsoll.percent", percent);
        }
        self.end(open, at);
    }

    fn end_session(&mut self, entry: &StreamEntry, ended: &SessionEnded, at: u64) {
        self.adopt(entry, at);
        let id = self.new_id("gate", at);
        let Some(iteration) = &mut self.iteration else { return };
        let open = &mut iteration.open;
        if let Some(ending) = &ended.ending {
            open.attributes.text("plimsoll.ending", ending.as_str());
            if ending.is_broken_off() {
                open.fail(&format!("{}: {}", ending.as_str(), ending.detail_text().unwrap_or_default()));
            }
        }
        if let Some(cost) = ended.cost_usd {
            open.attributes.number("plimsoll.cost_usd", cost);
        }
        iteration.gate = Some(Open::new(id, open.id.clone(), "gate", at));
    }

    /// One after the other, in whole seconds as they were measured, to the moment at which they were told.
    fn verified(&mut self, verified: &VerifyCommandsRan, at: u64) {
        let gate = self.iteration.as_ref().and_then(|iteration| iteration.gate.as_ref());
        let parent = gate.map_or_else(|| self.run_span(), |gate| gate.id.clone());
        let beginning = gate.map_or(0, |gate| gate.from);
        let all: u64 = verified.results.iter().map(|one| one.seconds.unwrap_or(0)).sum();
        let mut from = at.saturating_sub(in_nanos(all)).max(beginning);
        for one in &verified.results {
            let to = from.saturating_add(in_nanos(one.seconds.unwrap_or(0))).min(at);
            let mut open = Open::new(self.new_id("verify", from), parent.clone(), "verify", from);
            open.attributes.text("plimsoll.command", &one.command).flag("plimsoll.passed", one.passed);
            if !one.passed {
                open.fail("the command failed");
            }
            self.end(open, to);
            from = to;
        }
    }

    fn reviewed(&mut self, reviewed: &ReviewOutcome, at: u64) {
        let parent = self.innermost();
        let from = at.saturating_sub(in_nanos(reviewed.seconds));
        let mut open = Open::new(self.new_id("review", at), parent, "review", from);
        open.attributes
            .texts("plimsoll.items", reviewed.items.iter().map(String::as_str))
            .count("plimsoll.findings", reviewed.findings.len())
            .number("plimsoll.cost_usd", reviewed.cost_usd)
            .count("plimsoll.tokens", reviewed.tokens);
        if let Some(trouble) = &reviewed.failure {
            open.fail(trouble);
        }
        self.end(open, at);
    }

    fn closed(&mut self, closed: &IterationClosed) {
        let Some(Iteration { open, .. }) = &mut self.iteration else { return };
        open.attributes.count("plimsoll.peak_percent", closed.peak_percent);
        if let Some(cost) = closed.cost_usd {
            open.attributes.number("plimsoll.cost_usd", cost);
        }
        if let Some(tokens) = closed.tokens {
            open.attributes.count("plimsoll.tokens", tokens);
        }
        if let Some(ticked) = closed.ticked_count {
            open.attributes.count("plimsoll.ticked", ticked);
        }
    }

    fn judged(&mut self, reached: &VerdictReached, at: u64) {
        let marker = reached.marker.to_string();
        match &mut self.iteration {
            Some(Iteration { gate: Some(gate), .. }) => {
                gate.attributes.text("plimsoll.marker", &marker);
            }
            // A run that is over before a session begins is judged, too.
            Some(Iteration { gate: None, .. }) | None => {
                let parent = self.innermost();
                let mut gate = Open::new(self.new_id("gate", at), parent, "gate", at);
                gate.attributes.text("plimsoll.marker", &marker);
                self.end(gate, at);
            }
        }
        self.end_iteration(at);
    }

    fn begin_pause(&mut self, until: &Timestamp, reason: &str, at: u64) {
        self.end_pause(at);
        let mut open = Open::new(self.new_id("pause", at), self.run_span(), "pause", at);
        open.attributes.text("plimsoll.reason", reason).text("plimsoll.until", until.as_str());
        self.pause = Some(open);
    }

    fn end_pause(&mut self, at: u64) {
        if let Some(pause) = self.pause.take() {
            self.end(pause, at);
        }
    }

    fn begin_item(&mut self, began: &WorkerStarted, at: u64) {
        // The pause of a parallel run is over for all when one begins.
        self.end_pause(at);
        let first = trace::item_span_id(&self.run_id, began.item_number, began.attempt_number);
        // As a run that goes on: the first has the item's id, and the others are below it.
        let (id, parent) = if began.is_continued_attempt {
            (self.new_id("item", at), first)
        } else {
            (first, self.run_span())
        };
        let mut open = Open::new(id, parent, "item", at);
        open.attributes
            .text("plimsoll.item", &began.item)
            .count("plimsoll.worker", began.worker_number)
            .count("plimsoll.attempt", began.attempt_number);
        if let Some(before) = self.items.insert(began.worker_number, open) {
            self.end(before, at);
        }
        self.offered.remove(&began.item);
    }

    fn end_item(&mut self, ended: &WorkerEnded, at: u64) {
        let Some(mut open) = self.items.remove(&ended.worker_number) else { return };
        open.attributes
            .text("plimsoll.how", &ended.outcome_text)
            .number("plimsoll.cost_usd", ended.cost_usd)
            .count("plimsoll.sessions", ended.session_count);
        self.end(open, at);
        self.offered.insert(ended.item.clone(), at);
    }

    /// From when the first of them was ready: waiting for another merge is part of it.
    fn landed(&mut self, landed: &ItemsMerged, at: u64) {
        let since = landed.items.iter().filter_map(|item| self.offered.remove(item)).min();
        let mut open = Open::new(self.new_id("merge", at), self.run_span(), "merge", since.unwrap_or(at));
        open.attributes
            .texts("plimsoll.items", landed.items.iter().map(String::as_str))
            .text("plimsoll.commit", &landed.branch_head);
        self.end(open, at);
    }

    fn sent_back(&mut self, back: &ItemReturned, at: u64) {
        let Some(since) = self.offered.remove(&back.item) else { return };
        let mut open = Open::new(self.new_id("merge", at), self.run_span(), "merge", since);
        open.attributes.texts("plimsoll.items", [back.item.as_str()]);
        open.fail(&back.reason);
        self.end(open, at);
    }

    fn end_run(&mut self, ended: &RunEnded, at: u64) {
        if let Some(run) = &mut self.run {
            let attributes = &mut run.attributes;
            attributes
                .count("plimsoll.exit_code", ended.exit_code)
                .maybe("plimsoll.status", ended.status.map(RunStatus::as_str))
                .maybe("plimsoll.marker", ended.marker.as_ref().map(ToString::to_string).as_deref());
            for (key, count) in
                [("plimsoll.items_open", ended.open_count), ("plimsoll.items_done", ended.done_count)]
            {
                if let Some(count) = count {
                    attributes.count(key, count);
                }
            }
            if let Some(cost) = ended.cost_usd {
                attributes.number("plimsoll.cost_usd", cost);
            }
            if let Some(tokens) = ended.tokens {
                attributes.count("plimsoll.tokens", tokens);
            }
            // What an alert should wake somebody for.
            if ended.is_failure() {
                let marker = ended.marker.as_ref().map(ToString::to_string);
                run.fail(&ended.error.clone().or(marker).unwrap_or_default());
            }
        }
        self.end_all(at);
    }

    fn end_all(&mut self, at: u64) {
        self.end_pause(at);
        self.end_iteration(at);
        for (_, item) in std::mem::take(&mut self.items) {
            self.end(item, at);
        }
        if let Some(run) = self.run.take() {
            self.end(run, at);
        }
    }

    fn end_iteration(&mut self, at: u64) {
        if let Some(Iteration { open, gate }) = self.iteration.take() {
            if let Some(gate) = gate {
                self.end(gate, at);
            }
            self.end(open, at);
        }
    }

    fn end(&mut self, open: Open, at: u64) {
        self.ended.push(open.end(&self.trace, at));
    }

    /// The span of this process; that of the run's first where nothing has begun.
    fn run_span(&self) -> String {
        self.run.as_ref().map_or_else(|| trace::run_span_id(&self.run_id), |run| run.id.clone())
    }

    /// The gate, else the iteration, else the run.
    fn innermost(&self) -> String {
        match &self.iteration {
            Some(Iteration { gate: Some(gate), .. }) => gate.id.clone(),
            Some(Iteration { gate: None, open }) => open.id.clone(),
            None => self.run_span(),
        }
    }

    fn new_id(&mut self, kind: &str, at: u64) -> String {
        self.made += 1;
        trace::derive_span_id(&self.run_id, &format!("{kind} {at} {}", self.made))
    }
}

fn about_session(open: &mut Open, entry: &StreamEntry) {
    open.attributes.maybe("session.id", entry.session_id.as_deref());
    if let Some(iteration) = entry.iteration {
        open.attributes.count("plimsoll.iteration", iteration);
    }
}

fn in_nanos(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000)
}

#[cfg(test)]
mod tests;
