//! An item's own run: `plimsoll run` in the item's worktree, a process of its own that outlives this one.

use crate::hook_invocation::RUN_VARIABLE;
use crate::run::labels;
use crate::run::review::MERGE_REPOSITORY_VARIABLE;
use crate::workers::ground::ITEM_PLAN;
use crate::workers::tree::WORKER_VARIABLE;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::state::VerifyEach;
use plimsoll_domain::text::{clip, clip_start, one_line};
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::workers::{DATABASE_VARIABLE, Used};
use plimsoll_domain::{Exit, RunId, RunState, Status, Timestamp, Verdict};
use plimsoll_launcher::client::{self, Client, Launch, NotStarted};
use plimsoll_launcher::git;
use plimsoll_store::{Durability, Project, StoreError, clock, disk, environment, ledger, state_file};
use std::path::{Path, PathBuf};

/// How an item's run came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The item is done, as far as its own run can say.
    Done,
    /// It waits for the user's answer.
    Question(String),
    /// A limit or an overload; it goes on after this moment, if that is known.
    Limit { until: Option<Timestamp>, reason: String, pauses: u32 },
    /// Its share of the money or the tokens is used up.
    Budget,
    /// The deadline has come.
    OutOfTime,
    /// All sessions of the run are used.
    OutOfSessions,
    /// No session can succeed.
    Fatal(String),
    /// It was asked to end.
    Interrupted,
    /// It could not do its item.
    Failed(String),
}

/// What an item's run is started with.
#[derive(Debug)]
pub(super) struct Start<'a> {
    /// The parallel run.
    pub(super) run: &'a RunState,
    pub(super) client: &'a Path,
    pub(super) project: &'a Project,
    /// The git folder of the repository in which results are merged.
    pub(super) merge_repository: &'a Path,
    pub(super) worker: usize,
    pub(super) item: &'a str,
    /// The item's number in the plan, from 1, and which attempt it is.
    pub(super) number: usize,
    pub(super) attempt: u64,
    /// True if the spans of the parallel run are exported.
    pub(super) has_spans: bool,
    /// Verify commands that must pass.
    pub(super) verify: &'a [String],
    /// What it is told of the whole plan.
    pub(super) brief: &'a ItemBrief,
    /// The file in which it is told that.
    pub(super) brief_file: &'a Path,
    /// The task, if the worktree has none of its own.
    pub(super) task: &'a Path,
    pub(super) sessions: u32,
    pub(super) cost_usd: Option<f64>,
    pub(super) tokens: Option<u64>,
    /// Where its events and its complaints go.
    pub(super) output: &'a Path,
    pub(super) errors: &'a Path,
}

/// Why it could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChildError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    NotStarted(#[from] NotStarted),
    #[error("there is no folder with plimsoll itself")]
    NoProgram,
}

