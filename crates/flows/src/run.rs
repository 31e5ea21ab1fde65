//! `plimsoll run`: one headless session after another, until the gate says stop. It survives its own death:
//! every step is in the state before it is taken.

mod follow;
mod watch;

pub use watch::{Progress, Watcher};

use crate::call::RUN_VARIABLE;
use crate::install::command_for;
use crate::iteration::{self, Ended};
use crate::keep;
use crate::start::{self, StartError};
use follow::Follower;
use launcher::client::{self, Client, Launch};
use launcher::process;
use protocol::settings::{self, Era};
use session::journal::Entry;
use session::state::Phase;
use session::status::Status;
use session::{Ending, RunState, Settings, Verdict};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::{Durability, Project, StoreError, clock, disk, environment, journal, lock, state_file};

/// What `plimsoll run` was asked beside the task.
#[derive(Debug, Clone)]
pub struct Options {
    /// The client.
    pub client: PathBuf,
    /// What the user passes on to it.
    pub client_arguments: Vec<String>,
    /// False with `--no-wait`: a pause ends the program.
    pub wait: bool,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Planning.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Another `plimsoll run` works here.
    #[error("another `plimsoll run` is at work in this project{0}")]
    Busy(String),
    /// The hook programs are missing.
    #[error(
        "the hook program {0} is neither beside plimsoll nor on the PATH: install all of Plimsoll (scripts/build.sh says where the programs lie)"
    )]
    NoHooks(String),
    /// The client does not start.
    #[error("{0}")]
    Client(String),
    /// An argument for the client that we set ourselves.
    #[error("`{0}` is set by plimsoll run itself: leave it out after `--`")]
    Argument(String),
}

/// What Ctrl-C leaves behind.
const INTERRUPTED: u8 = 130;
/// First pause after a limit without a reset time; doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(3);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Arguments that would take the session out of our hands.
const OURS: [&str; 10] = [
    "-p",
    "--print",
    "--output-format",
    "--session-id",
    "--resume",
    "-r",
    "--continue",
    "-c",
    "--input-format",
    "--fork-session",
];

/// A killed `run` takes a moment to let go of its lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// What must be so before a run is created or changed: a start that fails leaves no run behind.
#[derive(Debug)]
pub struct Ready {
    hooks: String,
    _only: lock::Lock,
}

/// Looks at the arguments, the client and the hook programs, and takes the lock of the one `plimsoll run`.
pub fn prepare(project: &Project, options: &Options) -> Result<Ready, RunError> {
    if let Some(argument) = options
        .client_arguments
        .iter()
        .find(|argument| OURS.contains(&argument.split('=').next().unwrap_or_default()))
    {
        return Err(RunError::Argument(argument.clone()));
    }
    let hooks = hook_settings(&options.client)?;
    let _only = lock::acquire(&project.run_lock(), LOCK_PATIENCE).map_err(|error| match error {
        StoreError::Busy { .. } => RunError::Busy(named(project)),
        error => RunError::Store(error),
    })?;
    Ok(Ready { hooks, _only })
}

/// The run that another `plimsoll run` works for, as far as the state tells.
fn named(project: &Project) -> String {
    let state = state_file::load(project, None).ok().flatten();
    state.map_or(String::new(), |state| {
        format!(": the run \"{}\" ({}), iteration {}", state.task_name, state.run_id, state.iteration)
    })
}

/// Runs a run to its end (or its pause); answers with the exit code.
pub fn run(
    project: &Project,
    settings: &Settings,
    options: &Options,
    ready: Ready,
    run: &RunState,
    watcher: &mut dyn Watcher,
) -> Result<u8, RunError> {
    let Ready { hooks, _only } = ready;
    for folder in [project.root(), &project.root().join(".claude"), &project.handoffs(), &project.copies()] {
        disk::sweep_drafts(folder, process::has_pid);
    }
    let mut runner =
        Runner { project, settings, options, run_id: run.run_id.clone(), hooks, watcher, pause: FIRST_PAUSE };
    runner.watcher.tell(&Progress::Run { state: run });
    let mut recovered = runner.recover(run)?;
    loop {
        let verdict = match recovered.take() {
            Some(verdict) => verdict,
            None => runner.iterate()?,
        };
        if let Some(code) = runner.obey(&verdict)? {
            return Ok(code);
        }
    }
}

