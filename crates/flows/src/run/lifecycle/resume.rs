//! Resumes a run: finds it, applies the options of the command line, and opens it again unless the reason for its end still
//! holds.

use super::create::refuse_review;
use super::newest::{copy, nameless, newest_run_id};
use super::{StartError, orphan, records};
use crate::run::{branch, finish, protect};
use crate::run_context::RunContext;
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::journal::{JournalEvent, RunBegun};
use plimsoll_domain::limits::Limits;
use plimsoll_domain::state::{Commit, Phase, RunOptions, VerifyEach};
use plimsoll_domain::status::Status;
use plimsoll_domain::text::one_line;
use plimsoll_domain::{RunState, Timestamp, Verdict};
use plimsoll_policy::foreign;
use plimsoll_store::{Project, StoreError, clock, config, ledger, state_file};

/// What `--resume` changes of a run; what is absent stays as it was.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The maximum number of sessions.
    pub max_iterations: Option<u32>,
    /// Commands that must pass.
    pub verify: Option<Vec<String>>,
    /// When they run.
    pub verify_each: Option<VerifyEach>,
    /// True to run the commands in a sandbox from now on.
    pub verify_sandbox: bool,
    /// Further files and folders that no session may change.
    pub protect: Vec<String>,
    /// A review comes after so many ticked items; 0 for none.
    pub review_every: Option<u32>,
    /// The model that reviews.
    pub review_model: Option<String>,
    /// The client, as the user named it.
    pub client: Option<String>,
    /// What the user passes on to the client.
    pub client_arguments: Vec<String>,
    /// What the run may use, each bound on its own.
    pub limits: Limits,
    /// What becomes of uncommitted work at a checkpoint.
    pub commit: Option<Commit>,
    /// True to let commits run the repository's own hooks and drivers.
    pub commit_hooks: bool,
    /// True to let sessions continue with the next item.
    pub pack: bool,
    /// True to give them the working memory.
    pub memory: bool,
    /// True when only the exact promise line completes the run.
    pub strict_promise: Option<bool>,
    /// A client that is silent for this long is ended.
    pub idle_timeout_seconds: Option<u64>,
    /// The same while a tool runs.
    pub tool_timeout_seconds: Option<u64>,
    /// A program with its arguments, which is started at the end and at pauses.
    pub notify: Option<Vec<String>>,
    /// True with `--reset-breaker`.
    pub reset_breaker: bool,
    /// So many workers at once, in a run that has some.
    pub workers: Option<usize>,
    /// What the run of a single item is told of the whole plan.
    pub item_brief: Option<ItemBrief>,
}

/// What `--resume` finds.
#[derive(Debug)]
pub enum Resumed {
    /// A run to continue with.
    Open(Box<RunState>),
    /// A run that is over.
    Over(Box<RunState>),
}

/// Looks for the run to resume. A run that stopped for a reason the user can repair is opened again once it is
/// repaired; one that was completed or cancelled is over for good.
pub fn resume(project: &Project, changes: &Changes) -> Result<Resumed, StartError> {
    let no_run = || StartError::NoRun(project.root().display().to_string());
    refuse_foreign(project)?;
    // A copy may be forged, too: a run that this user did not begin has no ledger.
    let run_id = newest_run_id(project)?.filter(|id| ledger::knows(project, id)).ok_or_else(no_run)?;
    records::refuse_unfit(project, &changes.client_arguments)?;
    if let Some(every) = changes.review_every {
        let known = state_file::load(project, Some(&run_id))?.unwrap_or_default();
        refuse_review(project, every, known.options.todo_file.as_deref())?;
    }
    // Read before the state is locked, and kept before the state names it.
    let known = state_file::load(project, Some(&run_id))?.ok_or_else(no_run)?;
    let is_over_for_good = known.lifecycle.status().is_final();
    // What a session that is not judged yet has changed is not recorded.
    let is_judged = known.iteration_record.phase == Phase::Judged;
    let changed_protected = match is_judged && !is_over_for_good {
        true => protect::changes_left(project, &known)?,
        false => known.outcomes.changed_protected.clone(),
    };
    let protect = protect::record_further_paths(project, &known, &changes.protect)?;
    let settings = config::load_of_run(project, &run_id);
    let context = RunContext { project, settings: &settings, run_id: &run_id };
    // Before the run is opened again: then its state no longer says how it ended.
    finish::complete(&context)?;
    let now = clock::stamp(clock::now());
    let updated = context.update(|state| {
        change(state, changes);
        state.options.protect.clone_from(&protect);
        // The user may have restored some.
        state.outcomes.changed_protected.clone_from(&changed_protected);
        reopen(state, &now);
        // The Ctrl-C was meant for a `plimsoll run` that is gone.
        state.iteration_record.stops_after = false;
        state.clone()
    })?;
    let state = updated.ok_or_else(no_run)?;
    if state.lifecycle.is_over() {
        return Ok(Resumed::Over(Box::new(state)));
    }
    let resumed = RunBegun {
        status: Some(state.lifecycle.status()),
        reset_breaker: Some(changes.reset_breaker),
        ..RunBegun::default()
    };
    // After the state, so that no line reports a resume that a kill has prevented.
    context.note_of_run(&state, JournalEvent::Resumed(resumed))?;
    Ok(Resumed::Open(Box::new(state)))
}

