//! The spans of a run. The children of the run's span are its iterations, items of a parallel run, pauses and merges. The children
//! of an iteration are its checkpoints and the gate; the children of the gate are its verify commands and reviews. The module is
//! pure; its input is the events that `plimsoll run --json` prints.
//!
//! The client exports the session's own spans as children of the iteration's span, whose id is in the session's `TRACEPARENT`. A
//! resumed run has one more run span for each further process, as a child of the first.

mod open_span;

use open_span::OpenSpan;
use opentelemetry_proto::tonic::trace::v1::Span;
use plimsoll_domain::journal::{
    CheckpointWritten, ItemReturned, ItemsMerged, IterationClosed, IterationPlanned, JournalEvent, RunEnded,
    RunStartDetails, SessionEnded, StreamEntry, StreamEvent, TicksReverted, VerdictReached,
    VerifyCommandsRan, WorkerEnded, WorkerStarted,
};
use plimsoll_domain::review::ReviewOutcome;
use plimsoll_domain::{RunId, RunStatus, Timestamp};
use plimsoll_policy::telemetry::trace::{self, TraceContext};
use plimsoll_store::clock;
use std::collections::BTreeMap;

/// Builds spans from events. It contains the open spans of a run, and the ended ones that have not been returned yet.
#[derive(Debug)]
pub(crate) struct SpanBuilder {
    run_id: RunId,
    trace: TraceContext,
    run_span: Option<OpenSpan>,
    iteration: Option<OpenIteration>,
    pause_span: Option<OpenSpan>,
    /// Open spans of items by worker number.
    item_spans_by_worker: BTreeMap<usize, OpenSpan>,
    /// Items that wait for their merge, with the end of their item span in Unix nanoseconds.
    merge_ready_nanos_by_item: BTreeMap<String, u64>,
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
    pub(crate) fn new(run_id: &RunId, trace: TraceContext) -> SpanBuilder {
        SpanBuilder {
            run_id: run_id.clone(),
            trace,
            run_span: None,
            iteration: None,
            pause_span: None,
            item_spans_by_worker: BTreeMap::new(),
            merge_ready_nanos_by_item: BTreeMap::new(),
            derived_id_count: 0,
            ended_spans: Vec::new(),
        }
    }

    /// Begins, changes or ends spans according to an event. Returns the spans that ended.
    pub(crate) fn handle_entry_and_take_ended_spans(&mut self, entry: &StreamEntry) -> Vec<Span> {
        let event_nanos = unix_nanos(&entry.recorded_at);
        match &entry.event {
            StreamEvent::Client { model, version } => self.add_client_attributes_to_iteration(model, version),
            StreamEvent::Pause { until, reason, .. } => {
                self.end_previous_and_begin_pause_span(until, reason, event_nanos);
            }
            StreamEvent::PauseEnded => self.end_pause_span(event_nanos),
            StreamEvent::RunEnded(run_end) => self.record_run_end_and_end_all_spans(run_end, event_nanos),
            // These events have no span. They are logged, except tool calls, which the client exports itself.
            StreamEvent::Tool { .. }
            | StreamEvent::Retry { .. }
            | StreamEvent::StopRequested
            | StreamEvent::ToolsDenied { .. }
            | StreamEvent::Compacted
            | StreamEvent::Reading(_) => {}
            StreamEvent::Journal(event) => self.handle_journal_event(entry, event, event_nanos),
        }
        std::mem::take(&mut self.ended_spans)
    }

    fn handle_journal_event(&mut self, entry: &StreamEntry, event: &JournalEvent, event_nanos: u64) {
        match event {
            JournalEvent::RunStarted(run_start) => self.begin_run_span(entry, run_start, false, event_nanos),
            JournalEvent::RunResumed(run_start) => self.begin_run_span(entry, run_start, true, event_nanos),
            JournalEvent::Planned(planned_iteration) => {
                self.end_previous_and_begin_iteration_span(entry, planned_iteration, event_nanos);
            }
            JournalEvent::Checkpoint(checkpoint) => self.add_checkpoint_span(checkpoint, event_nanos),
            JournalEvent::SessionEnd(session_end) => {
                self.add_session_end_and_begin_gate_span(entry, session_end, event_nanos);
            }
            JournalEvent::VerifyCommandsRan(verify_commands) => {
                self.add_verify_spans(verify_commands, event_nanos);
            }
            JournalEvent::Reviewed(review_outcome) => self.add_review_span(review_outcome, event_nanos),
            JournalEvent::TicksReverted(reverted_ticks) => self.add_reverted_ticks_to_gate(reverted_ticks),
            JournalEvent::IterationClosed(closed_iteration) => self.add_iteration_totals(closed_iteration),
            JournalEvent::Verdict(verdict) => self.record_verdict_and_end_iteration(verdict, event_nanos),
            JournalEvent::WorkerBegan(worker_start) => {
                self.end_pause_and_begin_item_span(worker_start, event_nanos);
            }
            JournalEvent::WorkerEnded(worker_end) => {
                self.end_item_span_and_record_ready_time(worker_end, event_nanos);
            }
            JournalEvent::ItemsMerged(merged_items) => self.add_merge_span(merged_items, event_nanos),
            JournalEvent::ItemReturned(returned_item) => {
                self.add_failed_merge_span_if_ready(returned_item, event_nanos);
            }
            // The other events have no span or repeat one of the above. Every event is logged, so a new kind of event is not lost.
            _ => {}
        }
    }

