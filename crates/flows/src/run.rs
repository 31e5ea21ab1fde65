//! `plimsoll run`: one headless session after another, until the gate says stop. It survives its own death: what is
//! done is in the state, and a client that was started and not yet noted there is found by its ids.

mod apply_verdict;
pub(crate) mod archive;
pub mod backup;
pub mod baseline;
pub mod branch;
pub(crate) mod changed_checks;
mod client_error;
pub mod close;
pub(crate) mod day;
mod ended_session;
pub mod evidence;
pub mod finish;
mod footing;
pub mod foreign;
pub(crate) mod labels;
pub mod lifecycle;
pub mod notify;
mod observer;
mod orphans;
pub mod other_plans;
pub mod permissions;
mod preflight;
pub mod prompt;
pub mod protect;
pub mod questions;
mod receipt;
mod retry;
pub(crate) mod review;
pub mod sandbox;
pub(crate) mod save_work;
mod start_error;
mod stream_reader;
mod supervise;
mod ticks;
pub(crate) mod verify;
mod watchdog;

pub use client_error::{ClientError, SettingsFault};
pub use observer::{Interrupt, Interrupts, Progress, RunObserver};
pub use preflight::{Preflight, prepare};
pub(crate) use preflight::{check_can_confine, check_client};

use crate::checkpoint::facts;
use crate::context::running_sessions::FiguresReader;
use crate::context::session_usage::complete_cost;
use crate::hook_invocation::RUN_VARIABLE;
use crate::install::plugin;
use crate::run::lifecycle::StartError;
use crate::run_context::RunContext;
use crate::session_result::SessionResult;
use baseline::Known;
use finish::{Finished, not_run_words};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::journal::{JournalEvent, VerdictReached};
use plimsoll_domain::state::Phase;
use plimsoll_domain::status::Status;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{Ending, RunState, SessionId, Verdict};
use plimsoll_launcher::client::{self, Client, Launch};
use plimsoll_launcher::process;
use plimsoll_policy::models;
use plimsoll_protocol::settings::{HookSupport, Parts};
use plimsoll_store::{Durability, Project, StoreError, clock, disk, environment, outbox, sessions};
use retry::Faults;
use review::Reviewer;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use stream_reader::StreamReader;
use supervise::GRACE_PERIOD;
use watchdog::{Terms, Watchdog};

/// What `plimsoll run` was asked beside the task.
#[derive(Debug, Clone)]
pub struct Options {
    /// The client.
    pub client: PathBuf,
    /// What the user passes on to it.
    pub client_arguments: Vec<String>,
    /// True when the sessions have the working memory.
    pub memory: bool,
    /// False with `--no-wait`: a pause ends the program.
    pub wait: bool,
    /// True if the run's own spans are exported: then those of its sessions are below them.
    pub has_spans: bool,
}

/// Why a run could not continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Planning.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Another `plimsoll run` works here.
    #[error("another `plimsoll run` is active in this project{0}")]
    Busy(String),
    /// The hook programs are missing.
    #[error(
        "the hook program {0} is neither next to plimsoll nor on the PATH: install all programs of Plimsoll together, in one of the ways of docs/start.md"
    )]
    NoHooks(String),
    /// The client cannot be used as it is, or as it was called.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The client cannot be started.
    #[error(transparent)]
    NotStarted(#[from] client::NotStarted),
    /// An argument for the client that we set ourselves.
    #[error("`{0}` is set by plimsoll run itself: leave it out after `--`")]
    Argument(String),
}

