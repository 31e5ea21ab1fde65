//! `plimsoll run --json`: one object a line, each step as it is taken. An event that the journal has too has the
//! same name; so one program reads both.

use crate::console;
use plimsoll_domain::journal::{
    CheckpointWritten, IterationClosed, JournalEntry, JournalEvent, Planned, ReadingChanged, RunBegun,
    RunEnded, SessionEnded, TicksTakenBack, VerdictReached, Verified,
};
use plimsoll_domain::{Marker, RunId, RunState, SessionId, SessionRecord, Verdict};
use plimsoll_flows::run::{Interrupts, Progress, RunObserver};
use plimsoll_flows::session_result::SessionResult;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_store::clock;

pub(super) struct Json {
    interrupts: Interrupts,
    teller: StreamPrinter,
}

impl Json {
    pub(super) fn new(interrupts: Interrupts) -> Json {
        Json { interrupts, teller: StreamPrinter::default() }
    }
}

impl RunObserver for Json {
    fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    fn tell(&mut self, progress: &Progress<'_>) {
        for entry in self.teller.tell(progress) {
            console::json(stamped(entry).to_line());
        }
    }
}

/// The one line of a run that was over before anything began.
pub fn over(state: &RunState, marker: &Marker, code: u8) -> String {
    let ended = RunEnded { marker: Some(marker.clone()), ..ended(Some(state), code) };
    stamped(JournalEntry::of_run_session(state, JournalEvent::RunEnded(ended))).to_line()
}

pub(super) fn stamped(entry: JournalEntry) -> JournalEntry {
    JournalEntry { at: clock::fine_stamp(clock::now()), ..entry }
}

/// What has been printed so far: repetitions are printed once.
#[derive(Debug, Default)]
pub(super) struct StreamPrinter {
    /// The run, the iteration and the session at hand.
    run_id: RunId,
    iteration: u32,
    session_id: Option<SessionId>,
    /// The last reading.
    reading: Option<ReadingChanged>,
    /// The handoff of the session at hand.
    handoff: Option<String>,
    is_paused: bool,
}

impl StreamPrinter {
    pub(super) fn tell(&mut self, progress: &Progress<'_>) -> Vec<JournalEntry> {
        let events = self.events(progress);
        let run = Some((&self.run_id, self.iteration));
        let signed = |event| JournalEntry::new(event).run(run).session(self.session_id.as_ref());
        events.into_iter().map(signed).collect()
    }

    fn events(&mut self, progress: &Progress<'_>) -> Vec<JournalEvent> {
        match progress {
            Progress::Run { state } => {
                self.stand_at(state);
                vec![begun(state)]
            }
            Progress::Iteration { state, .. } => self.begin(state),
            Progress::Client { model, version } => {
                vec![JournalEvent::Client { model: model.clone(), version: version.clone() }]
            }
            Progress::Tool { name, detail } => {
                vec![JournalEvent::Tool { name: name.clone(), detail: detail.clone() }]
            }
            Progress::Retry { status, since } => {
                vec![JournalEvent::Retry { status: *status, since: since.clone() }]
            }
            Progress::StopRequested => vec![JournalEvent::StopRequested],
            Progress::Denied { state, tools } => vec![JournalEvent::ToolsDenied {
                tools: tools.to_vec(),
                command: crate::allowed_tools::allowing(state, tools, "--resume"),
            }],
            Progress::Compacted => vec![JournalEvent::Compacted],
            Progress::Load { record, .. } => self.load(record),
            Progress::Ended { ended, .. } => vec![session_end(ended)],
            Progress::Judged { state, verdict } => self.judged(state, verdict),
            Progress::Verified { outcomes } => vec![JournalEvent::Verified(Verified {
                verify: outcomes.iter().map(VerifyOutcome::fact).collect(),
            })],
            Progress::Reviewed { reviewed } => vec![JournalEvent::Reviewed(Box::new((*reviewed).clone()))],
            Progress::TakenBack { taken } => vec![JournalEvent::TicksTakenBack(TicksTakenBack {
                items: taken.items.clone(),
                failed: taken.failed.iter().map(|failed| failed.command.clone()).collect(),
                findings: taken.findings.clone(),
                protected: taken.protected.clone(),
            })],
            Progress::Parked { question } => vec![JournalEvent::Parked {
                item: question.item.clone(),
                question: question.question.clone(),
            }],
            Progress::Pause { until, seconds, reason } => {
                self.is_paused = true;
                let (until, reason) = (clock::stamp(*until), (*reason).to_owned());
                vec![JournalEvent::Pause { until, seconds: *seconds, reason }]
            }
            Progress::Workers { event } => vec![(*event).clone()],
            Progress::Waiting { .. } | Progress::Figures { .. } => Vec::new(),
            Progress::Fault { error, seconds } => vec![JournalEvent::Fault {
                error: error.clone(),
                then: "tries again".to_owned(),
                seconds: Some(*seconds),
            }],
            Progress::Note(words) => vec![JournalEvent::Note { words: words.clone() }],
            Progress::Over { state, code } => vec![JournalEvent::RunEnded(ended(*state, *code))],
            Progress::Failed { error } => {
                vec![JournalEvent::RunEnded(RunEnded { error: Some(error.clone()), ..ended(None, 1) })]
            }
        }
    }

