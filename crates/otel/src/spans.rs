//! The spans of a run. Below the run's span are its iterations, items of a parallel run, pauses and merges; below an iteration its
//! checkpoints and the gate; below the gate its verify commands and reviews. The module is pure; its input is the events that
//! `plimsoll run --json` prints.
//!
//! The client exports the session's own spans below the iteration's span, which has the id in the session's `TRACEPARENT`. A
//! resumed run has one more span for each further process, below the first.

mod open_span;

use open_span::OpenSpan;
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

/// Builds spans from events. It holds the open spans of a run and the ended ones that were not returned yet.
#[derive(Debug)]
pub(crate) struct SpanBuilder {
    run_id: RunId,
    trace: TraceContext,
    run: Option<OpenSpan>,
    iteration: Option<OpenIteration>,
    pause: Option<OpenSpan>,
    /// Open spans of items by worker number.
    items_by_worker: BTreeMap<usize, OpenSpan>,
    /// Items that wait for their merge, with the end of their runs in nanoseconds.
    merge_ready_at_by_item: BTreeMap<String, u64>,
    /// Number of derived span ids; part of the next one, so that ids are unique.
    derived_id_count: u64,
    ended_spans: Vec<Span>,
}

#[derive(Debug)]
struct OpenIteration {
    span: OpenSpan,
    /// The gate's span, which begins at the session's end.
    gate_span: Option<OpenSpan>,
}

/// Converts a timestamp to Unix nanoseconds; returns 0 if it cannot be parsed.
pub(crate) fn unix_nanos(timestamp: &Timestamp) -> u64 {
    let nanos = clock::parse_timestamp(timestamp).and_then(|time| time.timestamp_nanos_opt());
    nanos.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(0)
}

impl SpanBuilder {
    pub(crate) fn for_run(run_id: &RunId, trace: TraceContext) -> SpanBuilder {
        SpanBuilder {
            run_id: run_id.clone(),
            trace,
            run: None,
            iteration: None,
            pause: None,
            items_by_worker: BTreeMap::new(),
            merge_ready_at_by_item: BTreeMap::new(),
            derived_id_count: 0,
            ended_spans: Vec::new(),
        }
    }

    /// Handles an event. Returns the spans that it ended.
    pub(crate) fn handle_entry(&mut self, entry: &StreamEntry) -> Vec<Span> {
        let at_nanos = unix_nanos(&entry.recorded_at);
        match &entry.event {
            StreamEvent::Client { model, version } => self.add_client_attributes(model, version),
            StreamEvent::Pause { until, reason, .. } => self.begin_pause_span(until, reason, at_nanos),
            StreamEvent::PauseEnded => self.end_pause_span(at_nanos),
            StreamEvent::RunEnded(run_end) => self.end_run_and_open_spans(run_end, at_nanos),
            // These events have no span. The logs contain them, except tool calls, which the client exports itself.
            StreamEvent::Tool { .. }
            | StreamEvent::Retry { .. }
            | StreamEvent::StopRequested
            | StreamEvent::ToolsDenied { .. }
            | StreamEvent::Compacted
            | StreamEvent::Reading(_) => {}
            StreamEvent::Journal(event) => self.handle_journal_event(entry, event, at_nanos),
        }
        std::mem::take(&mut self.ended_spans)
    }

    fn handle_journal_event(&mut self, entry: &StreamEntry, event: &JournalEvent, at_nanos: u64) {
        match event {
            JournalEvent::RunStarted(facts) => self.begin_run_span(entry, facts, false, at_nanos),
            JournalEvent::RunResumed(facts) => self.begin_run_span(entry, facts, true, at_nanos),
            JournalEvent::Planned(planned) => self.begin_iteration_span(entry, planned, at_nanos),
            JournalEvent::Checkpoint(checkpoint) => self.add_checkpoint_span(checkpoint, at_nanos),
            JournalEvent::SessionEnd(session_end) => {
                self.end_session_and_begin_gate_span(entry, session_end, at_nanos);
            }
            JournalEvent::VerifyCommandsRan(verified) => self.add_verify_spans(verified, at_nanos),
            JournalEvent::Reviewed(reviewed) => self.add_review_span(reviewed, at_nanos),
            JournalEvent::TicksReverted(reverted) => self.add_reverted_ticks_to_gate(reverted),
            JournalEvent::IterationClosed(closed) => self.add_iteration_totals(closed),
            JournalEvent::Verdict(verdict) => self.record_verdict_and_end_iteration(verdict, at_nanos),
            JournalEvent::WorkerBegan(started) => self.begin_item_span(started, at_nanos),
            JournalEvent::WorkerEnded(worker_end) => self.end_item_span(worker_end, at_nanos),
            JournalEvent::ItemsMerged(merged) => self.add_merge_span(merged, at_nanos),
            JournalEvent::ItemReturned(returned) => self.add_failed_merge_span(returned, at_nanos),
            // The other events have no span, or repeat one of the above. The logs have every event, so a new one is not lost.
            _ => {}
        }
    }