    /// Ends all open spans and marks the run's span as failed. It has no effect if a `run_ended` event has ended them already.
    pub(crate) fn end_all_and_mark_run_failed(&mut self, end_nanos: u64) -> Vec<Span> {
        if let Some(run_span) = &mut self.run_span {
            run_span.mark_failed("the process of the run ended without a result");
        }
        self.end_all_open_spans_including_run(end_nanos);
        std::mem::take(&mut self.ended_spans)
    }

    fn begin_run_span(
        &mut self,
        entry: &StreamEntry,
        run_start: &RunStartDetails,
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
        let parent_id = self.trace.parent_span_id.clone().or(parent_run_span_id).unwrap_or_default();
        let mut run_span = OpenSpan::new(id, parent_id, "plimsoll run", start_nanos);
        run_span
            .attributes
            .add_text("plimsoll.run_id", self.run_id.as_str())
            .add_text_if_not_empty("plimsoll.run_name", run_start.task_name.as_deref())
            .add_flag("plimsoll.resumed", is_resumed);
        if let Some(max_iterations) = run_start.max_iterations {
            run_span.attributes.add_count("plimsoll.max_iterations", max_iterations);
        }
        self.run_span = Some(run_span);
    }

    fn end_previous_and_begin_iteration_span(
        &mut self,
        entry: &StreamEntry,
        planned_iteration: &IterationPlanned,
        start_nanos: u64,
    ) {
        self.end_pause_span(start_nanos);
        self.end_iteration_and_gate_spans(start_nanos);
        let id = match &entry.session_id {
            Some(session_id) => trace::session_span_id(&self.run_id, session_id),
            None => self.new_span_id("iteration", start_nanos),
        };
        let mut span = OpenSpan::new(id, self.run_span_id(), "iteration", start_nanos);
        add_session_attributes(&mut span, entry);
        span.attributes
            .add_text_if_not_empty("plimsoll.item", planned_iteration.item.as_deref())
            .add_flag("plimsoll.resuming", planned_iteration.resumes_checkpoint);
        self.iteration = Some(OpenIteration { span, gate_span: None });
    }

    /// Begins the span of a session that an earlier process started. That process used the session's span id, so this span
    /// gets a new id and becomes a child of it. Does nothing if an iteration is open.
    fn begin_adopted_iteration_if_none(&mut self, entry: &StreamEntry, event_nanos: u64) {
        if self.iteration.is_some() {
            return;
        }
        let start_nanos = self.run_span.as_ref().map_or(event_nanos, |run_span| run_span.start_nanos);
        let parent_id = match &entry.session_id {
            Some(session_id) => trace::session_span_id(&self.run_id, session_id),
            None => self.run_span_id(),
        };
        let mut span =
            OpenSpan::new(self.new_span_id("iteration", event_nanos), parent_id, "iteration", start_nanos);
        add_session_attributes(&mut span, entry);
        span.attributes.add_flag("plimsoll.adopted", true);
        self.iteration = Some(OpenIteration { span, gate_span: None });
    }

    fn add_client_attributes_to_iteration(&mut self, model: &str, version: &str) {
        if let Some(iteration) = &mut self.iteration {
            let attributes = &mut iteration.span.attributes;
            // The attribute name of the GenAI conventions is not used, because the span would be counted as a model request.
            attributes.add_text("plimsoll.model", model).add_text("plimsoll.client_version", version);
        }
    }

    fn add_reverted_ticks_to_gate(&mut self, reverted_ticks: &TicksReverted) {
        if let Some(gate) = self.iteration.as_mut().and_then(|iteration| iteration.gate_span.as_mut()) {
            gate.attributes.add_text_array_up_to_limit(
                "plimsoll.ticks_taken_back",
                reverted_ticks.items.iter().map(String::as_str),
            );
        }
    }