    fn stand_at(&mut self, state: &RunState) {
        self.run_id.clone_from(&state.run_id);
        self.iteration = state.iteration;
        self.session_id.clone_from(&state.session_id);
    }

    fn begin(&mut self, state: &RunState) -> Vec<JournalEvent> {
        self.stand_at(state);
        (self.reading, self.handoff) = (None, None);
        let planned = JournalEvent::Planned(Planned {
            resuming: state.iteration_record.resuming,
            item: state.item_in_hand().cloned(),
            open: Some(state.items.todo_items.len()),
            done: Some(state.items.completed_items.len()),
        });
        let goes_on = std::mem::take(&mut self.is_paused).then_some(JournalEvent::PauseOver);
        goes_on.into_iter().chain([planned]).collect()
    }

    /// Only what has changed: this is looked at a few times a second.
    fn load(&mut self, record: &SessionRecord) -> Vec<JournalEvent> {
        let reading = ReadingChanged {
            percent: record.usage.percent,
            percent_used: record.usage.percent_used,
            level: record.announced.level,
        };
        let mut events = Vec::new();
        if record.usage.percent.is_some() && self.reading != Some(reading) {
            events.push(JournalEvent::Reading(reading));
            self.reading = Some(reading);
        }
        if let Some(handoff) =
            record.checkpoint.handoff.as_ref().filter(|file| self.handoff.as_ref() != Some(file))
        {
            events.push(JournalEvent::Checkpoint(CheckpointWritten {
                level: record.announced.level,
                percent: record.announced.percent,
                handoff: handoff.clone(),
                ..CheckpointWritten::default()
            }));
            self.handoff = Some(handoff.clone());
        }
        events
    }

    /// A short session may have come and gone between two looks: its checkpoint is reported here then.
    fn judged(&mut self, state: &RunState, verdict: &Verdict) -> Vec<JournalEvent> {
        let last = &state.context_checkpoint;
        let is_fresh = last.iteration == self.iteration && !last.handoff_file.is_empty();
        let untold = is_fresh && self.handoff.as_ref() != Some(&last.handoff_file);
        let checkpoint = untold.then(|| {
            self.handoff = Some(last.handoff_file.clone());
            JournalEvent::Checkpoint(CheckpointWritten {
                level: last.level,
                percent: last.percent_at_checkpoint,
                handoff: last.handoff_file.clone(),
                ..CheckpointWritten::default()
            })
        });
        let history = state.context_history.iter().find(|entry| entry.iteration == self.iteration);
        let closed = history.map(|known| {
            JournalEvent::IterationClosed(IterationClosed {
                peak_percent: known.peak_percent,
                notes: None,
                ending: Some(known.ending.clone()),
                cost_usd: Some(known.cost_usd),
                tokens: Some(state.iteration_record.tokens),
                seconds: Some(known.seconds),
                ticked: Some(known.items),
            })
        });
        let verdict = JournalEvent::Verdict(Box::new(VerdictReached {
            status: Some(state.lifecycle.status()),
            open: Some(state.items.todo_items.len()),
            done: Some(state.items.completed_items.len()),
            cost_usd: Some(state.spent.cost_usd),
            cost_basis: state.spent.cost_basis(),
            tokens: Some(state.spent.tokens),
            ..VerdictReached::of(verdict)
        }));
        checkpoint.into_iter().chain(closed).chain([verdict]).collect()
    }
}

fn begun(state: &RunState) -> JournalEvent {
    let begun = RunBegun {
        task_name: Some(state.options.task_name.clone()),
        max_iterations: Some(state.options.max_iterations),
        todo_items: Some(state.items.todo_items.clone()),
        completed_items: Some(state.items.completed_items.clone()),
        ..RunBegun::default()
    };
    if state.iteration == 0 { JournalEvent::RunStarted(begun) } else { JournalEvent::Resumed(begun) }
}

fn session_end(ended: &SessionResult) -> JournalEvent {
    JournalEvent::SessionEnd(SessionEnded {
        ending: Some(ended.ending.clone()),
        cost_usd: ended.cost.map(|cost| cost.usd),
        tokens: Some(ended.tokens),
        ..SessionEnded::default()
    })
}