/// Runs a run to its end (or its pause); answers with the exit code.
pub fn run(
    context: RunContext<'_>,
    options: &Options,
    ready: Preflight,
    run: &RunState,
    watcher: &mut dyn RunObserver,
) -> Result<u8, RunError> {
    let project = context.project;
    let Preflight { hooks, memory_arguments, client_arguments, model, era, hook_parts, version, _only } =
        ready;
    let claude = project.root().join(".claude");
    for folder in [project.root(), &claude, &project.handoffs(), &project.copies(), &outbox::folder(project)]
    {
        disk::sweep_drafts(folder, |pid| process::life_of(pid).is_gone());
    }
    // A plan elsewhere lies in a folder of the user's.
    if let Some(plan) = &run.options.todo_file {
        disk::sweep_drafts_of(&project.root().join(plan));
    }
    let watchdog = Watchdog::start(last_resort(run, watcher.interrupts().clone()));
    let mut runner = Runner {
        context,
        options,
        hooks,
        memory_arguments,
        client_arguments,
        model,
        ignored_models: BTreeSet::new(),
        era,
        hook_parts,
        version,
        watcher,
        watchdog,
        faults: Faults::default(),
        figures: FiguresReader::default(),
        last: run.clone(),
    };
    runner.watcher.tell(&Progress::Run { state: run });
    loop {
        let left = match runner.go_on() {
            Ok(left) => {
                runner.faults = Faults::default();
                left
            }
            Err(error) => runner.retry(error)?,
        };
        if let Some(code) = left {
            return Ok(runner.over(code));
        }
    }
}

/// The loop looks many times a second, and asks politely first: where it has not ended the client by then, it is stuck.
/// The system kills a program 90 s after it asked it to end.
#[expect(clippy::exit, reason = "the thread that would return an exit code is the one that is held up")]
fn last_resort(run: &RunState, interrupts: Interrupts) -> Terms {
    Terms {
        interrupts,
        deadline: run.options.limits.deadline.as_ref().and_then(clock::moment),
        after_interrupt: Duration::from_secs(2),
        after_deadline: Duration::from_secs(15),
        grace_period: GRACE_PERIOD,
        to_leave: Duration::from_secs(60),
        // Whatever the loop has not written is made good by the next `--resume`.
        leave: || std::process::exit(ExitStatus::Interrupted.code().into()),
    }
}

/// What comes after the commands that run before a session.
enum Learned {
    /// A session.
    GoOn,
    /// Nothing now: they were given up.
    Paused(Verdict),
    /// Nothing at all: the run is over.
    Over(u8),
}

struct Runner<'a> {
    context: RunContext<'a>,
    options: &'a Options,
    hooks: String,
    memory_arguments: Vec<String>,
    client_arguments: Vec<String>,
    /// The model that the user passes on to the client.
    model: Option<String>,
    /// Models of items that do not count and have been reported.
    ignored_models: BTreeSet<String>,
    era: HookSupport,
    hook_parts: Parts,
    version: String,
    watcher: &'a mut dyn RunObserver,
    watchdog: Watchdog,
    faults: Faults,
    figures: FiguresReader,
    /// The state as it was read last: what is known where it cannot be read.
    last: RunState,
}