/// Our hooks as the client's version knows them. They are passed along always: identical entries of the
/// project's settings run once, and an agent's `git clean` cannot take these away.
fn hook_settings(client: &Path) -> Result<String, RunError> {
    let answer = launcher::client_version(client).ok_or_else(|| {
        RunError::Client(format!("{} does not answer `--version`: is it Claude Code?", client.display()))
    })?;
    let version = Some(answer.as_str()).filter(|answer| answer.contains("Claude Code")).ok_or_else(|| {
        let answer = session::text::clip(&session::text::one_line(&answer), 80);
        RunError::Client(format!(
            "{} answers `--version` with \"{answer}\": is it Claude Code?",
            client.display()
        ))
    })?;
    let era = Era::of_client(version);
    let missing = settings::programs_of(era).into_iter().find(|program| {
        let beside = environment::own_directory().map(|folder| folder.join(program));
        !beside.is_some_and(|path| disk::exists(&path)) && environment::find_program(program).is_none()
    });
    match missing {
        Some(program) => Err(RunError::NoHooks(program)),
        None => Ok(settings::hooks_only(era, &command_for).to_string()),
    }
}

struct Runner<'a> {
    project: &'a Project,
    settings: &'a Settings,
    options: &'a Options,
    run_id: String,
    hooks: String,
    watcher: &'a mut dyn Watcher,
    pause: Duration,
}

