//! `plimsoll run --json`: one JSON object per line for each event. Events that are also in the journal have the same names, so one
//! program can read both.

use crate::console;
use plimsoll_domain::journal::{
    CheckpointWritten, IterationClosed, IterationPlanned, JournalEvent, ReadingChanged, RunEnded,
    RunStartDetails, SessionEnded, StreamEntry, StreamEvent, TicksReverted, VerdictReached,
    VerifyCommandsRan,
};
use plimsoll_domain::reverted_ticks::RevertedTicks;
use plimsoll_domain::{Level, Marker, RunId, RunState, SessionId, SessionRecord, Verdict};
use plimsoll_flows::run::{InterruptCounter, RunEvent, RunObserver};
use plimsoll_flows::session_result::SessionResult;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::current_item::current_unparked_item;
use plimsoll_store::clock;

pub(super) struct JsonObserver {
    interrupts: InterruptCounter,
    entry_builder: StreamEntryBuilder,
}

impl JsonObserver {
    pub(super) fn new(interrupts: InterruptCounter) -> JsonObserver {
        JsonObserver { interrupts, entry_builder: StreamEntryBuilder::default() }
    }
}

impl RunObserver for JsonObserver {
    fn interrupts(&self) -> &InterruptCounter {
        &self.interrupts
    }

    fn on_event(&mut self, run_event: &RunEvent<'_>) {
        for entry in self.entry_builder.build_entries_with_run_and_session(run_event) {
            console::print_json(with_current_time(entry).to_line());
        }
    }
}

/// Renders the only line of output for a run that has already ended, so that no session starts.
pub fn render_run_ended_line(state: &RunState, marker: &Marker, exit_code: u8) -> String {
    let run_ended = RunEnded { marker: Some(marker.clone()), ..build_run_ended(Some(state), exit_code) };
    with_current_time(StreamEntry::for_run_session(state, StreamEvent::RunEnded(run_ended))).to_line()
}

pub(super) fn with_current_time(entry: StreamEntry) -> StreamEntry {
    StreamEntry { recorded_at: clock::to_millis_timestamp(clock::now()), ..entry }
}

/// Converts run events to stream entries. Remembers the reported readings and handoffs to skip repetitions.
#[derive(Debug, Default)]
pub(super) struct StreamEntryBuilder {
    /// The current run, iteration and session.
    run_id: RunId,
    iteration: u32,
    session_id: Option<SessionId>,
    /// The last reported reading.
    last_reading: Option<ReadingChanged>,
    /// The reported handoff of the current session.
    reported_handoff: Option<String>,
    is_paused: bool,
}

impl StreamEntryBuilder {
    pub(super) fn build_entries_with_run_and_session(
        &mut self,
        run_event: &RunEvent<'_>,
    ) -> Vec<StreamEntry> {
        let events = self.build_events_and_remember_reported(run_event);
        let run = Some((&self.run_id, self.iteration));
        let to_entry = |event| StreamEntry::new(event).with_run(run).with_session(self.session_id.as_ref());
        events.into_iter().map(to_entry).collect()
    }