    /// Ends all open spans after the run's process disappeared without a `run_ended` event, and marks the run's span as
    /// failed.
    pub(crate) fn end_all_as_aborted(&mut self, end_nanos: u64) -> Vec<Span> {
        if let Some(run) = &mut self.run {
            run.mark_failed("the process of the run ended without a word");
        }
        self.end_open_spans(end_nanos);
        std::mem::take(&mut self.ended_spans)
    }

    fn begin_run_span(
        &mut self,
        entry: &StreamEntry,
        facts: &RunStartFacts,
        is_resumed: bool,
        start_nanos: u64,
    ) {
        let first_run_span_id = trace::run_span_id(&self.run_id);
        let (id, parent_run_span_id) = if is_resumed {
            (
                trace::derive_span_id(&self.run_id, &format!("run {}", entry.recorded_at)),
                Some(first_run_span_id),
            )
        } else {
            (first_run_span_id, None)
        };
        // The user's `TRACEPARENT` takes precedence over the span of the run's first process.
        let parent = self.trace.parent_span_id.clone().or(parent_run_span_id).unwrap_or_default();
        let mut run = OpenSpan::new(id, parent, "plimsoll run", start_nanos);
        run.attributes
            .add_text("plimsoll.run_id", self.run_id.as_str())
            .add_text_if_not_empty("plimsoll.run_name", facts.task_name.as_deref())
            .add_flag("plimsoll.resumed", is_resumed);
        if let Some(max_iterations) = facts.max_iterations {
            run.attributes.add_count("plimsoll.max_iterations", max_iterations);
        }
        self.run = Some(run);
    }

    fn begin_iteration_span(&mut self, entry: &StreamEntry, planned: &IterationPlanned, start_nanos: u64) {
        self.end_pause_span(start_nanos);
        self.end_iteration_and_gate_spans(start_nanos);
        let id = match &entry.session_id {
            Some(session_id) => trace::session_span_id(&self.run_id, session_id),
            None => self.new_span_id("iteration", start_nanos),
        };
        let mut span = OpenSpan::new(id, self.run_span_id(), "iteration", start_nanos);
        add_session_attributes(&mut span, entry);
        span.attributes
            .add_text_if_not_empty("plimsoll.item", planned.item.as_deref())
            .add_flag("plimsoll.resuming", planned.resumes_checkpoint);
        self.iteration = Some(OpenIteration { span, gate_span: None });
    }

    /// Begins the span of a session that an earlier process started. That process used the session's span id, so this span
    /// gets a new id below it. Does nothing if an iteration is open.
    fn begin_adopted_iteration_if_none(&mut self, entry: &StreamEntry, at_nanos: u64) {
        if self.iteration.is_some() {
            return;
        }
        let start_nanos = self.run.as_ref().map_or(at_nanos, |run| run.start_nanos);
        let parent = match &entry.session_id {
            Some(session_id) => trace::session_span_id(&self.run_id, session_id),
            None => self.run_span_id(),
        };
        let mut span =
            OpenSpan::new(self.new_span_id("iteration", at_nanos), parent, "iteration", start_nanos);
        add_session_attributes(&mut span, entry);
        span.attributes.add_flag("plimsoll.adopted", true);
        self.iteration = Some(OpenIteration { span, gate_span: None });
    }

    fn add_client_attributes(&mut self, model: &str, version: &str) {
        if let Some(iteration) = &mut self.iteration {
            let attributes = &mut iteration.span.attributes;
            // Not the attribute name of the GenAI conventions: the span would be counted as a model request.
            attributes.add_text("plimsoll.model", model).add_text("plimsoll.client_version", version);
        }
    }

