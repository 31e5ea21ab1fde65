//! `plimsoll run --json`: one object a line, each step as it is taken. An event that the journal has too bears the
//! same name and the same facts; so one program reads both.

use crate::console;
use flows::iteration::Ended;
use flows::run::{Interrupts, Progress, Watcher};
use serde_json::Value;
use session::journal::Entry;
use session::{Marker, RunState, SessionRecord, Verdict};
use store::clock;

pub(super) struct Json {
    interrupts: Interrupts,
    teller: Teller,
}

impl Json {
    pub(super) fn new(interrupts: Interrupts) -> Json {
        Json { interrupts, teller: Teller::default() }
    }
}

impl Watcher for Json {
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
pub(crate) fn over(state: &RunState, marker: &Marker, code: u8) -> String {
    let entry = left(Entry::new("run_ended"), state).fact("marker", marker.to_string());
    stamped(of(state, entry).fact("exit_code", code)).to_line()
}

fn stamped(entry: Entry) -> Entry {
    Entry { at: clock::fine_stamp(clock::now()), ..entry }
}

/// What has been told so far: what comes again and again is told once.
#[derive(Debug, Default)]
struct Teller {
    /// The run, the iteration and the session at hand.
    run_id: String,
    iteration: u32,
    session_id: Option<String>,
    /// The last reading: percent, percent by the client's own figure, level.
    reading: Option<[Value; 3]>,
    /// The handoff of the session at hand.
    handoff: Option<String>,
    is_paused: bool,
}

impl Teller {
    fn tell(&mut self, progress: &Progress<'_>) -> Vec<Entry> {
        let entry = |event: &str| Entry::new(event);
        let entries = match progress {
            Progress::Run { state } => {
                self.stand_at(state);
                vec![begun(state)]
            }
            Progress::Iteration { state } => self.begin(state),
            Progress::Client { model, version } => {
                vec![entry("client").fact("model", model.as_str()).fact("version", version.as_str())]
            }
            Progress::Tool { name, detail } => {
                vec![entry("tool").fact("name", name.as_str()).fact("detail", detail.as_str())]
            }
            Progress::Retry { status, since } => {
                vec![entry("retry").fact("status", *status).fact("since", since.as_str())]
            }
            Progress::StopRequested => vec![entry("stop_requested")],
            Progress::Denied { state, tools } => vec![
                entry("tools_denied")
                    .fact("tools", tools.to_vec())
                    .fact("command", crate::run::allowing(state, tools, "--resume")),
            ],
            Progress::Compacted => vec![entry("compacted")],
            Progress::Load { record, .. } => self.load(record),
            Progress::Ended { ended, .. } => vec![session_end(ended)],
            Progress::Judged { state, verdict } => self.judged(state, verdict),
            Progress::Pause { until, seconds, reason } => {
                self.is_paused = true;
                let entry = entry("pause").fact("until", clock::stamp(*until));
                vec![entry.fact("seconds", *seconds).fact("reason", *reason)]
            }
            Progress::Waiting { .. } => Vec::new(),
            Progress::Fault { error, seconds } => {
                let entry = entry("fault").fact("error", error.as_str());
                vec![entry.fact("then", "tries again").fact("seconds", *seconds)]
            }
            Progress::Note(words) => vec![entry("note").fact("words", words.as_str())],
            Progress::Over { state, code } => vec![ended(*state).fact("exit_code", *code)],
            Progress::Failed { error } => {
                vec![entry("run_ended").fact("error", error.as_str()).fact("exit_code", 1)]
            }
        };
        entries.into_iter().map(|entry| self.signed(entry)).collect()
    }

    fn stand_at(&mut self, state: &RunState) {
        self.run_id.clone_from(&state.run_id);
        self.iteration = state.iteration;
        self.session_id.clone_from(&state.session_id);
    }

    fn signed(&self, entry: Entry) -> Entry {
        entry.run(Some((&self.run_id, self.iteration))).session(self.session_id.as_deref())
    }

    fn begin(&mut self, state: &RunState) -> Vec<Entry> {
        self.stand_at(state);
        (self.reading, self.handoff) = (None, None);
        let planned = Entry::new("planned")
            .fact("resuming", state.iteration_record.resuming)
            .fact("item", state.item_in_hand().cloned())
            .fact("open", state.todo_items.len())
            .fact("done", state.completed_items.len());
        let goes_on = std::mem::take(&mut self.is_paused).then(|| Entry::new("pause_over"));
        goes_on.into_iter().chain([planned]).collect()
    }

    /// Only what has changed: this is looked at a few times a second.
    fn load(&mut self, record: &SessionRecord) -> Vec<Entry> {
        let (percent, used) = (record.percent.into(), record.percent_used.into());
        let reading = [percent, used, Value::from(record.announced.to_string())];
        let mut entries = Vec::new();
        if record.percent.is_some() && self.reading.as_ref() != Some(&reading) {
            let [percent, used, level] = reading.clone();
            let entry = Entry::new("reading").fact("percent", percent).fact("percent_used", used);
            entries.push(entry.fact("level", level));
            self.reading = Some(reading);
        }
        let told = record.handoff.as_ref().filter(|file| self.handoff.as_ref() != Some(file));
        if let Some(file) = told {
            let entry = Entry::new("checkpoint").fact("level", record.announced.to_string());
            let percent = record.announced_percent.or(record.percent);
            entries.push(entry.fact("percent", percent).fact("handoff", file.as_str()));
            self.handoff = Some(file.clone());
        }
        entries
    }