    fn build_events_and_remember_reported(&mut self, run_event: &RunEvent<'_>) -> Vec<StreamEvent> {
        match run_event {
            RunEvent::RunStarted { state } => {
                self.set_current_session(state);
                vec![run_started_or_resumed_event(state)]
            }
            RunEvent::IterationStarted { state, .. } => self.pause_ended_and_iteration_planned_events(state),
            RunEvent::ClientStarted { model, version } => {
                vec![StreamEvent::Client { model: model.clone(), version: version.clone() }]
            }
            RunEvent::ToolUsed { name, detail } => {
                vec![StreamEvent::Tool { name: name.clone(), detail: detail.clone() }]
            }
            RunEvent::ApiRetry { status, first_failed_at: since } => {
                vec![StreamEvent::Retry { status: *status, since: since.clone() }]
            }
            RunEvent::StopRequested => vec![StreamEvent::StopRequested],
            RunEvent::ToolsDenied { state, tools } => vec![StreamEvent::ToolsDenied {
                tools: tools.to_vec(),
                command: crate::allowed_tools::render_resume_command_if_tools_can_be_allowed(
                    state, tools, "--resume",
                ),
            }],
            RunEvent::Compacted => vec![StreamEvent::Compacted],
            RunEvent::UsageUpdated { record, .. } => self.changed_reading_and_new_checkpoint_events(record),
            RunEvent::IterationEnded { result, .. } => vec![session_end_event(result)],
            RunEvent::VerdictReached { state, verdict } => {
                self.unreported_checkpoint_closing_verdict_events(state, verdict)
            }
            RunEvent::VerifyCommandsFinished { outcomes } => {
                let results = outcomes.iter().map(VerifyOutcome::to_verify_result).collect();
                vec![JournalEvent::VerifyCommandsRan(VerifyCommandsRan { results }).into()]
            }
            RunEvent::Reviewed { outcome: reviewed } => {
                vec![JournalEvent::Reviewed(Box::new((*reviewed).clone())).into()]
            }
            RunEvent::TicksReverted { reverted_ticks: reverted } => vec![ticks_reverted_event(reverted)],
            RunEvent::QuestionAsked { question } => {
                let (item, question) = (question.item.clone(), question.question.clone());
                vec![JournalEvent::Parked { item, question }.into()]
            }
            RunEvent::PauseStarted { pause_end, seconds, reason } => {
                self.is_paused = true;
                let (pause_end_timestamp, reason) = (clock::to_timestamp(*pause_end), (*reason).to_owned());
                vec![StreamEvent::Pause { until: pause_end_timestamp, seconds: *seconds, reason }]
            }
            RunEvent::WorkersEvent { event } => vec![(*event).clone().into()],
            RunEvent::ApiAnswered | RunEvent::PauseContinues { .. } | RunEvent::FiguresUpdated { .. } => {
                Vec::new()
            }
            RunEvent::TemporaryErrorRetry { error, retry_seconds: seconds } => {
                vec![fault_event(error, *seconds)]
            }
            RunEvent::Notice(text) => vec![JournalEvent::Note { text: text.clone() }.into()],
            RunEvent::ProgramEnded { state, exit_code } => {
                vec![StreamEvent::RunEnded(build_run_ended(*state, *exit_code))]
            }
            RunEvent::RunFailed { error } => {
                vec![StreamEvent::RunEnded(RunEnded {
                    error: Some(error.clone()),
                    ..build_run_ended(None, 1)
                })]
            }
        }
    }

    fn set_current_session(&mut self, state: &RunState) {
        self.run_id.clone_from(&state.run_id);
        self.iteration = state.iteration;
        self.session_id.clone_from(&state.session_id);
    }

    fn pause_ended_and_iteration_planned_events(&mut self, state: &RunState) -> Vec<StreamEvent> {
        self.set_current_session(state);
        (self.last_reading, self.reported_handoff) = (None, None);
        let planned_event = JournalEvent::Planned(IterationPlanned {
            resumes_checkpoint: state.iteration_record.resumes_checkpoint,
            item: current_unparked_item(state).cloned(),
            open_count: Some(state.plan_items.todo_items.len()),
            done_count: Some(state.plan_items.completed_items.len()),
        });
        let pause_ended = std::mem::take(&mut self.is_paused).then_some(StreamEvent::PauseEnded);
        pause_ended.into_iter().chain([planned_event.into()]).collect()
    }

    /// Returns events only for changes, because usage is updated several times a second.
    fn changed_reading_and_new_checkpoint_events(&mut self, record: &SessionRecord) -> Vec<StreamEvent> {
        let reading = ReadingChanged {
            percent: record.usage.projected_percent,
            client_percent: record.usage.percent_used_by_client,
            announced_level: record.highest_announcement.level,
        };
        let mut events = Vec::new();
        if record.usage.projected_percent.is_some() && self.last_reading != Some(reading) {
            events.push(StreamEvent::Reading(reading));
            self.last_reading = Some(reading);
        }
        if let Some(handoff_path) = record
            .checkpoint_progress
            .last_handoff
            .as_ref()
            .filter(|handoff_path| self.reported_handoff.as_ref() != Some(handoff_path))
        {
            events.push(checkpoint_event(
                record.highest_announcement.level,
                record.highest_announcement.projected_percent,
                handoff_path,
            ));
            self.reported_handoff = Some(handoff_path.clone());
        }
        events
    }