    fn add_reverted_ticks_to_gate(&mut self, reverted: &TicksReverted) {
        if let Some(gate) = self.iteration.as_mut().and_then(|iteration| iteration.gate_span.as_mut()) {
            gate.attributes.add_texts("plimsoll.ticks_taken_back", reverted.items.iter().map(String::as_str));
        }
    }

    fn add_checkpoint_span(&mut self, checkpoint: &CheckpointWritten, at_nanos: u64) {
        // The checkpoint of a short session is reported with the verdict, but still belongs to the iteration's span.
        let iteration_span_id = self.iteration.as_ref().map(|iteration| iteration.span.id.clone());
        let parent = iteration_span_id.unwrap_or_else(|| self.run_span_id());
        let mut span =
            OpenSpan::new(self.new_span_id("checkpoint", at_nanos), parent, "checkpoint", at_nanos);
        span.attributes
            .add_text("plimsoll.level", &format!("{}", checkpoint.level))
            .add_text_if_not_empty("plimsoll.handoff", Some(&checkpoint.handoff_path));
        if let Some(percent) = checkpoint.percent {
            span.attributes.add_count("plimsoll.percent", percent);
        }
        self.end_span(span, at_nanos);
    }

    fn end_session_and_begin_gate_span(
        &mut self,
        entry: &StreamEntry,
        session_end: &SessionEnded,
        end_nanos: u64,
    ) {
        self.begin_adopted_iteration_if_none(entry, end_nanos);
        let gate_span_id = self.new_span_id("gate", end_nanos);
        let Some(iteration) = &mut self.iteration else { return };
        let span = &mut iteration.span;
        if let Some(ending) = &session_end.ending {
            span.attributes.add_text("plimsoll.ending", ending.as_str());
            if ending.is_broken_off() {
                span.mark_failed(&format!(
                    "{}: {}",
                    ending.as_str(),
                    ending.detail_text().unwrap_or_default()
                ));
            }
        }
        if let Some(cost) = session_end.cost_usd {
            span.attributes.add_number("plimsoll.cost_usd", cost);
        }
        iteration.gate_span = Some(OpenSpan::new(gate_span_id, span.id.clone(), "gate", end_nanos));
    }

    /// Adds one span per verify command. The events contain only whole seconds, so the spans are placed one after another
    /// such that the last one ends at `at`.
    fn add_verify_spans(&mut self, verified: &VerifyCommandsRan, end_nanos: u64) {
        let gate = self.iteration.as_ref().and_then(|iteration| iteration.gate_span.as_ref());
        let parent = gate.map_or_else(|| self.run_span_id(), |gate| gate.id.clone());
        let gate_start_nanos = gate.map_or(0, |gate| gate.start_nanos);
        let total_seconds: u64 = verified.results.iter().map(|result| result.seconds.unwrap_or(0)).sum();
        let mut start_nanos = end_nanos.saturating_sub(seconds_to_nanos(total_seconds)).max(gate_start_nanos);
        for result in &verified.results {
            let result_end_nanos =
                start_nanos.saturating_add(seconds_to_nanos(result.seconds.unwrap_or(0))).min(end_nanos);
            let mut span =
                OpenSpan::new(self.new_span_id("verify", start_nanos), parent.clone(), "verify", start_nanos);
            span.attributes
                .add_text("plimsoll.command", &result.command)
                .add_flag("plimsoll.passed", result.passed);
            if !result.passed {
                span.mark_failed("the command failed");
            }
            self.end_span(span, result_end_nanos);
            start_nanos = result_end_nanos;
        }
    }

    fn add_review_span(&mut self, outcome: &ReviewOutcome, end_nanos: u64) {
        let parent = self.innermost_span_id();
        let start_nanos = end_nanos.saturating_sub(seconds_to_nanos(outcome.seconds));
        let mut span = OpenSpan::new(self.new_span_id("review", end_nanos), parent, "review", start_nanos);
        span.attributes
            .add_texts("plimsoll.items", outcome.items.iter().map(String::as_str))
            .add_count("plimsoll.findings", outcome.findings.len())
            .add_number("plimsoll.cost_usd", outcome.cost_usd)
            .add_count("plimsoll.tokens", outcome.tokens);
        if let Some(error) = &outcome.failure {
            span.mark_failed(error);
        }
        self.end_span(span, end_nanos);
    }

