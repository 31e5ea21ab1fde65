//! `plimsoll run --json`: one object a line, each step as it is taken. An event that the journal has too has the
//! same name; so one program reads both.

use crate::console;
use plimsoll_domain::journal::{
    CheckpointWritten, IterationClosed, JournalEvent, Planned, ReadingChanged, RunBegun, RunEnded,
    SessionEnded, StreamEntry, StreamEvent, TicksTakenBack, VerdictReached, Verified,
};
use plimsoll_domain::taken_back::TakenBack;
use plimsoll_domain::{Level, Marker, RunId, RunState, SessionId, SessionRecord, Verdict};
use plimsoll_flows::run::{Interrupts, Progress, RunObserver};
use plimsoll_flows::session_result::SessionResult;
use plimsoll_policy::completion::VerifyOutcome;
use plimsoll_policy::item_in_hand::item_in_hand;
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
    stamped(StreamEntry::of_run_session(state, StreamEvent::RunEnded(ended))).to_line()
}

pub(super) fn stamped(entry: StreamEntry) -> StreamEntry {
    StreamEntry { at: clock::fine_stamp(clock::now()), ..entry }
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
    pub(super) fn tell(&mut self, progress: &Progress<'_>) -> Vec<StreamEntry> {
        let events = self.events(progress);
        let run = Some((&self.run_id, self.iteration));
        let signed = |event| StreamEntry::new(event).run(run).session(self.session_id.as_ref());
        events.into_iter().map(signed).collect()
    }

    fn events(&mut self, progress: &Progress<'_>) -> Vec<StreamEvent> {
        match progress {
            Progress::Run { state } => {
                self.stand_at(state);
                vec![begun(state)]
            }
            Progress::Iteration { state, .. } => self.begin(state),
            Progress::Client { model, version } => {
                vec![StreamEvent::Client { model: model.clone(), version: version.clone() }]
            }
            Progress::Tool { name, detail } => {
                vec![StreamEvent::Tool { name: name.clone(), detail: detail.clone() }]
            }
            Progress::Retry { status, since } => {
                vec![StreamEvent::Retry { status: *status, since: since.clone() }]
            }
            Progress::StopRequested => vec![StreamEvent::StopRequested],
            Progress::Denied { state, tools } => vec![StreamEvent::ToolsDenied {
                tools: tools.to_vec(),
                command: crate::allowed_tools::allowing(state, tools, "--resume"),
            }],
            Progress::Compacted => vec![StreamEvent::Compacted],
            Progress::Load { record, .. } => self.load(record),
            Progress::Ended { ended, .. } => vec![session_end(ended)],
            Progress::Judged { state, verdict } => self.judged(state, verdict),
            Progress::Verified { outcomes } => {
                let verify = outcomes.iter().map(VerifyOutcome::fact).collect();
                vec![JournalEvent::Verified(Verified { verify }).into()]
            }
            Progress::Reviewed { reviewed } => {
                vec![JournalEvent::Reviewed(Box::new((*reviewed).clone())).into()]
            }
            Progress::TakenBack { taken } => vec![ticks_taken_back(taken)],
            Progress::Parked { question } => {
                let (item, question) = (question.item.clone(), question.question.clone());
                vec![JournalEvent::Parked { item, question }.into()]
            }
            Progress::Pause { until, seconds, reason } => {
                self.is_paused = true;
                let (until, reason) = (clock::stamp(*until), (*reason).to_owned());
                vec![StreamEvent::Pause { until, seconds: *seconds, reason }]
            }
            Progress::Workers { event } => vec![(*event).clone().into()],
            Progress::Waiting { .. } | Progress::Figures { .. } => Vec::new(),
            Progress::Fault { error, seconds } => vec![fault(error, *seconds)],
            Progress::Note(words) => vec![JournalEvent::Note { words: words.clone() }.into()],
            Progress::Over { state, code } => vec![StreamEvent::RunEnded(ended(*state, *code))],
            Progress::Failed { error } => {
                vec![StreamEvent::RunEnded(RunEnded { error: Some(error.clone()), ..ended(None, 1) })]
            }
        }
    }

    fn stand_at(&mut self, state: &RunState) {
        self.run_id.clone_from(&state.run_id);
        self.iteration = state.iteration;
        self.session_id.clone_from(&state.session_id);
    }

    fn begin(&mut self, state: &RunState) -> Vec<StreamEvent> {
        self.stand_at(state);
        (self.reading, self.handoff) = (None, None);
        let planned = JournalEvent::Planned(Planned {
            resuming: state.iteration_record.resuming,
            item: item_in_hand(state).cloned(),
            open: Some(state.items.todo_items.len()),
            done: Some(state.items.completed_items.len()),
        });
        let goes_on = std::mem::take(&mut self.is_paused).then_some(StreamEvent::PauseOver);
        goes_on.into_iter().chain([planned.into()]).collect()
    }

    /// Only what has changed: this is looked at a few times a second.
    fn load(&mut self, record: &SessionRecord) -> Vec<StreamEvent> {
        let reading = ReadingChanged {
            percent: record.usage.percent,
            percent_used: record.usage.percent_used,
            level: record.announced.level,
        };
        let mut events = Vec::new();
        if record.usage.percent.is_some() && self.reading != Some(reading) {
            events.push(StreamEvent::Reading(reading));
            self.reading = Some(reading);
        }
        if let Some(handoff) =
            record.checkpoint.handoff.as_ref().filter(|file| self.handoff.as_ref() != Some(file))
        {
            events.push(checkpoint(record.announced.level, record.announced.percent, handoff));
            self.handoff = Some(handoff.clone());
        }
        events
    }

    /// A short session may have come and gone between two looks: its checkpoint is reported here then.
    fn judged(&mut self, state: &RunState, verdict: &Verdict) -> Vec<StreamEvent> {
        let last = &state.context_checkpoint;
        let is_fresh = last.iteration == self.iteration && !last.handoff_file.is_empty();
        let untold = is_fresh && self.handoff.as_ref() != Some(&last.handoff_file);
        let checkpoint = untold.then(|| {
            self.handoff = Some(last.handoff_file.clone());
            checkpoint(last.level, last.percent_at_checkpoint, &last.handoff_file)
        });
        let history = state.context_history.iter().find(|entry| entry.iteration == self.iteration);
        let closed = history.map(|known| {
            StreamEvent::from(JournalEvent::IterationClosed(IterationClosed {
                peak_percent: known.peak_percent,
                notes: None,
                ending: Some(known.ending.clone()),
                cost_usd: Some(known.cost_usd),
                tokens: Some(state.iteration_record.tokens),
                seconds: Some(known.seconds),
                ticked: Some(known.items),
            }))
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
        checkpoint.into_iter().chain(closed).chain([verdict.into()]).collect()
    }
}

fn begun(state: &RunState) -> StreamEvent {
    let begun = RunBegun {
        task_name: Some(state.options.task_name.clone()),
        max_iterations: Some(state.options.max_iterations),
        todo_items: Some(state.items.todo_items.clone()),
        completed_items: Some(state.items.completed_items.clone()),
        ..RunBegun::default()
    };
    let is_new = state.iteration == 0;
    if is_new { JournalEvent::RunStarted(begun).into() } else { JournalEvent::Resumed(begun).into() }
}

fn checkpoint(level: Level, percent: Option<u64>, handoff: &str) -> StreamEvent {
    let handoff = handoff.to_owned();
    JournalEvent::Checkpoint(CheckpointWritten { level, percent, handoff, ..CheckpointWritten::default() })
        .into()
}

fn ticks_taken_back(taken: &TakenBack) -> StreamEvent {
    let taken = TicksTakenBack {
        items: taken.items.clone(),
        failed: taken.failed.iter().map(|failed| failed.command.clone()).collect(),
        findings: taken.findings.clone(),
        protected: taken.protected.clone(),
    };
    JournalEvent::TicksTakenBack(taken).into()
}

fn fault(error: &str, seconds: u64) -> StreamEvent {
    let (error, then) = (error.to_owned(), "tries again".to_owned());
    JournalEvent::Fault { error, then, seconds: Some(seconds) }.into()
}

fn session_end(ended: &SessionResult) -> StreamEvent {
    let ended = SessionEnded {
        ending: Some(ended.ending.clone()),
        cost_usd: ended.cost.map(|cost| cost.usd),
        tokens: Some(ended.tokens),
        ..SessionEnded::default()
    };
    JournalEvent::SessionEnd(ended).into()
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