impl Start<'_> {
    /// Starts it: it continues a run that is there and not over for good, or begins one. Answers with which of both, too.
    pub(super) fn start(&self) -> Result<(Client, bool), ChildError> {
        let program = environment::own_directory().ok_or(ChildError::NoProgram)?.join("plimsoll");
        let brief = serde_json::to_vec(self.brief).unwrap_or_default();
        disk::replace(self.brief_file, &brief, Durability::Lazy)?;
        let known = state_file::load(self.project, None)?;
        let goes_on = known.as_ref().is_some_and(|known| goes_on(known.lifecycle.status()));
        let arguments = if goes_on { self.resume() } else { self.begin()? };
        let client = client::start_child_run(Launch {
            program: &program,
            arguments: &arguments,
            folder: self.project.root(),
            environment: &self.environment(),
            // What would lead it into another run, or to the board.
            without: &[
                RUN_VARIABLE,
                ledger::RECORD_VARIABLE,
                "RALPH_STATE_FILE",
                "CLAUDE_PROJECT_DIR",
                DATABASE_VARIABLE,
            ],
            stdin: disk::open(self.task)?,
            stdout: disk::open_to_append(self.output)?,
            stderr: disk::open_to_append(self.errors)?,
        })?;
        Ok((client, goes_on))
    }

    fn environment(&self) -> Vec<(String, String)> {
        let merge = self.merge_repository.display().to_string();
        let own = [
            (WORKER_VARIABLE.to_owned(), self.worker.to_string()),
            (MERGE_REPOSITORY_VARIABLE.to_owned(), merge),
        ];
        own.into_iter()
            .chain(labels::of_worker(self.run, self.number, self.attempt, self.has_spans))
            .collect()
    }

    fn begin(&self) -> Result<Vec<String>, ChildError> {
        let options = &self.run.options;
        let mut arguments = words(&["run", "--json", "--no-wait", "--todo", ITEM_PLAN]);
        arguments.push(format!("--name={}", clip(&one_line(self.item), 60)));
        arguments.push(format!("--promise={}", options.completion_promise));
        // A PROMPT.md that git follows is the task. Any other is left from a run before, and a session may have written it.
        if !git::is_tracked(self.project.root(), "PROMPT.md") {
            disk::remove(&self.project.prompt())?;
            arguments.push(format!("--objective-file={}", self.task.display()));
        }
        if options.verify_each == VerifyEach::Promise {
            arguments.push("--verify-each=promise".to_owned());
        }
        let flags = [
            (!options.plan_checks.is_empty(), "--plan-verify"),
            (options.strict_promise, "--strict-promise"),
            (options.commit_hooks, "--commit-hooks"),
        ];
        arguments.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
        let reviews = [
            (options.review_every > 0).then(|| format!("--review={}", options.review_every)),
            options.review_model.as_ref().map(|name| format!("--review-model={name}")),
        ];
        arguments.extend(reviews.into_iter().flatten());
        Ok(self.with_limits(arguments))
    }

    fn resume(&self) -> Vec<String> {
        self.with_limits(words(&["run", "--resume", "--json", "--no-wait"]))
    }

    fn with_limits(&self, mut arguments: Vec<String>) -> Vec<String> {
        let options = &self.run.options;
        arguments.extend(self.verify.iter().map(|command| format!("--verify={command}")));
        arguments.extend(options.verify_sandbox.then(|| "--verify-sandbox".to_owned()));
        let numbers = [
            Some(format!("--max-iterations={}", self.sessions.max(1))),
            self.cost_usd.map(|most| format!("--max-cost={most:.4}")),
            options.limits.max_cost_per_day_usd.map(|most| format!("--max-cost-per-day={most}")),
            self.tokens.map(|most| format!("--max-tokens={most}")),
            options.limits.deadline.as_ref().map(|deadline| format!("--deadline={deadline}")),
            options.limits.stop_at_limit_percent.map(|percent| format!("--stop-at-limit={percent}")),
            options.idle_timeout_seconds.map(|seconds| format!("--idle-timeout={seconds}s")),
            options.tool_timeout_seconds.map(|seconds| format!("--tool-timeout={seconds}s")),
            Some(format!("--client={}", self.client.display())),
            Some(format!("--item-brief={}", self.brief_file.display())),
        ];
        arguments.extend(numbers.into_iter().flatten());
        arguments.push("--".to_owned());
        arguments.extend(options.client_arguments.iter().cloned());
        arguments
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// True for a run that is continued, and not begun anew. Where one was stuck, a new attempt may not be.
fn goes_on(status: Status) -> bool {
    !status.is_final() && status != Status::CircuitBreaker
}

/// True if an item's run goes on with the plan that it has: with its ticks and its notes. One that waits for an answer is given that.
pub(super) fn keeps_plan(project: &Project) -> bool {
    let state = state_file::load(project, None).ok().flatten();
    let status = state.map(|state| state.lifecycle.status());
    status.is_some_and(|status| goes_on(status) && status != Status::Blocked)
}

/// True if the run that is in a worktree goes on with the next attempt.
pub(super) fn goes_on_there(project: &Project) -> bool {
    let state = state_file::load(project, None).ok().flatten();
    state.is_some_and(|state| goes_on(state.lifecycle.status()))
}

/// The state of an item's present run; none if there is nothing but that of an earlier attempt.
pub(super) fn present(project: &Project, earlier_run: &str) -> Option<RunState> {
    let state = state_file::load(project, None).ok().flatten();
    state.filter(|state| earlier_run.is_empty() || state.run_id != earlier_run)
}

/// The run in a worktree that is over for good: the next attempt begins another.
pub(super) fn earlier_run(project: &Project) -> Result<String, StoreError> {
    let state = state_file::load(project, None)?.filter(|state| !goes_on(state.lifecycle.status()));
    Ok(state.map(|state| state.run_id.to_string()).unwrap_or_default())
}

/// The id of an item's present run.
pub(super) fn run_id(project: &Project, earlier_run: &str) -> Option<RunId> {
    present(project, earlier_run).map(|state| state.run_id)
}

/// What the sessions of an item's run have used that have ended.
pub(super) fn used(project: &Project, earlier_run: &str) -> Used {
    used_by(&present(project, earlier_run).unwrap_or_default())
}

/// What the sessions of a run have used that have ended; their number includes the one that is running.
pub(super) fn used_by(state: &RunState) -> Used {
    Used {
        cost_usd: state.spent.cost_usd,
        cost_basis: state.spent.cost_basis(),
        tokens: state.spent.tokens,
        sessions: state.iteration,
    }
}

/// True if an item's run has come to an end that it keeps.
pub(super) fn is_over(project: &Project, earlier_run: &str) -> bool {
    present(project, earlier_run).is_some_and(|state| state.lifecycle.is_over())
}

/// How an item's run came out: by its ledger, which no session writes.
pub(super) fn outcome(project: &Project, earlier_run: &str, exit: &Exit, errors: &Path) -> Outcome {
    let Some(state) = present(project, earlier_run) else {
        return Outcome::Failed(last_words(errors, exit));
    };
    if exit.code == Some(ExitStatus::Interrupted.code().into()) {
        return Outcome::Interrupted;
    }
    let reason = match state.lifecycle.last_verdict() {
        Some(Verdict::Stop { reason, .. } | Verdict::Pause { reason, .. }) => one_line(reason),
        Some(Verdict::Continue { .. }) | None => String::new(),
    };
    match state.lifecycle.status() {
        // An agent can put the state of an earlier run of its worktree in the place of this one's.
        Status::Completed if exit.code.is_none_or(|code| code == 0) => Outcome::Done,
        Status::Completed => Outcome::Failed(last_words(errors, exit)),
        Status::Blocked => match state.items.parked.first() {
            Some(asked) => Outcome::Question(asked.question.clone()),
            None => Outcome::Failed(format!("it is blocked: {reason}")),
        },
        Status::Paused => paused(&state, reason),
        Status::MaxIterations => Outcome::OutOfSessions,
        Status::Budget => Outcome::Budget,
        Status::Deadline => Outcome::OutOfTime,
        Status::FatalError => Outcome::Fatal(reason),
        Status::Cancelled => Outcome::Failed("its run was cancelled".to_owned()),
        Status::Running => Outcome::Failed(last_words(errors, exit)),
        // Stuck, or ended in another way that a new attempt need not share.
        _ => Outcome::Failed(reason),
    }
}

fn paused(state: &RunState, reason: String) -> Outcome {
    match state.lifecycle.last_verdict() {
        Some(Verdict::Pause { kind, until, .. }) => match kind {
            PauseKind::Limit | PauseKind::Overload | PauseKind::Quota => {
                Outcome::Limit { until: until.clone(), reason, pauses: state.lifecycle.pauses_in_a_row() }
            }
            PauseKind::Interrupted => Outcome::Interrupted,
            PauseKind::Thrash | PauseKind::Fault => Outcome::Failed(reason),
        },
        // Ctrl-C between two sessions.
        Some(Verdict::Stop { .. } | Verdict::Continue { .. }) | None => Outcome::Interrupted,
    }
}

fn last_words(errors: &Path, exit: &Exit) -> String {
    let said = disk::read_end(errors, 4_000).ok().flatten().unwrap_or_default();
    let said = one_line(&clip_start(String::from_utf8_lossy(&said).trim(), 400));
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("its run ended with {code}"),
        (None, Some(signal)) => format!("its run was ended by signal {signal}"),
        (None, None) => "its run has died".to_owned(),
    };
    if said.is_empty() { how } else { format!("{how}: {said}") }
}

/// When a pause ends, by the board's clock.
pub(super) fn pause_end(until: Option<&Timestamp>, pauses: u32) -> u64 {
    let chance = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    let now = clock::now();
    let milliseconds = match until.and_then(clock::moment) {
        Some(reset) => plimsoll_policy::pause::until_reset_ms((reset - now).num_seconds(), chance),
        None => plimsoll_policy::pause::backoff_ms(pauses.max(1), chance),
    };
    u64::try_from(now.timestamp_millis()).unwrap_or_default().saturating_add(milliseconds)
}

/// The files of an item's run in the folder of the whole run.
#[derive(Debug)]
pub(super) struct Files {
    /// Where its events go.
    pub(super) output: PathBuf,
    /// Where its complaints go.
    pub(super) errors: PathBuf,
    /// What it is told of the whole plan.
    pub(super) brief: PathBuf,
}

/// Returns the files of an item's run.
pub(super) fn files(main: &Project, run: &RunState, item: usize, epoch: u64) -> Files {
    let folder = main.run_folder(&run.run_id);
    let file = |ending: &str| folder.join(format!("worker-{:03}-{epoch}.{ending}", item + 1));
    Files { output: file("jsonl"), errors: file("err"), brief: file("brief.json") }
}