    fn add_iteration_totals(&mut self, closed: &IterationClosed) {
        let Some(OpenIteration { span, .. }) = &mut self.iteration else { return };
        span.attributes.add_count("plimsoll.peak_percent", closed.peak_percent);
        if let Some(cost) = closed.cost_usd {
            span.attributes.add_number("plimsoll.cost_usd", cost);
        }
        if let Some(tokens) = closed.tokens {
            span.attributes.add_count("plimsoll.tokens", tokens);
        }
        if let Some(ticked) = closed.ticked_count {
            span.attributes.add_count("plimsoll.ticked", ticked);
        }
    }

    fn record_verdict_and_end_iteration(&mut self, verdict: &VerdictReached, at_nanos: u64) {
        let marker = verdict.marker.to_string();
        match &mut self.iteration {
            Some(OpenIteration { gate_span: Some(gate), .. }) => {
                gate.attributes.add_text("plimsoll.marker", &marker);
            }
            // A run that ends before its first session has a verdict but no open gate.
            Some(OpenIteration { gate_span: None, .. }) | None => {
                let parent = self.innermost_span_id();
                let mut gate_span =
                    OpenSpan::new(self.new_span_id("gate", at_nanos), parent, "gate", at_nanos);
                gate_span.attributes.add_text("plimsoll.marker", &marker);
                self.end_span(gate_span, at_nanos);
            }
        }
        self.end_iteration_and_gate_spans(at_nanos);
    }

    fn begin_pause_span(&mut self, until: &Timestamp, reason: &str, start_nanos: u64) {
        self.end_pause_span(start_nanos);
        let mut span =
            OpenSpan::new(self.new_span_id("pause", start_nanos), self.run_span_id(), "pause", start_nanos);
        span.attributes.add_text("plimsoll.reason", reason).add_text("plimsoll.until", until.as_str());
        self.pause = Some(span);
    }

    fn end_pause_span(&mut self, end_nanos: u64) {
        if let Some(pause) = self.pause.take() {
            self.end_span(pause, end_nanos);
        }
    }

    fn begin_item_span(&mut self, started: &WorkerStarted, start_nanos: u64) {
        // In a parallel run, the first item that starts ends the pause.
        self.end_pause_span(start_nanos);
        let first_item_span_id =
            trace::item_span_id(&self.run_id, started.item_number, started.attempt_number);
        // As for a resumed run, the first span has the item's id and later ones are below it.
        let (id, parent) = if started.is_continued_attempt {
            (self.new_span_id("item", start_nanos), first_item_span_id)
        } else {
            (first_item_span_id, self.run_span_id())
        };
        let mut span = OpenSpan::new(id, parent, "item", start_nanos);
        span.attributes
            .add_text("plimsoll.item", &started.item)
            .add_count("plimsoll.worker", started.worker_number)
            .add_count("plimsoll.attempt", started.attempt_number);
        if let Some(previous_span) = self.items_by_worker.insert(started.worker_number, span) {
            self.end_span(previous_span, start_nanos);
        }
        self.merge_ready_at_by_item.remove(&started.item);
    }

    fn end_item_span(&mut self, worker_end: &WorkerEnded, end_nanos: u64) {
        let Some(mut span) = self.items_by_worker.remove(&worker_end.worker_number) else { return };
        span.attributes
            .add_text("plimsoll.how", &worker_end.outcome_text)
            .add_number("plimsoll.cost_usd", worker_end.cost_usd)
            .add_count("plimsoll.sessions", worker_end.session_count);
        self.end_span(span, end_nanos);
        self.merge_ready_at_by_item.insert(worker_end.item.clone(), end_nanos);
    }

    /// Adds the span of a merge. It begins when the first item was ready, so it includes waiting for other merges.
    fn add_merge_span(&mut self, merged: &ItemsMerged, end_nanos: u64) {
        let ready_at_nanos =
            merged.items.iter().filter_map(|item| self.merge_ready_at_by_item.remove(item)).min();
        let mut span = OpenSpan::new(
            self.new_span_id("merge", end_nanos),
            self.run_span_id(),
            "merge",
            ready_at_nanos.unwrap_or(end_nanos),
        );
        span.attributes
            .add_texts("plimsoll.items", merged.items.iter().map(String::as_str))
            .add_text("plimsoll.commit", &merged.branch_head);
        self.end_span(span, end_nanos);
    }