impl Runner<'_> {
    /// One round, from the run's status in the state: what was begun is finished first. None means
    /// another round.
    fn go_on(&mut self) -> Result<Option<u8>, RunError> {
        let gone = || StartError::NoRun(self.context.project.root().display().to_string());
        // Read anew each round: hooks and `plimsoll stop` write it, too.
        let state = self.context.load_state()?.ok_or_else(gone)?;
        self.last = state.clone();
        self.leave_pause(&state)?;
        // Also those that a killed process did not come to tell.
        self.tell_questions(&state)?;
        let verdict = match self.recover(&state)? {
            Some(verdict) => verdict,
            None => match self.learn_what_passes()? {
                Learned::Paused(paused) => paused,
                Learned::Over(code) => return Ok(Some(code)),
                Learned::GoOn => self.iterate()?,
            },
        };
        self.apply(&verdict)
    }

    /// The state of a resumed run says what the process before it left: that it is paused. This one works, unless it waits for the same
    /// moment.
    fn leave_pause(&self, run: &RunState) -> Result<(), StoreError> {
        let waits_on = run.iteration_record.phase == Phase::Judged && pause_that_lasts(run).is_some();
        if run.lifecycle.status() == Status::Paused && !waits_on {
            self.context.update_lazily(|state| {
                state.lifecycle.go_on();
            })?;
        }
        Ok(())
    }

    /// What an earlier `run` left behind: a client that still works is followed to its end, one that has ended
    /// is judged; nothing is started twice.
    fn recover(&mut self, run: &RunState) -> Result<Option<Verdict>, RunError> {
        let record = &run.iteration_record;
        if record.phase == Phase::Judged {
            return match pause_that_lasts(run) {
                Some(paused) => Ok(Some(paused)),
                None => self.wait_for_next_day(run),
            };
        }
        if let Some(orphan) = lifecycle::orphan(run) {
            self.watchdog.watch(orphan, lifecycle::settings_of(run));
            self.context.note(run, JournalEvent::Adopted { pid: orphan.pid })?;
            self.watcher.tell(&Progress::Note(format!(
                "adopted the client of iteration {} (pid {})",
                run.iteration, orphan.pid
            )));
            self.record_process(orphan)?;
            return self.follow(run, Client::Adopted(orphan)).map(Some);
        }
        // The file outlives both processes: how a dead client ended is read from what it wrote.
        let mut follower = StreamReader::new(self.output(run, "jsonl"), &self.version);
        follower.read_on();
        if record.phase == Phase::Planned && !record.hooks_seen && !follower.has_spoken() {
            // Planned and never started: it is planned again, under its own number.
            return self.wait_for_next_day(run);
        }
        let ended = follower.ended(plimsoll_domain::Exit::default());
        self.finish(run, &ended).map(Some)
    }

    /// What all runs may spend on a day is spent before this one begins a session: it waits as after one.
    fn wait_for_next_day(&mut self, run: &RunState) -> Result<Option<Verdict>, RunError> {
        let Some(paused) = day::is_spent(self.context.project, run) else { return Ok(None) };
        let state = self.context.update(|state| {
            if !state.lifecycle.is_over() {
                state.lifecycle.take(&paused);
            }
            state.clone()
        })?;
        if let Some(state) = state.filter(|state| !state.lifecycle.is_over()) {
            self.context.note(&state, JournalEvent::Verdict(Box::new(VerdictReached::of(&paused))))?;
            self.watcher.tell(&Progress::Judged { state: &state, verdict: &paused });
        }
        Ok(Some(paused))
    }

    fn iterate(&mut self) -> Result<Verdict, RunError> {
        // Chosen here and planned before the client starts, so that a client without a noted pid can still be found.
        let session_id = uuid::Uuid::new_v4().to_string();
        let state =
            lifecycle::plan(self.context.project, self.context.run_id, Some(SessionId::from(session_id)))?;
        if state.lifecycle.is_over() {
            return Ok(self.over_before_it_began(&state));
        }
        let model = self.choose_model(&state);
        let unusual = model.as_deref().filter(|_| model != self.model);
        self.watcher.tell(&Progress::Iteration { state: &state, model: unusual });
        let client = self.spawn(&state, model)?;
        self.follow(&state, client)
    }

    /// Runs commands of which it is not known whether they pass before the next session.
    fn learn_what_passes(&mut self) -> Result<Learned, RunError> {
        if !self.last.lifecycle.is_over() {
            self.last.outcomes.changed_protected = protect::check_before_session(&self.context, &self.last)?;
        }
        let commands = baseline::unknown(self.context.project, &self.last);
        if commands.is_empty() {
            return Ok(Learned::GoOn);
        }
        self.watcher.tell(&Progress::Note(baseline::words(&self.last, &commands)));
        // No session is at work: the first Ctrl-C is enough.
        let known = baseline::learn(&self.context, &self.last, &commands, &|| {
            self.watcher.interrupts().has_asked(Interrupt::Once) || self.context.is_cancelled()
        })?;
        match known {
            Known::Paused(paused) => Ok(Learned::Paused(paused)),
            Known::Said(said) => {
                if !said.is_empty() {
                    self.watcher.tell(&Progress::Verified { outcomes: &said });
                }
                // They may have taken long: until after the deadline, or until the user cancelled the run.
                Ok(self.over_meanwhile()?.map_or(Learned::GoOn, Learned::Over))
            }
        }
    }

    /// A run that was cancelled meanwhile, or in which everything waits for an answer.
    fn over_before_it_began(&mut self, state: &RunState) -> Verdict {
        let status = state.lifecycle.status();
        match state.lifecycle.last_verdict().filter(|_| status == Status::Blocked) {
            Some(verdict) => {
                self.watcher.tell(&Progress::Judged { state, verdict });
                verdict.clone()
            }
            None => Verdict::Stop { status, reason: String::new() },
        }
    }

    /// The model for the item of this iteration. One that does not count is told once.
    fn choose_model(&mut self, state: &RunState) -> Option<String> {
        let item = state.iteration_record.item.as_deref().unwrap_or_default();
        let chosen = models::choose(item, &self.context.settings.models, self.model.as_deref());
        if let Some(ignored) = chosen.ignored
            && self.ignored_models.insert(ignored.to_owned())
        {
            self.watcher.tell(&Progress::Note(models::ignored_words(ignored)));
        }
        chosen.model.map(str::to_owned)
    }

    fn spawn(&mut self, state: &RunState, model: Option<String>) -> Result<Client, RunError> {
        let prompt = self.output(state, "prompt.md");
        disk::replace(
            &prompt,
            &disk::read(&self.context.project.prompt())?.unwrap_or_default(),
            Durability::Lazy,
        )?;
        // Only for order's sake: it must not end the run.
        let _ = prompt::put_back(self.context.project, state);
        let session_id = state.session_id.clone().unwrap_or_default();
        let ours = [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--session-id",
            &session_id,
            "--settings",
            &self.hooks,
        ];
        let arguments: Vec<String> = ours
            .map(str::to_owned)
            .into_iter()
            .chain(self.memory_arguments.clone())
            .chain(budget_left(&self.context, state, self.era, &self.client_arguments))
            .chain(model.iter().flat_map(|model| [models::OPTION.to_owned(), model.clone()]))
            .chain(self.client_arguments.clone())
            .collect();
        // Files and no pipes: a client whose reader has died works on to its end (2.1.329); its output is read later.
        // A kill before the pid is written leaves a client that `lifecycle::orphan` finds by its ids.
        let client = client::start(Launch {
            program: &self.options.client,
            arguments: &arguments,
            folder: self.context.project.root(),
            environment: &self.environment(state, &session_id),
            without: &[],
            stdin: disk::open(&prompt)?,
            stdout: disk::open_to_append(&self.output(state, "jsonl"))?,
            stderr: disk::open_to_append(&self.output(state, "err"))?,
        })?;
        // None if the client has already ended: it was a session all the same.
        let identity = client.identity();
        if let Some(identity) = identity {
            // Before the write: if the disk refuses it, the client is known here and can be ended.
            self.watchdog.watch(identity, lifecycle::settings_of(state));
            self.record_process(identity)?;
        }
        self.context
            .note(state, JournalEvent::Spawned { pid: identity.map(|identity| identity.pid), model })?;
        Ok(client)
    }

    /// What the client finds in its environment; how deep frames may lie, unless the user has said it.
    fn environment(&self, state: &RunState, session_id: &SessionId) -> Vec<(String, String)> {
        let given = plugin::given(session_id, self.hook_parts);
        let mut variables = vec![(RUN_VARIABLE.to_owned(), self.context.run_id.to_string()), given];
        variables.extend(labels::of_session(state, session_id, self.options.has_spans));
        let (name, value) = plimsoll_protocol::settings::memory_variable();
        if self.options.memory && environment::variable(&name).is_none() {
            variables.push((name, value));
        }
        variables
    }

    fn record_process(&self, identity: process::Identity) -> Result<(), StoreError> {
        self.context.update(|state| {
            let record = &mut state.iteration_record;
            if matches!(record.phase, Phase::Planned | Phase::Spawned) {
                record.phase = Phase::Spawned;
            }
            record.pid = Some(identity.pid);
            record.process_started = Some(identity.started);
            record.started_at.get_or_insert(clock::stamp(clock::now()));
        })?;
        Ok(())
    }

    fn finish(&mut self, state: &RunState, ended: &SessionResult) -> Result<Verdict, RunError> {
        // First: the observer prints the cost.
        let ended = &self.with_cost(state, ended);
        // SIGKILL to the client leaves its running Bash tool working (2.1.329): into the next session's files. What a session leaves
        // working could change protected files between the comparisons.
        if matches!(ended.ending, Ending::Crashed(_)) || !state.options.protect.is_empty() {
            lifecycle::end_left_behind(state);
        }
        // A hook may have ended it, on its way or at once: it was ended all the same.
        let cancelled = SessionResult { ending: Ending::Cancelled, ..ended.clone() };
        let was_cancelled =
            matches!(ended.ending, Ending::HookStopped | Ending::Crashed(_)) && self.context.is_cancelled();
        let ended = if was_cancelled { &cancelled } else { ended };
        let open = facts::todo(self.context.project, state).map(|todo| todo.open());
        let item = state.iteration_record.item.as_deref().zip(open.as_ref());
        let item = item.map(|(item, open)| (item, open.iter().any(|text| text == item)));
        self.watcher.tell(&Progress::Ended { iteration: state.iteration, ended, item });
        let finished = self.judge(ended)?;
        let gone = || StartError::NoRun(self.context.project.root().display().to_string());
        let Finished { verdict, verify, review, taken_back, not_run } = finished.ok_or_else(gone)?;
        self.note_left_behind(state);
        if !verify.is_empty() {
            self.watcher.tell(&Progress::Verified { outcomes: &verify });
        }
        for check in &not_run {
            self.watcher.tell(&Progress::Note(not_run_words(check)));
        }
        if let Some(reviewed) = &review {
            self.watcher.tell(&Progress::Reviewed { reviewed });
        }
        if let Some(taken) = &taken_back {
            self.watcher.tell(&Progress::TakenBack { taken });
        }
        let now = self.context.load_state()?;
        self.watcher.tell(&Progress::Judged { state: now.as_ref().unwrap_or(state), verdict: &verdict });
        Ok(verdict)
    }

    /// Completes the cost of a session that ended without a report.
    fn with_cost(&self, state: &RunState, ended: &SessionResult) -> SessionResult {
        let session_id = state.session_id.clone().unwrap_or_default();
        let record = sessions::load(self.context.project, &session_id);
        complete_cost(self.context.project, &session_id, &record, ended.clone())
    }

    fn judge(&mut self, ended: &SessionResult) -> Result<Option<Finished>, StoreError> {
        let (context, interrupts) = (self.context, self.watcher.interrupts().clone());
        let give_up = || interrupts.has_asked(Interrupt::Twice) || context.is_cancelled();
        let mut reviewer = Reviewer {
            client: &self.options.client,
            client_arguments: &self.options.client_arguments,
            model: self.model.as_deref(),
            version: &self.version,
            era: self.era,
            linger: Duration::from_secs(self.context.settings.end_wait_seconds),
            watchdog: &self.watchdog,
            observer: &mut *self.watcher,
        };
        finish::finish_unless(&context, ended, &give_up, Some(&mut reviewer))
    }

    /// What a session has started and left at work: a server, or a long job whose result the next one wants. It is not
    /// ended, but the user should know of it.
    fn note_left_behind(&self, state: &RunState) {
        let Some([run, session]) = lifecycle::settings_of(state) else { return };
        let name = |left: process::Identity| {
            let command = plimsoll_domain::text::clip(
                &plimsoll_domain::text::one_line(&process::command_of(left.pid)),
                80,
            );
            format!("{} {command}", left.pid)
        };
        let left: Vec<String> = process::left_behind([&run, &session]).into_iter().map(name).collect();
        if !left.is_empty() {
            let _ = self.context.note(state, JournalEvent::LeftBehind { processes: left });
        }
    }

    fn over(&mut self, code: u8) -> u8 {
        let state = self.context.load_state().ok().flatten();
        self.watcher.tell(&Progress::Over { state: state.as_ref(), code });
        code
    }

    /// Where a session's output is: a limit may bring several sessions under one number.
    fn output(&self, state: &RunState, kind: &str) -> PathBuf {
        session_output(self.context.project, state, kind)
    }
}