    fn add_checkpoint_span(&mut self, checkpoint: &CheckpointWritten, event_nanos: u64) {
        // The checkpoint of a short session is reported together with the verdict, but belongs to the iteration's span.
        let iteration_span_id = self.iteration.as_ref().map(|iteration| iteration.span.id.clone());
        let parent_id = iteration_span_id.unwrap_or_else(|| self.run_span_id());
        let mut span =
            OpenSpan::new(self.new_span_id("checkpoint", event_nanos), parent_id, "checkpoint", event_nanos);
        span.attributes
            .add_text("plimsoll.level", &format!("{}", checkpoint.level))
            .add_text_if_not_empty("plimsoll.handoff", Some(&checkpoint.handoff_path));
        if let Some(percent) = checkpoint.percent {
            span.attributes.add_count("plimsoll.percent", percent);
        }
        self.end_span(span, event_nanos);
    }

    fn add_session_end_and_begin_gate_span(
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
            if ending.is_aborted() {
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

    /// Adds one span per verify command. The event contains only each command's duration in whole seconds, so the spans are
    /// placed one after another, ending at `end_nanos`.
    fn add_verify_spans(&mut self, verify_commands: &VerifyCommandsRan, end_nanos: u64) {
        let gate = self.iteration.as_ref().and_then(|iteration| iteration.gate_span.as_ref());
        let parent_id = gate.map_or_else(|| self.run_span_id(), |gate| gate.id.clone());
        let gate_start_nanos = gate.map_or(0, |gate| gate.start_nanos);
        let total_seconds: u64 =
            verify_commands.results.iter().map(|result| result.seconds.unwrap_or(0)).sum();
        let mut start_nanos = end_nanos.saturating_sub(seconds_to_nanos(total_seconds)).max(gate_start_nanos);
        for result in &verify_commands.results {
            let result_end_nanos =
                start_nanos.saturating_add(seconds_to_nanos(result.seconds.unwrap_or(0))).min(end_nanos);
            let mut span = OpenSpan::new(
                self.new_span_id("verify", start_nanos),
                parent_id.clone(),
                "verify",
                start_nanos,
            );
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

    fn add_review_span(&mut self, review_outcome: &ReviewOutcome, end_nanos: u64) {
        let parent_id = self.innermost_span_id();
        let start_nanos = end_nanos.saturating_sub(seconds_to_nanos(review_outcome.seconds));
        let mut span = OpenSpan::new(self.new_span_id("review", end_nanos), parent_id, "review", start_nanos);
        span.attributes
            .add_text_array_up_to_limit("plimsoll.items", review_outcome.items.iter().map(String::as_str))
            .add_count("plimsoll.findings", review_outcome.findings.len())
            .add_number("plimsoll.cost_usd", review_outcome.cost_usd)
            .add_count("plimsoll.tokens", review_outcome.tokens);
        if let Some(error) = &review_outcome.failure {
            span.mark_failed(error);
        }
        self.end_span(span, end_nanos);
    }

    fn add_iteration_totals(&mut self, closed_iteration: &IterationClosed) {
        let Some(OpenIteration { span, .. }) = &mut self.iteration else { return };
        span.attributes.add_count("plimsoll.peak_percent", closed_iteration.peak_percent);
        if let Some(cost) = closed_iteration.cost_usd {
            span.attributes.add_number("plimsoll.cost_usd", cost);
        }
        if let Some(tokens) = closed_iteration.tokens {
            span.attributes.add_count("plimsoll.tokens", tokens);
        }
        if let Some(ticked_count) = closed_iteration.ticked_count {
            span.attributes.add_count("plimsoll.ticked", ticked_count);
        }
    }

    fn record_verdict_and_end_iteration(&mut self, verdict: &VerdictReached, event_nanos: u64) {
        let marker = verdict.marker.to_string();
        match &mut self.iteration {
            Some(OpenIteration { gate_span: Some(gate), .. }) => {
                gate.attributes.add_text("plimsoll.marker", &marker);
            }
            // A run that ends before its first session has a verdict but no open gate.
            Some(OpenIteration { gate_span: None, .. }) | None => {
                let parent_id = self.innermost_span_id();
                let mut gate_span =
                    OpenSpan::new(self.new_span_id("gate", event_nanos), parent_id, "gate", event_nanos);
                gate_span.attributes.add_text("plimsoll.marker", &marker);
                self.end_span(gate_span, event_nanos);
            }
        }
        self.end_iteration_and_gate_spans(event_nanos);
    }

    fn end_previous_and_begin_pause_span(
        &mut self,
        paused_until: &Timestamp,
        reason: &str,
        start_nanos: u64,
    ) {
        self.end_pause_span(start_nanos);
        let mut span =
            OpenSpan::new(self.new_span_id("pause", start_nanos), self.run_span_id(), "pause", start_nanos);
        span.attributes.add_text("plimsoll.reason", reason).add_text("plimsoll.until", paused_until.as_str());
        self.pause_span = Some(span);
    }

    fn end_pause_span(&mut self, end_nanos: u64) {
        if let Some(pause_span) = self.pause_span.take() {
            self.end_span(pause_span, end_nanos);
        }
    }

    fn end_pause_and_begin_item_span(&mut self, worker_start: &WorkerStarted, start_nanos: u64) {
        // In a parallel run, a pause ends when the first item starts.
        self.end_pause_span(start_nanos);
        let first_item_span_id =
            trace::item_span_id(&self.run_id, worker_start.item_number, worker_start.attempt_number);
        // As for a resumed run, the first span has the item's span id, and later spans are its children.
        let (id, parent_id) = if worker_start.is_continued_attempt {
            (self.new_span_id("item", start_nanos), first_item_span_id)
        } else {
            (first_item_span_id, self.run_span_id())
        };
        let mut span = OpenSpan::new(id, parent_id, "item", start_nanos);
        span.attributes
            .add_text("plimsoll.item", &worker_start.item)
            .add_count("plimsoll.worker", worker_start.worker_number)
            .add_count("plimsoll.attempt", worker_start.attempt_number);
        if let Some(previous_span) = self.item_spans_by_worker.insert(worker_start.worker_number, span) {
            self.end_span(previous_span, start_nanos);
        }
        self.merge_ready_nanos_by_item.remove(&worker_start.item);
    }

    fn end_item_span_and_record_ready_time(&mut self, worker_end: &WorkerEnded, end_nanos: u64) {
        let Some(mut span) = self.item_spans_by_worker.remove(&worker_end.worker_number) else { return };
        span.attributes
            .add_text("plimsoll.how", &worker_end.outcome_text)
            .add_number("plimsoll.cost_usd", worker_end.cost_usd)
            .add_count("plimsoll.sessions", worker_end.session_count);
        self.end_span(span, end_nanos);
        self.merge_ready_nanos_by_item.insert(worker_end.item.clone(), end_nanos);
    }

    /// Adds the span of a merge. It begins when the first of its items was ready, so it includes the wait for other merges.
    fn add_merge_span(&mut self, merged_items: &ItemsMerged, end_nanos: u64) {
        let ready_at_nanos =
            merged_items.items.iter().filter_map(|item| self.merge_ready_nanos_by_item.remove(item)).min();
        let mut span = OpenSpan::new(
            self.new_span_id("merge", end_nanos),
            self.run_span_id(),
            "merge",
            ready_at_nanos.unwrap_or(end_nanos),
        );
        span.attributes
            .add_text_array_up_to_limit("plimsoll.items", merged_items.items.iter().map(String::as_str))
            .add_text("plimsoll.commit", &merged_items.branch_head);
        self.end_span(span, end_nanos);
    }

    fn add_failed_merge_span_if_ready(&mut self, returned_item: &ItemReturned, end_nanos: u64) {
        let Some(ready_at_nanos) = self.merge_ready_nanos_by_item.remove(&returned_item.item) else { return };
        let mut span =
            OpenSpan::new(self.new_span_id("merge", end_nanos), self.run_span_id(), "merge", ready_at_nanos);
        span.attributes.add_text_array_up_to_limit("plimsoll.items", [returned_item.item.as_str()]);
        span.mark_failed(&returned_item.reason);
        self.end_span(span, end_nanos);
    }

    fn record_run_end_and_end_all_spans(&mut self, run_end: &RunEnded, end_nanos: u64) {
        if let Some(run_span) = &mut self.run_span {
            let attributes = &mut run_span.attributes;
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
            // The span is marked as failed only if the run failed, because alerts are based on failed spans.
            if run_end.is_failure() {
                let marker = run_end.marker.as_ref().map(ToString::to_string);
                run_span.mark_failed(&run_end.error.clone().or(marker).unwrap_or_default());
            }
        }
        self.end_all_open_spans_including_run(end_nanos);
    }

    fn end_all_open_spans_including_run(&mut self, end_nanos: u64) {
        self.end_pause_span(end_nanos);
        self.end_iteration_and_gate_spans(end_nanos);
        for (_, item_span) in std::mem::take(&mut self.item_spans_by_worker) {
            self.end_span(item_span, end_nanos);
        }
        if let Some(run_span) = self.run_span.take() {
            self.end_span(run_span, end_nanos);
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
        self.run_span
            .as_ref()
            .map_or_else(|| trace::run_span_id(&self.run_id), |run_span| run_span.id.clone())
    }

    /// Returns the id of the open gate, else of the iteration, else of the run.
    fn innermost_span_id(&self) -> String {
        match &self.iteration {
            Some(OpenIteration { gate_span: Some(gate), .. }) => gate.id.clone(),
            Some(OpenIteration { gate_span: None, span }) => span.id.clone(),
            None => self.run_span_id(),
        }
    }

    fn new_span_id(&mut self, span_name: &str, time_nanos: u64) -> String {
        self.derived_id_count += 1;
        trace::derive_span_id(&self.run_id, &format!("{span_name} {time_nanos} {}", self.derived_id_count))
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