impl Runner<'_> {
    /// What an earlier `run` left behind: a client that still works is followed to its end, one that has ended
    /// is judged; nothing is started twice.
    fn recover(&mut self, run: &RunState) -> Result<Option<Verdict>, RunError> {
        let record = &run.iteration_record;
        if record.phase == Phase::Judged {
            return Ok(None);
        }
        if let Some(orphan) = start::orphan(run) {
            self.note(run, Entry::new("adopted").fact("pid", orphan.pid))?;
            self.watcher.tell(&Progress::Note(format!(
                "adopted the client of iteration {} (pid {})",
                run.iteration, orphan.pid
            )));
            self.record_process(orphan)?;
            return self.follow(run, Client::Adopted(orphan)).map(Some);
        }
        let mut follower = Follower::new(self.output(run, "jsonl"));
        follower.read_on();
        if record.phase == Phase::Planned && !record.hooks_seen && !follower.has_spoken() {
            // Planned and never started: it is planned again, under its own number.
            return Ok(None);
        }
        let ended = follower.ended(session::Exit::default());
        self.finish(run, &ended).map(Some)
    }

    fn iterate(&mut self) -> Result<Verdict, RunError> {
        let session_id = uuid::Uuid::new_v4().to_string();
        let state = start::plan(self.project, &self.run_id, Some(session_id))?;
        if state.status.is_over() {
            return Ok(Verdict::Stop { status: state.status, reason: String::new() });
        }
        self.watcher.tell(&Progress::Iteration { state: &state });
        let client = self.spawn(&state)?;
        self.follow(&state, client)
    }

    fn spawn(&mut self, state: &RunState) -> Result<Client, RunError> {
        let prompt = self.output(state, "prompt.md");
        disk::replace(&prompt, &disk::read(&self.project.prompt())?.unwrap_or_default(), Durability::Lazy)?;
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
        let arguments: Vec<String> =
            ours.map(str::to_owned).into_iter().chain(self.options.client_arguments.clone()).collect();
        let client = client::start(Launch {
            program: &self.options.client,
            arguments: &arguments,
            folder: self.project.root(),
            environment: &[(RUN_VARIABLE.to_owned(), self.run_id.clone())],
            stdin: disk::open(&prompt)?,
            stdout: disk::open_to_append(&self.output(state, "jsonl"))?,
            stderr: disk::open_to_append(&self.output(state, "err"))?,
        })
        .map_err(RunError::Client)?;
        if let Some(identity) = client.identity() {
            self.record_process(identity)?;
            self.note(state, Entry::new("spawned").fact("pid", identity.pid))?;
        }
        Ok(client)
    }

    fn record_process(&self, identity: process::Identity) -> Result<(), StoreError> {
        state_file::update(self.project, Some(&self.run_id), Durability::Durable, |state| {
            let record = &mut state.iteration_record;
            if matches!(record.phase, Phase::Planned | Phase::Spawned) {
                record.phase = Phase::Spawned;
            }
            record.pid = Some(identity.pid);
            record.process_started = Some(identity.started);
            record.started_at.get_or_insert(clock::stamp(clock::now()));
        })
        .map(|_| ())
    }

    /// Follows the client's output until it has ended, or has to be.
    fn follow(&mut self, state: &RunState, mut client: Client) -> Result<Verdict, RunError> {
        let output = self.output(state, "jsonl");
        let mut follower = match &client {
            Client::Adopted(orphan) => Follower::of_adopted(output, &process::output_of(orphan.pid)),
            Client::Started(..) => Follower::new(output),
        };
        let ended = loop {
            let exit = client.ended();
            for progress in follower.read_on() {
                self.watcher.tell(&progress);
            }
            if let Some(exit) = exit {
                break self.checked_end(state, &follower, exit)?;
            }
            if let Some(ended) = self.intervene(state, &mut follower, &mut client)? {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        for (model, tokens) in follower.windows() {
            let _ = store::windows::learn(self.project, model, tokens);
        }
        if let Some(words) = follower.denial() {
            self.watcher.tell(&Progress::Note(words));
        }
        self.finish(state, &ended)
    }

    /// Reasons to end the client that do not come from itself.
    fn intervene(
        &mut self,
        state: &RunState,
        follower: &mut Follower,
        client: &mut Client,
    ) -> Result<Option<Ended>, RunError> {
        if self.watcher.interrupts() >= 2 {
            client.end(Duration::from_secs(5));
            return Ok(Some(Ended {
                ending: Ending::Interrupted,
                ..follower.ended(session::Exit::default())
            }));
        }
        if !follower.time_to_look() {
            return Ok(None);
        }
        let now = state_file::load(self.project, Some(&self.run_id))?;
        let now = now.as_ref().unwrap_or(state);
        // What keeps copies must not end the night.
        let _ = keep::todo(self.project, now);
        if now.status == Status::Cancelled {
            // Its next hook ends it; a client that waits for something else is asked to.
            client.end(Duration::from_secs(10));
            return Ok(Some(follower.ended(session::Exit::default())));
        }
        if follower.is_unguarded(now.iteration_record.hooks_seen) {
            client.end(Duration::from_secs(2));
            self.note(state, Entry::new("unguarded").fact("client_version", follower.version()))?;
            return Ok(Some(Ended {
                ending: Ending::Fatal(unguarded_words(&follower.version())),
                ..Ended::default()
            }));
        }
        let record =
            state.session_id.as_ref().map(|id| store::sessions::load(self.project, id)).unwrap_or_default();
        self.watcher.tell(&Progress::Load { state: now, record: &record });
        let limit = if record.ended_by_us.is_some() || follower.was_stopped_by_hook() {
            self.settings.end_wait_seconds
        } else {
            self.settings.background_wait_seconds
        };
        if follower.lingers(Duration::from_secs(limit)) {
            self.note(
                state,
                Entry::new("client_ended").fact("reason", format!("alive {limit} s after its result")),
            )?;
            client.end(Duration::from_secs(5));
            follower.read_on();
            return Ok(Some(follower.ended(session::Exit::default())));
        }
        Ok(None)
    }

    /// A client that came and went before we looked was guarded, or the night ends here.
    fn checked_end(
        &self,
        state: &RunState,
        follower: &Follower,
        exit: session::Exit,
    ) -> Result<Ended, RunError> {
        let now = state_file::load(self.project, Some(&self.run_id))?;
        let hooks_seen = now.as_ref().unwrap_or(state).iteration_record.hooks_seen;
        if follower.has_begun() && !hooks_seen {
            self.note(state, Entry::new("unguarded").fact("client_version", follower.version()))?;
            return Ok(Ended {
                ending: Ending::Fatal(unguarded_words(&follower.version())),
                ..follower.ended(exit)
            });
        }
        if let Some(code) = exit.code.filter(|_| !follower.has_spoken() && !hooks_seen) {
            return Ok(Ended { ending: Ending::Fatal(self.never_began(state, code)), ..Ended::default() });
        }
        Ok(follower.ended(exit))
    }

    /// The next session would fare no better: a wrong option, a broken installation.
    fn never_began(&self, state: &RunState, code: i32) -> String {
        let complaint = disk::read_text(&self.output(state, "err")).ok().flatten().unwrap_or_default();
        let complaint = session::text::one_line(&session::text::clip_start(complaint.trim(), 200));
        let said =
            if complaint.is_empty() { "said nothing".to_owned() } else { format!("said: {complaint}") };
        format!("the client ended with exit code {code} before its session began, and {said}")
    }

    fn finish(&mut self, state: &RunState, ended: &Ended) -> Result<Verdict, RunError> {
        self.watcher.tell(&Progress::Ended { iteration: state.iteration, ended });
        if matches!(ended.ending, Ending::Crashed(_) | Ending::Interrupted) {
            start::end_left_behind(state);
        }
        let verdict = iteration::finish_unless(self.project, self.settings, &self.run_id, ended, &|| {
            self.watcher.interrupts() >= 2 || self.is_cancelled()
        })?;
        let gone = || StartError::NoRun(self.project.root().display().to_string());
        let verdict = verdict.ok_or_else(gone)?;
        let now = state_file::load(self.project, Some(&self.run_id))?;
        self.watcher.tell(&Progress::Judged { state: now.as_ref().unwrap_or(state), verdict: &verdict });
        Ok(verdict)
    }

    fn is_cancelled(&self) -> bool {
        let state = state_file::load(self.project, Some(&self.run_id)).ok().flatten();
        state.is_some_and(|state| state.status == Status::Cancelled)
    }

    /// What the verdict means for us: an exit code, or another round.
    fn obey(&mut self, verdict: &Verdict) -> Result<Option<u8>, RunError> {
        let interrupted = self.watcher.interrupts() > 0;
        match verdict {
            Verdict::Stop { status, .. } => Ok(Some(status.exit_code())),
            Verdict::Continue { .. } if interrupted => {
                let status =
                    state_file::update(self.project, Some(&self.run_id), Durability::Durable, |state| {
                        // It may have been cancelled since: then it stays so.
                        if !state.status.is_over() {
                            state.status = Status::Paused;
                        }
                        state.status
                    })?;
                let over = status.filter(|status| status.is_over());
                Ok(Some(over.map_or(INTERRUPTED, Status::exit_code)))
            }
            Verdict::Continue { .. } => {
                self.pause = FIRST_PAUSE;
                Ok(None)
            }
            Verdict::Pause { .. } if interrupted => Ok(Some(INTERRUPTED)),
            Verdict::Pause { reason, .. } if !self.options.wait || reason == "interrupted" => {
                Ok(Some(Status::Paused.exit_code()))
            }
            Verdict::Pause { reason, .. } => self.wait(reason),
        }
    }

    fn wait(&mut self, reason: &str) -> Result<Option<u8>, RunError> {
        self.watcher.tell(&Progress::Pause { seconds: self.pause.as_secs(), reason });
        let started = Instant::now();
        while started.elapsed() < self.pause {
            if self.watcher.interrupts() > 0 {
                return Ok(Some(INTERRUPTED));
            }
            if self.is_cancelled() {
                return Ok(Some(Status::Cancelled.exit_code()));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(None)
    }

    /// Where a session's output lies: a limit may bring several sessions under one number.
    fn output(&self, state: &RunState, kind: &str) -> PathBuf {
        let session: String = state.session_id.as_deref().unwrap_or("none").chars().take(8).collect();
        self.project
            .run_folder(&self.run_id)
            .join(format!("iteration-{:04}-{session}.{kind}", state.iteration))
    }

    fn note(&self, state: &RunState, entry: Entry) -> Result<(), StoreError> {
        let entry = entry.run(Some((&self.run_id, state.iteration))).session(state.session_id.as_deref());
        journal::note(self.project, entry)
    }
}

fn unguarded_words(version: &str) -> String {
    format!(
        "our hooks did not run in this session (client {version}), so nothing would guard it: look for `disableAllHooks` or `--bare`, for hook programs that cannot be started, or for a client too old for its settings"
    )
}