    /// A short session may have come and gone between two looks: its checkpoint is told here then.
    fn judged(&mut self, state: &RunState, verdict: &Verdict) -> Vec<Entry> {
        let last = &state.context_checkpoint;
        let is_fresh = last.iteration == self.iteration && !last.handoff_file.is_empty();
        let untold = is_fresh && self.handoff.as_ref() != Some(&last.handoff_file);
        let checkpoint = untold.then(|| {
            self.handoff = Some(last.handoff_file.clone());
            Entry::new("checkpoint")
                .fact("level", last.level.to_string())
                .fact("percent", last.percent_at_checkpoint)
                .fact("handoff", last.handoff_file.as_str())
        });
        let history = state.context_history.iter().find(|entry| entry.iteration == self.iteration);
        let closed = history.map(|known| {
            Entry::new("iteration_closed")
                .fact("ending", known.ending.as_str())
                .fact("peak_percent", known.peak_percent)
                .fact("cost_usd", known.cost_usd)
                .fact("tokens", state.iteration_record.tokens)
                .fact("seconds", known.seconds)
                .fact("ticked", known.items)
        });
        let verdict = left(Entry::new("verdict"), state).fact("marker", verdict.marker().to_string());
        checkpoint.into_iter().chain(closed).chain([verdict]).collect()
    }
}

fn begun(state: &RunState) -> Entry {
    let event = if state.iteration == 0 { "run_started" } else { "resumed" };
    Entry::new(event)
        .fact("task_name", state.task_name.as_str())
        .fact("max_iterations", state.max_iterations)
        .fact("todo_items", state.todo_items.clone())
        .fact("completed_items", state.completed_items.clone())
}

fn session_end(ended: &Ended) -> Entry {
    Entry::new("session_end")
        .fact("ending", serde_json::to_value(&ended.ending).unwrap_or_default())
        .fact("cost_usd", ended.cost_usd)
        .fact("tokens", ended.tokens)
}

fn ended(state: Option<&RunState>) -> Entry {
    let entry = Entry::new("run_ended");
    let Some(state) = state else { return entry };
    let marker = state.last_verdict.as_ref().map(|verdict| verdict.marker().to_string());
    left(entry, state).fact("marker", marker)
}

/// How a run stands.
fn left(entry: Entry, state: &RunState) -> Entry {
    entry
        .fact("status", state.status.word())
        .fact("open", state.todo_items.len())
        .fact("done", state.completed_items.len())
        .fact("cost_usd", state.cost_usd)
        .fact("tokens", state.tokens)
}

fn of(state: &RunState, entry: Entry) -> Entry {
    entry.run(Some((&state.run_id, state.iteration))).session(state.session_id.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::level::Level;
    use session::state::HistoryEntry;
    use session::{Status, verdict::PauseKind};

    fn events(teller: &mut Teller, progress: &Progress<'_>) -> Vec<String> {
        let entries = teller.tell(progress).into_iter().map(|entry| {
            assert_eq!((entry.run_id.as_deref(), entry.iteration), (Some("r1"), Some(2)), "{entry:?}");
            entry.event
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
        let (mut teller, state) = (Teller::default(), state());
        assert_eq!(events(&mut teller, &Progress::Iteration { state: &state }), ["planned"]);
        let mut record = SessionRecord::default();
        let mut look =
            |record: &SessionRecord| events(&mut teller, &Progress::Load { state: &state, record });
        assert!(look(&record).is_empty(), "nothing is known yet");
        record.percent = Some(40);
        assert_eq!(look(&record), ["reading"]);
        assert!(look(&record).is_empty());
        record.announced = Level::L2;
        record.handoff = Some("a.md".into());
        assert_eq!(look(&record), ["reading", "checkpoint"]);
        assert!(look(&record).is_empty());
    }

    #[test]
    fn a_checkpoint_between_two_looks_is_told_with_the_verdict() {
        let (mut teller, mut state) = (Teller::default(), state());
        teller.tell(&Progress::Iteration { state: &state });
        state.context_checkpoint.iteration = 2;
        state.context_checkpoint.handoff_file = "a.md".into();
        let verdict = Verdict::Stop { status: Status::Completed, reason: String::new() };
        let judged = Progress::Judged { state: &state, verdict: &verdict };
        assert_eq!(events(&mut teller, &judged), ["checkpoint", "iteration_closed", "verdict"]);
        assert_eq!(events(&mut teller, &judged), ["iteration_closed", "verdict"]);
    }

    #[test]
    fn a_pause_is_over_when_the_next_session_begins_and_the_end_tells_the_exit_code() {
        let (mut teller, mut state) = (Teller::default(), state());
        assert_eq!(events(&mut teller, &Progress::Run { state: &state }), ["resumed"]);
        let pause = Progress::Pause { until: clock::now(), seconds: 3, reason: "overloaded" };
        assert_eq!(events(&mut teller, &pause), ["pause"]);
        assert_eq!(events(&mut teller, &Progress::Iteration { state: &state }), ["pause_over", "planned"]);
        assert_eq!(events(&mut teller, &Progress::Iteration { state: &state }), ["planned"]);
        state.status = Status::Paused;
        state.last_verdict =
            Some(Verdict::Pause { kind: PauseKind::Limit, until: None, reason: "limit".into() });
        let last = teller.tell(&Progress::Over { state: Some(&state), code: 6 }).remove(0);
        assert_eq!(
            (&last.facts["exit_code"], &last.facts["marker"]),
            (&6.into(), &"RALPH_PAUSE|-|limit".into())
        );
        let failed = teller.tell(&Progress::Failed { error: "no disk".into() }).remove(0);
        assert_eq!((failed.event.as_str(), &failed.facts["exit_code"]), ("run_ended", &1.into()));
    }
}