/// Returns the path of a session's output.
fn session_output(project: &Project, state: &RunState, kind: &str) -> PathBuf {
    let session: String = state.session_id.as_deref().unwrap_or("none").chars().take(8).collect();
    project.run_folder(&state.run_id).join(format!("iteration-{:04}-{session}.{kind}", state.iteration))
}

/// The client itself stops a session that would spend more than is left; clients that are too old for it
/// are stopped between sessions.
fn budget_left(
    context: &RunContext<'_>,
    state: &RunState,
    era: HookSupport,
    arguments: &[String],
) -> Vec<String> {
    const FLAG: &str = "--max-budget-usd";
    let is_set = arguments.iter().any(|argument| argument.starts_with(FLAG));
    let of_run = state.options.limits.max_cost_usd.map(|most| most - state.spent.cost_usd);
    let left = of_run.into_iter().chain(day::left(context.project, state)).reduce(f64::min);
    match left.map(|left| left.max(0.01)) {
        Some(left) if !is_set && era == HookSupport::Modern => vec![FLAG.to_owned(), format!("{left:.2}")],
        _ => Vec::new(),
    }
}

/// A run that was paused until a known moment continues waiting for it when it is resumed; for its share of a
/// quota only as far as the share that it has now says so.
fn pause_that_lasts(run: &RunState) -> Option<Verdict> {
    let Some(Verdict::Pause { kind, until: Some(until), .. }) = run.lifecycle.last_verdict() else {
        return None;
    };
    let now = clock::now();
    if *kind == PauseKind::Quota {
        let bound = plimsoll_policy::bounds::reached(run, &clock::stamp(now));
        return bound.filter(|bound| matches!(bound, Verdict::Pause { .. }));
    }
    let lasts = kind.passes() && clock::parse(until.as_str()).is_some_and(|until| until > now);
    if lasts { run.lifecycle.last_verdict().cloned() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::limits::{Limits, Quota, QuotaWindow};
    use plimsoll_domain::state::{Lifecycle, RunOptions, Spent};

    fn waiting(kind: PauseKind, until: plimsoll_domain::Timestamp) -> Lifecycle {
        Lifecycle::after(&Verdict::Pause { kind, until: Some(until), reason: String::new() })
    }

    #[test]
    fn a_pause_for_the_quota_lasts_as_long_as_the_share_says_so_and_a_limit_until_its_reset() {
        let reset = clock::stamp(clock::now() + chrono::Duration::hours(2));
        let paused = |kind, share| RunState {
            options: RunOptions {
                max_iterations: 50,
                limits: Limits { stop_at_limit_percent: share, ..Limits::default() },
                ..RunOptions::default()
            },
            spent: Spent {
                quota: Quota {
                    five_hour: Some(QuotaWindow { percent: 85.0, resets_at: Some(reset.clone()) }),
                    seven_day: None,
                },
                ..Spent::default()
            },
            lifecycle: waiting(kind, reset.clone()),
            ..RunState::default()
        };
        for (kind, share, lasts) in [
            (PauseKind::Quota, Some(80), true),
            (PauseKind::Quota, Some(100), false),
            (PauseKind::Quota, None, false),
            (PauseKind::Limit, Some(100), true),
            (PauseKind::Interrupted, Some(80), false),
        ] {
            assert_eq!(pause_that_lasts(&paused(kind, share)).is_some(), lasts, "{kind:?} {share:?}");
        }
    }
}