/// Before a run is resumed: its own branch is checked out again, or it is said why not. A client of the run that is still at
/// work is not disturbed: it stands where it stands.
pub fn return_to_branch(project: &Project) -> Result<Option<String>, StartError> {
    let Some(run_id) = newest_run_id(project)?.filter(|id| ledger::knows(project, id)) else {
        return Ok(None);
    };
    let Some(state) = state_file::load(project, Some(&run_id))? else { return Ok(None) };
    let is_over_for_good = state.lifecycle.status().is_final();
    if is_over_for_good || orphan(&state).is_some() {
        return Ok(None);
    }
    Ok(branch::return_to(project, &state)?)
}

/// A state that no run of ours wrote is never resumed: no promise could end it, and its author is unknown.
fn refuse_foreign(project: &Project) -> Result<(), StartError> {
    let document = match state_file::foreign(project)? {
        Some(document) => Some(document),
        None => nameless(project)?,
    };
    let Some(document) = document else { return Ok(()) };
    let (file, missing) = (project.relative(project.state()), foreign::missing_marks(&document));
    let ours = copy(project).filter(|run| !run.run_id.is_empty() && !run.lifecycle.is_over());
    let ours = ours
        .map_or(String::new(), |run| foreign::goes_on_from_copy(&file, &one_line(&run.options.task_name)));
    Err(StartError::Foreign(foreign::no_run_to_resume(&file, &missing) + &ours))
}

fn change(state: &mut RunState, changes: &Changes) {
    fn set<T: Clone>(place: &mut T, value: Option<&T>) {
        if let Some(value) = value {
            place.clone_from(value);
        }
    }
    set(&mut state.options.max_iterations, changes.max_iterations.as_ref());
    set(&mut state.options.verify, changes.verify.as_ref());
    set(&mut state.options.verify_each, changes.verify_each.as_ref());
    state.options.verify_sandbox |= changes.verify_sandbox;
    set(&mut state.options.review_every, changes.review_every.as_ref());
    state.options.review_model = changes.review_model.clone().or(state.options.review_model.take());
    set(&mut state.options.commit, changes.commit.as_ref());
    set(&mut state.options.notify, changes.notify.as_ref());
    // Not `set`: the caller has merged these with what the run remembers (`remembered`).
    state.options.client.clone_from(&changes.client);
    state.options.client_arguments.clone_from(&changes.client_arguments);
    state.options.commit_hooks |= changes.commit_hooks;
    state.options.pack |= changes.pack;
    state.options.memory |= changes.memory;
    set(&mut state.options.strict_promise, changes.strict_promise.as_ref());
    state.options.tool_timeout_seconds = changes.tool_timeout_seconds.or(state.options.tool_timeout_seconds);
    state.options.idle_timeout_seconds = changes.idle_timeout_seconds.or(state.options.idle_timeout_seconds);
    let (limits, new) = (&mut state.options.limits, &changes.limits);
    limits.max_cost_usd = new.max_cost_usd.or(limits.max_cost_usd);
    limits.max_cost_per_day_usd = new.max_cost_per_day_usd.or(limits.max_cost_per_day_usd);
    limits.max_tokens = new.max_tokens.or(limits.max_tokens);
    limits.deadline = new.deadline.clone().or(limits.deadline.take());
    limits.stop_at_limit_percent = new.stop_at_limit_percent.or(limits.stop_at_limit_percent);
    if let (Some(workers), Some(count)) = (&mut state.options.workers, changes.workers) {
        workers.count = count;
    }
    state.options.item_brief = changes.item_brief.clone().or(state.options.item_brief.take());
    if changes.reset_breaker {
        plimsoll_policy::breaker::reset(state);
    }
}

/// Opens a run again, unless what ended it still holds.
fn reopen(state: &mut RunState, now: &Timestamp) {
    let is_over_for_good = state.lifecycle.status().is_final();
    let is_open_breaker =
        state.lifecycle.status() == Status::CircuitBreaker && state.outcomes.breaker.opened.is_some();
    if is_over_for_good || is_open_breaker {
        return;
    }
    // The next session reports it again.
    state.spent.quota.forget_undated();
    let repeats =
        matches!(state.lifecycle.last_verdict(), Some(Verdict::Pause { kind, .. }) if kind.repeats());
    let is_judged = state.iteration_record.phase == Phase::Judged && !repeats;
    match plimsoll_policy::bounds::reached(state, now) {
        Some(Verdict::Stop { status, .. }) if is_judged => state.lifecycle.stay(status),
        _ => state.lifecycle.reopen(),
    }
}

/// Launch options of a run that `--resume` uses again unless they are given anew.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    /// The client.
    pub client: Option<String>,
    /// Its arguments.
    pub client_arguments: Vec<String>,
    /// The working memory.
    pub memory: bool,
}

/// The launch options of the newest run.
pub fn remembered(project: &Project) -> Result<Remembered, StoreError> {
    let Some(run_id) = newest_run_id(project)? else { return Ok(Remembered::default()) };
    let state = state_file::load(project, Some(&run_id))?.unwrap_or_default();
    let RunOptions { client, client_arguments, memory, .. } = state.options;
    Ok(Remembered { client, client_arguments, memory })
}