    /// Includes the checkpoint of a session that was too short to be seen by a usage update.
    fn unreported_checkpoint_closing_verdict_events(
        &mut self,
        state: &RunState,
        verdict: &Verdict,
    ) -> Vec<StreamEvent> {
        let last_checkpoint = &state.context_checkpoint;
        let is_of_current_iteration =
            last_checkpoint.iteration == self.iteration && !last_checkpoint.handoff_file.is_empty();
        let is_unreported =
            is_of_current_iteration && self.reported_handoff.as_ref() != Some(&last_checkpoint.handoff_file);
        let unreported_checkpoint_event = is_unreported.then(|| {
            self.reported_handoff = Some(last_checkpoint.handoff_file.clone());
            checkpoint_event(
                last_checkpoint.level,
                last_checkpoint.percent_at_checkpoint,
                &last_checkpoint.handoff_file,
            )
        });
        let history_entry = state.context_history.iter().find(|entry| entry.iteration == self.iteration);
        let iteration_closed_event = history_entry.map(|entry| {
            StreamEvent::from(JournalEvent::IterationClosed(IterationClosed {
                peak_percent: entry.peak_percent,
                has_notes: None,
                ending: Some(entry.ending.clone()),
                cost_usd: Some(entry.cost_usd),
                tokens: Some(state.iteration_record.tokens),
                seconds: Some(entry.duration_seconds),
                ticked_count: Some(entry.ticked_item_count),
            }))
        });
        let verdict_event = JournalEvent::Verdict(Box::new(VerdictReached {
            status: Some(state.lifecycle.status()),
            open_count: Some(state.plan_items.todo_items.len()),
            done_count: Some(state.plan_items.completed_items.len()),
            cost_usd: Some(state.spending.cost_usd),
            cost_basis: state.spending.cost_basis(),
            tokens: Some(state.spending.tokens),
            ..VerdictReached::from_verdict_without_evidence(verdict)
        }));
        unreported_checkpoint_event
            .into_iter()
            .chain(iteration_closed_event)
            .chain([verdict_event.into()])
            .collect()
    }
}

fn run_started_or_resumed_event(state: &RunState) -> StreamEvent {
    let start_details = RunStartDetails {
        task_name: Some(state.options.task_name.clone()),
        max_iterations: Some(state.options.max_iterations),
        open_items: Some(state.plan_items.todo_items.clone()),
        completed_items: Some(state.plan_items.completed_items.clone()),
        ..RunStartDetails::default()
    };
    let is_new = state.iteration == 0;
    if is_new {
        JournalEvent::RunStarted(start_details).into()
    } else {
        JournalEvent::RunResumed(start_details).into()
    }
}

fn checkpoint_event(level: Level, percent: Option<u64>, handoff_path: &str) -> StreamEvent {
    let handoff_path = handoff_path.to_owned();
    JournalEvent::Checkpoint(CheckpointWritten {
        level,
        percent,
        handoff_path,
        ..CheckpointWritten::default()
    })
    .into()
}

fn ticks_reverted_event(reverted: &RevertedTicks) -> StreamEvent {
    let ticks_reverted = TicksReverted {
        items: reverted.items.clone(),
        failed_commands: reverted
            .failed_commands
            .iter()
            .map(|failed_command| failed_command.command.clone())
            .collect(),
        review_findings: reverted.findings.clone(),
        protected_file_changes: reverted.protected_changes.clone(),
    };
    JournalEvent::TicksReverted(ticks_reverted).into()
}

fn fault_event(error: &str, seconds: u64) -> StreamEvent {
    let (error, action_taken) = (error.to_owned(), "tries again".to_owned());
    JournalEvent::Fault { error, action_taken, retry_in_seconds: Some(seconds) }.into()
}

fn session_end_event(result: &SessionResult) -> StreamEvent {
    let session_ended = SessionEnded {
        ending: Some(result.ending.clone()),
        cost_usd: result.cost.map(|cost| cost.usd),
        tokens: Some(result.tokens),
        ..SessionEnded::default()
    };
    JournalEvent::SessionEnd(session_ended).into()
}