fn ended(state: Option<&RunState>, exit_code: u8) -> RunEnded {
    let Some(state) = state else { return RunEnded { exit_code, ..RunEnded::default() } };
    let has_reviews = state.spent.review_count > 0;
    RunEnded {
        status: Some(state.lifecycle.status()),
        open: Some(state.items.todo_items.len()),
        done: Some(state.items.completed_items.len()),
        cost_usd: Some(state.spent.cost_usd),
        tokens: Some(state.spent.tokens),
        reviews: has_reviews.then_some(state.spent.review_count),
        review_cost_usd: has_reviews.then_some(state.spent.review_cost_usd),
        review_tokens: has_reviews.then_some(state.spent.review_tokens),
        marker: state.lifecycle.last_verdict().map(Verdict::marker),
        error: None,
        exit_code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::level::Level;
    use plimsoll_domain::run_figures::RunFigures;
    use plimsoll_domain::state::HistoryEntry;
    use plimsoll_domain::{Status, verdict::PauseKind};

    fn events(teller: &mut StreamPrinter, progress: &Progress<'_>) -> Vec<String> {
        let entries = teller.tell(progress).into_iter().map(|entry| {
            assert_eq!((entry.run_id.as_deref(), entry.iteration), (Some("r1"), Some(2)), "{entry:?}");
            entry.event.name().to_owned()
        });
        entries.collect()
    }

    fn state() -> RunState {
        RunState {
            run_id: "r1".into(),
            iteration: 2,
            session_id: Some("s".into()),
            context_history: vec![HistoryEntry { iteration: 2, peak_percent: 87, ..HistoryEntry::default() }],
            ..RunState::default()
        }
    }

    #[test]
    fn a_reading_and_a_handoff_are_told_once() {
        let (mut teller, state) = (StreamPrinter::default(), state());
        assert_eq!(events(&mut teller, &Progress::Iteration { state: &state, model: None }), ["planned"]);
        let mut record = SessionRecord::default();
        let mut look = |record: &SessionRecord| {
            events(&mut teller, &Progress::Load { state: &state, record, figures: &RunFigures::default() })
        };
        assert!(look(&record).is_empty(), "nothing is known yet");
        record.usage.percent = Some(40);
        assert_eq!(look(&record), ["reading"]);
        assert!(look(&record).is_empty());
        record.announced.level = Level::L2;
        record.checkpoint.handoff = Some("a.md".into());
        assert_eq!(look(&record), ["reading", "checkpoint"]);
        assert!(look(&record).is_empty());
    }

    #[test]
    fn a_checkpoint_between_two_looks_is_told_with_the_verdict() {
        let (mut teller, mut state) = (StreamPrinter::default(), state());
        teller.tell(&Progress::Iteration { state: &state, model: None });
        state.context_checkpoint.iteration = 2;
        state.context_checkpoint.handoff_file = "a.md".into();
        let verdict = Verdict::Stop { status: Status::Completed, reason: String::new() };
        let judged = Progress::Judged { state: &state, verdict: &verdict };
        assert_eq!(events(&mut teller, &judged), ["checkpoint", "iteration_closed", "verdict"]);
        assert_eq!(events(&mut teller, &judged), ["iteration_closed", "verdict"]);
    }

    #[test]
    fn a_pause_is_over_when_the_next_session_begins_and_the_end_tells_the_exit_code() {
        let (mut teller, mut state) = (StreamPrinter::default(), state());
        assert_eq!(events(&mut teller, &Progress::Run { state: &state }), ["resumed"]);
        let pause = Progress::Pause { until: clock::now(), seconds: 3, reason: "overloaded" };
        assert_eq!(events(&mut teller, &pause), ["pause"]);
        assert_eq!(
            events(&mut teller, &Progress::Iteration { state: &state, model: None }),
            ["pause_over", "planned"]
        );
        assert_eq!(events(&mut teller, &Progress::Iteration { state: &state, model: None }), ["planned"]);
        state.lifecycle.take(&Verdict::Pause { kind: PauseKind::Limit, until: None, reason: "limit".into() });
        let last = teller.tell(&Progress::Over { state: Some(&state), code: 6 }).remove(0);
        let facts = last.event.facts();
        assert_eq!((&facts["exit_code"], &facts["marker"]), (&6.into(), &"RALPH_PAUSE|-|limit".into()));
        let failed = teller.tell(&Progress::Failed { error: "no disk".into() }).remove(0);
        assert_eq!((failed.event.name(), &failed.event.facts()["exit_code"]), ("run_ended", &1.into()));
    }
}