    fn add_failed_merge_span(&mut self, returned: &ItemReturned, end_nanos: u64) {
        let Some(ready_at_nanos) = self.merge_ready_at_by_item.remove(&returned.item) else { return };
        let mut span =
            OpenSpan::new(self.new_span_id("merge", end_nanos), self.run_span_id(), "merge", ready_at_nanos);
        span.attributes.add_texts("plimsoll.items", [returned.item.as_str()]);
        span.mark_failed(&returned.reason);
        self.end_span(span, end_nanos);
    }

    fn end_run_and_open_spans(&mut self, run_end: &RunEnded, end_nanos: u64) {
        if let Some(run) = &mut self.run {
            let attributes = &mut run.attributes;
            attributes
                .add_count("plimsoll.exit_code", run_end.exit_code)
                .add_text_if_not_empty("plimsoll.status", run_end.status.map(RunStatus::as_str))
                .add_text_if_not_empty(
                    "plimsoll.marker",
                    run_end.marker.as_ref().map(ToString::to_string).as_deref(),
                );
            for (key, count) in
                [("plimsoll.items_open", run_end.open_count), ("plimsoll.items_done", run_end.done_count)]
            {
                if let Some(count) = count {
                    attributes.add_count(key, count);
                }
            }
            if let Some(cost) = run_end.cost_usd {
                attributes.add_number("plimsoll.cost_usd", cost);
            }
            if let Some(tokens) = run_end.tokens {
                attributes.add_count("plimsoll.tokens", tokens);
            }
            // Only a failure marks the span, because alerts are based on failed spans.
            if run_end.is_failure() {
                let marker = run_end.marker.as_ref().map(ToString::to_string);
                run.mark_failed(&run_end.error.clone().or(marker).unwrap_or_default());
            }
        }
        self.end_open_spans(end_nanos);
    }

    fn end_open_spans(&mut self, end_nanos: u64) {
        self.end_pause_span(end_nanos);
        self.end_iteration_and_gate_spans(end_nanos);
        for (_, item_span) in std::mem::take(&mut self.items_by_worker) {
            self.end_span(item_span, end_nanos);
        }
        if let Some(run) = self.run.take() {
            self.end_span(run, end_nanos);
        }
    }

    fn end_iteration_and_gate_spans(&mut self, end_nanos: u64) {
        if let Some(OpenIteration { span, gate_span }) = self.iteration.take() {
            if let Some(gate_span) = gate_span {
                self.end_span(gate_span, end_nanos);
            }
            self.end_span(span, end_nanos);
        }
    }

    fn end_span(&mut self, open_span: OpenSpan, end_nanos: u64) {
        self.ended_spans.push(open_span.into_span(&self.trace, end_nanos));
    }

    /// Returns the id of this process's run span, or that of the run's first process if none is open.
    fn run_span_id(&self) -> String {
        self.run.as_ref().map_or_else(|| trace::run_span_id(&self.run_id), |run| run.id.clone())
    }

    /// Returns the id of the open gate, else of the iteration, else of the run.
    fn innermost_span_id(&self) -> String {
        match &self.iteration {
            Some(OpenIteration { gate_span: Some(gate), .. }) => gate.id.clone(),
            Some(OpenIteration { gate_span: None, span }) => span.id.clone(),
            None => self.run_span_id(),
        }
    }

    fn new_span_id(&mut self, span_name: &str, at_nanos: u64) -> String {
        self.derived_id_count += 1;
        trace::derive_span_id(&self.run_id, &format!("{span_name} {at_nanos} {}", self.derived_id_count))
    }
}

fn add_session_attributes(span: &mut OpenSpan, entry: &StreamEntry) {
    span.attributes.add_text_if_not_empty("session.id", entry.session_id.as_deref());
    if let Some(iteration) = entry.iteration {
        span.attributes.add_count("plimsoll.iteration", iteration);
    }
}

fn seconds_to_nanos(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000)
}

#[cfg(test)]
mod tests;