fn build_run_ended(state: Option<&RunState>, exit_code: u8) -> RunEnded {
    let Some(state) = state else { return RunEnded { exit_code, ..RunEnded::default() } };
    let has_reviews = state.spending.review_count > 0;
    RunEnded {
        status: Some(state.lifecycle.status()),
        open_count: Some(state.plan_items.todo_items.len()),
        done_count: Some(state.plan_items.completed_items.len()),
        cost_usd: Some(state.spending.cost_usd),
        tokens: Some(state.spending.tokens),
        review_count: has_reviews.then_some(state.spending.review_count),
        review_cost_usd: has_reviews.then_some(state.spending.review_cost_usd),
        review_tokens: has_reviews.then_some(state.spending.review_tokens),
        marker: state.lifecycle.last_verdict().map(Verdict::to_marker),
        error: None,
        exit_code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::run_figures::RunFigures;
    use plimsoll_domain::state::HistoryEntry;
    use plimsoll_domain::{RunStatus, verdict::PauseKind};

    fn event_names(builder: &mut StreamEntryBuilder, progress: &RunEvent<'_>) -> Vec<String> {
        let entries = builder.build_entries_with_run_and_session(progress).into_iter().map(|entry| {
            assert_eq!((entry.run_id.as_deref(), entry.iteration), (Some("r1"), Some(2)), "{entry:?}");
            entry.event.name().to_owned()
        });
        entries.collect()
    }

    fn state_of_second_iteration() -> RunState {
        RunState {
            run_id: "r1".into(),
            iteration: 2,
            session_id: Some("s".into()),
            context_history: vec![HistoryEntry { iteration: 2, peak_percent: 87, ..HistoryEntry::default() }],
            ..RunState::default()
        }
    }

    #[test]
    fn a_reading_and_a_handoff_are_reported_once() {
        let (mut builder, state) = (StreamEntryBuilder::default(), state_of_second_iteration());
        assert_eq!(
            event_names(&mut builder, &RunEvent::IterationStarted { state: &state, model: None }),
            ["planned"]
        );
        let mut record = SessionRecord::default();
        let mut events_of_load = |record: &SessionRecord| {
            event_names(
                &mut builder,
                &RunEvent::UsageUpdated { state: &state, record, figures: &RunFigures::default() },
            )
        };
        assert!(events_of_load(&record).is_empty(), "nothing is known yet");
        record.usage.projected_percent = Some(40);
        assert_eq!(events_of_load(&record), ["reading"]);
        assert!(events_of_load(&record).is_empty());
        record.highest_announcement.level = Level::L2;
        record.checkpoint_progress.last_handoff = Some("a.md".into());
        assert_eq!(events_of_load(&record), ["reading", "checkpoint"]);
        assert!(events_of_load(&record).is_empty());
    }

    #[test]
    fn a_checkpoint_between_two_readings_is_reported_with_the_verdict() {
        let (mut builder, mut state) = (StreamEntryBuilder::default(), state_of_second_iteration());
        builder
            .build_entries_with_run_and_session(&RunEvent::IterationStarted { state: &state, model: None });
        state.context_checkpoint.iteration = 2;
        state.context_checkpoint.handoff_file = "a.md".into();
        let verdict = Verdict::Stop { status: RunStatus::Completed, reason: String::new() };
        let progress = RunEvent::VerdictReached { state: &state, verdict: &verdict };
        assert_eq!(event_names(&mut builder, &progress), ["checkpoint", "iteration_closed", "verdict"]);
        assert_eq!(event_names(&mut builder, &progress), ["iteration_closed", "verdict"]);
    }

    #[test]
    fn a_pause_ends_with_the_next_session_and_the_end_has_the_exit_code() {
        let (mut builder, mut state) = (StreamEntryBuilder::default(), state_of_second_iteration());
        assert_eq!(event_names(&mut builder, &RunEvent::RunStarted { state: &state }), ["resumed"]);
        let progress = RunEvent::PauseStarted { pause_end: clock::now(), seconds: 3, reason: "overloaded" };
        assert_eq!(event_names(&mut builder, &progress), ["pause"]);
        assert_eq!(
            event_names(&mut builder, &RunEvent::IterationStarted { state: &state, model: None }),
            ["pause_over", "planned"]
        );
        assert_eq!(
            event_names(&mut builder, &RunEvent::IterationStarted { state: &state, model: None }),
            ["planned"]
        );
        state.lifecycle.apply_verdict(&Verdict::Pause {
            kind: PauseKind::Limit,
            pause_end: None,
            reason: "limit".into(),
        });
        let last_entry = builder
            .build_entries_with_run_and_session(&RunEvent::ProgramEnded { state: Some(&state), exit_code: 6 })
            .remove(0);
        let facts = last_entry.event.fields_without_name();
        assert_eq!((&facts["exit_code"], &facts["marker"]), (&6.into(), &"RALPH_PAUSE|-|limit".into()));
        let failed_entry = builder
            .build_entries_with_run_and_session(&RunEvent::RunFailed { error: "no disk".into() })
            .remove(0);
        assert_eq!(
            (failed_entry.event.name(), &failed_entry.event.fields_without_name()["exit_code"]),
            ("run_ended", &1.into())
        );
    }
}
