//! Creating a run, resuming one, cancelling one.

pub mod adopt;
mod records;

use crate::context::facts;
use crate::hook_invocation::{RUN_VARIABLE, SESSION_VARIABLE};
use crate::install::git_exclude::exclude_run_files;
use crate::memory;
use crate::run::archive::{archive, is_archived};
use crate::run::backup;
use crate::run::evidence;
use crate::run::prompt;
use crate::run::prompt::PromptError;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, Planned, RunBegun};
use plimsoll_domain::limits::Limits;
use plimsoll_domain::state::{AtStart, Items, RunOptions};
use plimsoll_domain::state::{Commit, IterationRecord, Phase};
use plimsoll_domain::status::Status;
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::{RunId, RunState, SessionId, Timestamp, TodoList, Verdict};
use plimsoll_launcher::client::Client;
use plimsoll_launcher::process;
use plimsoll_policy::foreign;
use plimsoll_policy::todo_list::{self, Unfit};
use plimsoll_store::{
    Durability, Project, StoreError, clock, disk, journal, ledger, lock, sessions, state_file,
};
use std::time::Duration;

/// The to-do list where none is named.
const DEFAULT_LIST: &str = "fix_plan.md";

/// What the person asked for.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// What is to be done; none where PROMPT.md says it.
    pub objective: Option<String>,
    /// A short name.
    pub name: Option<String>,
    /// The to-do file; none for `fix_plan.md` if there is one.
    pub todo: Option<String>,
    /// The run ends after so many sessions.
    pub max_iterations: u32,
    /// The word of the promise.
    pub promise: String,
    /// Commands that must pass.
    pub verify: Vec<String>,
    /// The client, as the user named it.
    pub client: Option<String>,
    /// What the user passes on to the client.
    pub client_arguments: Vec<String>,
    /// What the run may use.
    pub limits: Limits,
    /// What becomes of uncommitted work at a checkpoint.
    pub commit: Commit,
    /// True when a session may go on with the next item while the window has room for it.
    pub pack: bool,
    /// True when the run's sessions have the working memory.
    pub memory: bool,
    /// True when only the exact promise line completes the run.
    pub strict_promise: bool,
    /// A client that says nothing for so long is ended; none for the settings' value.
    pub idle_timeout_seconds: Option<u64>,
    /// The same while a tool runs.
    pub tool_timeout_seconds: Option<u64>,
    /// A program with its arguments, told of the end and of pauses.
    pub notify: Vec<String>,
}

/// What `--resume` changes of a run; what is absent stays as it was.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The run ends after so many sessions.
    pub max_iterations: Option<u32>,
    /// Commands that must pass.
    pub verify: Option<Vec<String>>,
    /// The client, as the user named it.
    pub client: Option<String>,
    /// What the user passes on to the client.
    pub client_arguments: Vec<String>,
    /// What the run may use, each bound on its own.
    pub limits: Limits,
    /// What becomes of uncommitted work at a checkpoint.
    pub commit: Option<Commit>,
    /// True to let sessions go on with the next item.
    pub pack: bool,
    /// True to give them the working memory.
    pub memory: bool,
    /// True when only the exact promise line completes the run.
    pub strict_promise: Option<bool>,
    /// A client that says nothing for so long is ended.
    pub idle_timeout_seconds: Option<u64>,
    /// The same while a tool runs.
    pub tool_timeout_seconds: Option<u64>,
    /// A program with its arguments, told of the end and of pauses.
    pub notify: Option<Vec<String>>,
    /// True with `--reset-breaker`.
    pub reset_breaker: bool,
}

/// Why a run could not be started or resumed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// PROMPT.md.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// Two texts and no way to tell which is meant.
    #[error(
        "there is a PROMPT.md and an objective: give one of them (without --objective, PROMPT.md is the task)"
    )]
    TwoTasks,
    /// No text at all.
    #[error("there is no task: write PROMPT.md, or give --objective TEXT or --objective-file FILE")]
    NoTask,
    /// The to-do file that was named is not there.
    #[error("the to-do file {0} is missing: write it, or leave --todo out")]
    NoTodo(String),
    /// The to-do file has no open item.
    #[error("{0}")]
    UnfitTodo(String),
    /// A run is there already.
    #[error(
        "the run \"{}\" ({run_id}) is {status} at iteration {iteration}: go on with `plimsoll run --resume`, or cancel it with `plimsoll stop`",
        one_line(name)
    )]
    RunThere {
        /// Its name.
        name: String,
        /// Its id.
        run_id: RunId,
        /// Where it stands.
        status: Status,
        /// Its present iteration.
        iteration: u32,
    },
    /// The client cannot be told to work there.
    #[error("the path {0:?} is not valid UTF-8, and Claude Code does not work in such a folder: rename it")]
    NotUtf8(std::path::PathBuf),
    /// What a run rests on would lie where its sessions may write.
    #[error("{0}")]
    UnfitRecords(String),
    /// There is none.
    #[error("there is no run in {0}: start one with `plimsoll run`")]
    NoRun(String),
    /// The state there is not a run's of ours, or it cannot be taken over as it stands.
    #[error("{0}")]
    Foreign(String),
}

/// Creates a run and writes its first files.
pub fn create(project: &Project, new: &NewRun) -> Result<RunState, StartError> {
    // What can be refused is refused before anything is written, and looked at again under the lock.
    look(project, new)?;
    let lock = state_file::lock(project, state_file::TIMEOUT)?;
    let Ground { task, prompt_made, todo_file, todo, old } = look(project, new)?;
    let old = old.unwrap_or_default();
    let mut state = state(project, new, &task, prompt_made, todo_file, &todo);
    state.at_start.delegated_before = old.delegated();
    state.at_start.files_at_start = crate::checkpoint::work::files_without_commit(project);
    state.at_start.repository_at_start = Some(plimsoll_store::layout::repository_identity(project.root()));
    state.items.growth = old.items.growth;
    write_first_files(project, &state, &task)?;
    drop(lock);
    begin(project, &state)?;
    Ok(state)
}

/// The files of a new run; the caller holds the state's lock.
fn write_first_files(project: &Project, state: &RunState, task: &[u8]) -> Result<(), StartError> {
    let extra: &[&str] = if state.options.prompt_made { &["/PROMPT.md"] } else { &[] };
    exclude_run_files(project.root(), extra)?;
    prompt::keep_copy(project, task)?;
    if state.options.prompt_made {
        disk::replace(&project.prompt(), task, Durability::Durable)?;
    }
    Ok(state_file::create(project, state)?)
}

/// What follows once the state stands.
fn begin(project: &Project, state: &RunState) -> Result<(), StartError> {
    // Two of our locks are never held at once. After a kill before this the first plan begins the root anew where the
    // objective is another (`memory::open_for`).
    memory::begin_run(project, state)?;
    let begun = RunBegun {
        task_name: Some(state.options.task_name.clone()),
        max_iterations: Some(state.options.max_iterations),
        items: Some(counted(state.items.known_items.len(), "item")),
        verify: Some(state.options.verify.clone()),
        memory: Some(state.options.memory),
        ..RunBegun::default()
    };
    journal::note(project, JournalEntry::of_run(state, JournalEvent::RunStarted(begun)))?;
    Ok(backup::afresh(project)?)
}

/// What a new run stands on.
struct Ground {
    task: Vec<u8>,
    prompt_made: bool,
    todo_file: Option<String>,
    todo: TodoList,
    /// The run before, from which this one learns.
    old: Option<RunState>,
}

/// Could this run begin? Nothing is written.
pub fn check(project: &Project, new: &NewRun) -> Result<(), StartError> {
    look(project, new).map(|_| ())
}

fn look(project: &Project, new: &NewRun) -> Result<Ground, StartError> {
    if project.root().to_str().is_none() {
        return Err(StartError::NotUtf8(project.root().to_owned()));
    }
    records::refuse_unfit(project, &new.client_arguments)?;
    if let Some(document) = state_file::foreign(project)? {
        let missing = foreign::missing_marks(&document);
        return Err(StartError::Foreign(foreign::in_the_way(&project.relative(project.state()), &missing)));
    }
    let old = state_file::load(project, None)?;
    if let Some(old) = old.as_ref().filter(|old| !old.lifecycle.is_over() && !old.run_id.is_empty()) {
        return Err(StartError::RunThere {
            name: old.options.task_name.clone(),
            run_id: old.run_id.clone(),
            status: old.lifecycle.status(),
            iteration: old.iteration,
        });
    }
    let (task, prompt_made) = task(project, new, old.as_ref())?;
    let (todo_file, todo) = todo(project, new)?;
    Ok(Ground { task, prompt_made, todo_file, todo, old })
}

/// The task's text, and whether PROMPT.md is ours as a whole.
fn task(project: &Project, new: &NewRun, old: Option<&RunState>) -> Result<(Vec<u8>, bool), StartError> {
    let there = disk::read(&project.prompt())?;
    let text = there
        .as_deref()
        .map(plimsoll_domain::prompt::task_text)
        .transpose()
        .map_err(|_| PromptError::NoEndMark)?;
    // A PROMPT.md that an earlier run made of its objective is nobody's text.
    let left_over =
        old.is_some_and(|old| old.options.prompt_made && text == Some(old.options.objective.as_bytes()));
    // Nor is one that was killed between writing it and the state: its copy comes first.
    let objective = new.objective.as_ref().map(String::as_bytes);
    let is_of_the_dead = text.is_some() && text == objective && prompt::is_kept(project, text)?;
    let left_over = left_over || is_of_the_dead;
    match (&new.objective, text) {
        (Some(_), Some(_)) if !left_over => Err(StartError::TwoTasks),
        (Some(objective), _) => Ok((objective.clone().into_bytes(), true)),
        (None, Some(text)) => Ok((text.to_vec(), left_over)),
        (None, None) => Err(StartError::NoTask),
    }
}

fn todo(project: &Project, new: &NewRun) -> Result<(Option<String>, TodoList), StartError> {
    let file = new.todo.clone().unwrap_or_else(|| DEFAULT_LIST.to_owned());
    match (disk::read_text(&project.root().join(&file))?, &new.todo) {
        (Some(text), named) => {
            match todo_list::unfit(&text).filter(|unfit| !matches!(unfit, Unfit::AllTicked(_))) {
                Some(unfit) => Err(StartError::UnfitTodo(todo_list::words(&unfit, &file, named.is_some()))),
                None => Ok((Some(file), TodoList::parse(&text))),
            }
        }
        (None, Some(_)) => Err(StartError::NoTodo(file)),
        (None, None) => Ok((None, TodoList::default())),
    }
}

/// What the user should know where a new run has a list and no open item: its sessions have nothing to take.
pub fn nothing_open(run: &RunState) -> Option<String> {
    if !run.items.todo_items.is_empty() {
        return None;
    }
    let file = run.options.todo_file.as_ref()?;
    Some(todo_list::words(&Unfit::AllTicked(run.items.known_items.len()), file, file != DEFAULT_LIST))
}

fn state(
    project: &Project,
    new: &NewRun,
    task: &[u8],
    prompt_made: bool,
    todo_file: Option<String>,
    todo: &TodoList,
) -> RunState {
    let text = String::from_utf8_lossy(task);
    let folder =
        project.root().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let first_line =
        text.lines().map(|line| line.trim_start_matches(['#', ' '])).find(|line| !line.is_empty());
    let name = new.name.clone().or(first_line.map(|line| clip(&one_line(line), 60))).unwrap_or(folder);
    RunState {
        run_id: RunId::from(uuid::Uuid::new_v4().to_string()),
        nonce: uuid::Uuid::new_v4().simple().to_string()[..8].to_owned(),
        options: RunOptions {
            task_name: one_line(&name),
            objective: text.into_owned(),
            max_iterations: new.max_iterations,
            completion_promise: new.promise.clone(),
            todo_file,
            verify: new.verify.clone(),
            client: new.client.clone(),
            client_arguments: new.client_arguments.clone(),
            prompt_made,
            limits: new.limits.clone(),
            commit: new.commit,
            pack: new.pack,
            memory: new.memory,
            strict_promise: new.strict_promise,
            idle_timeout_seconds: new.idle_timeout_seconds,
            tool_timeout_seconds: new.tool_timeout_seconds,
            notify: new.notify.clone(),
        },
        at_start: AtStart { started_at: clock::stamp(clock::now()), ..AtStart::default() },
        items: Items {
            todo_items: todo.open(),
            completed_items: todo.done(),
            known_items: todo.items.iter().map(|item| item.text.clone()).collect(),
            ever_done: todo.done(),
            ..Items::default()
        },
        ..RunState::default()
    }
}

/// What `--resume` finds.
#[derive(Debug)]
pub enum Resumed {
    /// A run to go on with.
    Open(Box<RunState>),
    /// A run that is over.
    Over(Box<RunState>),
}

/// Looks for the run to resume. A run that stopped for a reason a person can mend is opened again once it is
/// mended; one that was completed or cancelled is over for good.
pub fn resume(project: &Project, changes: &Changes) -> Result<Resumed, StartError> {
    let no_run = || StartError::NoRun(project.root().display().to_string());
    refuse_foreign(project)?;
    // A copy may be forged, too: what nobody here began has no ledger.
    let run_id = newest_run_id(project)?.filter(|id| ledger::knows(project, id)).ok_or_else(no_run)?;
    records::refuse_unfit(project, &changes.client_arguments)?;
    let now = clock::stamp(clock::now());
    let state = state_file::update(project, Some(&run_id), Durability::Durable, |state| {
        change(state, changes);
        reopen(state, &now);
        state.iteration_record.stops_after = false;
        state.clone()
    })?
    .ok_or_else(no_run)?;
    if state.lifecycle.is_over() {
        return Ok(Resumed::Over(Box::new(state)));
    }
    let resumed = RunBegun {
        status: Some(state.lifecycle.status()),
        reset_breaker: Some(changes.reset_breaker),
        ..RunBegun::default()
    };
    journal::note(project, JournalEntry::of_run(&state, JournalEvent::Resumed(resumed)))?;
    Ok(Resumed::Open(Box::new(state)))
}

/// A state that no run of ours wrote is never resumed: no promise could end it, and who wrote it nobody knows.
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

/// The copy of the newest run of ours.
fn copy(project: &Project) -> Option<RunState> {
    let bytes = disk::read(&state_file::copy_path(project)).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}

/// A state with the id of a run and without the rest of what makes it ours.
fn nameless(project: &Project) -> Result<Option<serde_json::Value>, StoreError> {
    let text = state_file::text(project).ok().flatten();
    let document = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(document.filter(|document| !foreign::missing_marks(document).is_empty()))
}

fn change(state: &mut RunState, changes: &Changes) {
    fn set<T: Clone>(place: &mut T, value: Option<&T>) {
        if let Some(value) = value {
            place.clone_from(value);
        }
    }
    set(&mut state.options.max_iterations, changes.max_iterations.as_ref());
    set(&mut state.options.verify, changes.verify.as_ref());
    set(&mut state.options.commit, changes.commit.as_ref());
    set(&mut state.options.notify, changes.notify.as_ref());
    state.options.client.clone_from(&changes.client);
    state.options.client_arguments.clone_from(&changes.client_arguments);
    state.options.pack |= changes.pack;
    state.options.memory |= changes.memory;
    set(&mut state.options.strict_promise, changes.strict_promise.as_ref());
    state.options.tool_timeout_seconds = changes.tool_timeout_seconds.or(state.options.tool_timeout_seconds);
    state.options.idle_timeout_seconds = changes.idle_timeout_seconds.or(state.options.idle_timeout_seconds);
    let (limits, new) = (&mut state.options.limits, &changes.limits);
    limits.max_cost_usd = new.max_cost_usd.or(limits.max_cost_usd);
    limits.max_tokens = new.max_tokens.or(limits.max_tokens);
    limits.deadline = new.deadline.clone().or(limits.deadline.take());
    limits.stop_at_limit_percent = new.stop_at_limit_percent.or(limits.stop_at_limit_percent);
    if changes.reset_breaker {
        plimsoll_policy::breaker::reset(state);
    }
}

/// Opens a run again, unless what ended it still stands.
fn reopen(state: &mut RunState, now: &Timestamp) {
    let is_over_for_good = matches!(state.lifecycle.status(), Status::Completed | Status::Cancelled);
    let is_open_breaker =
        state.lifecycle.status() == Status::CircuitBreaker && state.outcomes.breaker.opened.is_some();
    if is_over_for_good || is_open_breaker {
        return;
    }
    // The next session tells anew.
    state.spent.quota.forget_undated();
    let repeats =
        matches!(state.lifecycle.last_verdict(), Some(Verdict::Pause { kind, .. }) if kind.repeats());
    let is_judged = state.iteration_record.phase == Phase::Judged && !repeats;
    match plimsoll_policy::bounds::reached(state, now) {
        Some(Verdict::Stop { status, .. }) if is_judged => state.lifecycle.stay(status),
        _ => state.lifecycle.reopen(),
    }
}

/// With what a run was started: a resume that names none of it goes on so.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    /// The client.
    pub client: Option<String>,
    /// Its arguments.
    pub client_arguments: Vec<String>,
    /// The working memory.
    pub memory: bool,
}

/// With what the newest run was started.
pub fn remembered(project: &Project) -> Result<Remembered, StoreError> {
    let Some(run_id) = newest_run_id(project)? else { return Ok(Remembered::default()) };
    let state = state_file::load(project, Some(&run_id))?.unwrap_or_default();
    let RunOptions { client, client_arguments, memory, .. } = state.options;
    Ok(Remembered { client, client_arguments, memory })
}

/// The id of the run in the state, or of its copy where an agent has taken the state away.
fn newest_run_id(project: &Project) -> Result<Option<RunId>, StoreError> {
    // A copy of an older run must not bring that one back over it.
    if state_file::foreign(project)?.is_some() {
        return Ok(None);
    }
    let of_copy = || copy(project).map(|state| state.run_id);
    let known = match state_file::load(project, None) {
        Ok(Some(state)) => Some(state.run_id),
        Ok(None) => of_copy(),
        Err(error) => Some(of_copy().ok_or(error)?),
    };
    Ok(known.filter(|run_id| !run_id.is_empty()))
}

/// Cancels the run for good. The session that works for it is ended by its next hook.
pub fn cancel(project: &Project) -> Result<Option<RunState>, StoreError> {
    let Some(run_id) = newest_run_id(project)? else { return Ok(None) };
    let cancelled = state_file::update(project, Some(&run_id), Durability::Durable, |state| {
        state.lifecycle.cancel(Some(clock::stamp(clock::now())));
        state.clone()
    })?;
    // Also of one that was cancelled before: whoever did may have died on the way.
    if let Some(state) = cancelled.as_ref().filter(|state| state.lifecycle.status() == Status::Cancelled) {
        tell_session(project, state)?;
        let line = JournalEntry::of_run(state, JournalEvent::Cancelled);
        if !journal::tells(project, &line) {
            journal::note(project, line)?;
        }
        end_orphan(project, state)?;
        archive_cancelled(project, &run_id)?;
    }
    Ok(cancelled)
}

/// Nobody may come to judge it any more: it is archived as it stands. One whose session ends later is archived then
/// once more.
fn archive_cancelled(project: &Project, run_id: &RunId) -> Result<(), StoreError> {
    match state_file::load(project, Some(run_id))? {
        Some(state) if !is_archived(project, &state) => archive(project, &state),
        _ => Ok(()),
    }
}

/// The session's hooks look at its record after every batch of tools, and at the state only when they act.
fn tell_session(project: &Project, state: &RunState) -> Result<(), StoreError> {
    let Some(session_id) = &state.session_id else { return Ok(()) };
    sessions::update(project, session_id, state_file::TIMEOUT, |record| record.cancelled = true)
}

/// One that was killed takes a moment to let go of its lock.
const DYING: Duration = Duration::from_millis(500);

/// A `plimsoll run` that lives ends its client itself; where it has died, its client is ended here.
fn end_orphan(project: &Project, state: &RunState) -> Result<(), StoreError> {
    let Ok(_only) = lock::acquire_run(project, DYING) else { return Ok(()) };
    let Some(orphan) = orphan(state) else { return Ok(()) };
    let reason = "cancelled, and its `plimsoll run` had died".to_owned();
    journal::note(project, JournalEntry::of_run(state, JournalEvent::ClientEnded { reason }))?;
    Client::Adopted(orphan).end(Duration::from_secs(5));
    end_left_behind(state);
    Ok(())
}

/// The client of the present iteration, if it lives: known by pid and start, or found by its session and run
/// where its `plimsoll run` died before it could note them.
pub(crate) fn orphan(run: &RunState) -> Option<process::Identity> {
    let record = &run.iteration_record;
    let session_id = run.session_id.as_deref().filter(|id| !id.is_empty())?;
    let known =
        record.pid.zip(record.process_started).map(|(pid, started)| process::Identity { pid, started });
    known
        .filter(|known| process::is_alive(*known))
        .or_else(|| process::find(session_id, &format!("{RUN_VARIABLE}={}", run.run_id)))
}

/// A client that was killed leaves its tools working: they would work into the next session.
pub(crate) fn end_left_behind(run: &RunState) {
    if let Some(settings) = settings_of(run) {
        end_started_with(&settings);
    }
}

/// Ends the processes that carry these settings of a session in their environment.
pub(crate) fn end_started_with([run, session]: &[String; 2]) {
    process::end_left_behind([run, session], Duration::from_secs(1));
}

/// What stands in the environment of everything that is started inside the present session.
pub(crate) fn settings_of(run: &RunState) -> Option<[String; 2]> {
    let session_id = run.session_id.as_ref().filter(|id| !id.is_empty())?;
    Some([format!("{RUN_VARIABLE}={}", run.run_id), format!("{SESSION_VARIABLE}={session_id}")])
}

/// Plans the next iteration: its number, its session, its prompt. One that was planned and never ran, and one
/// that only met a limit, is planned again under its own number.
pub fn plan(
    project: &Project,
    run_id: &RunId,
    session_id: Option<SessionId>,
) -> Result<RunState, StartError> {
    let no_run = || StartError::NoRun(project.root().display().to_string());
    let before = state_file::load(project, Some(run_id))?.ok_or_else(no_run)?;
    let todo = mend_todo(project, &before)?;
    memory::open_for(project, &before)?;
    let footing = evidence::footing(project);
    let state = state_file::update(project, Some(run_id), Durability::Durable, |state| {
        let repeats =
            matches!(state.lifecycle.last_verdict(), Some(Verdict::Pause { kind, .. }) if kind.repeats());
        let again = state.iteration > 0 && (state.iteration_record.phase == Phase::Planned || repeats);
        if !again {
            state.iteration += 1;
        }
        if let Some(todo) = &todo {
            state.take_items(todo);
        }
        let due = plimsoll_policy::resume::for_next(state, todo.as_ref());
        let resuming = due.is_some()
            || (again
                && state.iteration_record.resuming
                && !plimsoll_policy::resume::item_is_ticked(&state.context_checkpoint, todo.as_ref()));
        match due {
            Some(due) => state.context_checkpoint = due,
            // One of another item waits among the half done ones.
            None => state.context_checkpoint.active = false,
        }
        state.lifecycle.go_on();
        state.session_id = session_id;
        // What an iteration did before it met a limit is its own work when it is planned again.
        let before = std::mem::take(&mut state.iteration_record);
        let (done_before, reckoned, footing) = match before.footing {
            Some(footing) if again => (before.done_before, before.reckoned, footing),
            _ => (state.items.completed_items.clone(), Vec::new(), footing),
        };
        state.iteration_record = IterationRecord {
            iteration: state.iteration,
            phase: Phase::Planned,
            resuming,
            item: state.item_in_hand().cloned(),
            done_before,
            done_at_start: state.items.completed_items.clone(),
            reckoned,
            footing: Some(footing),
            ..IterationRecord::default()
        };
        state.clone()
    })?
    .ok_or_else(no_run)?;
    // An agent may have made the repository only now.
    exclude_run_files(project.root(), if state.options.prompt_made { &["/PROMPT.md"] } else { &[] })?;
    prompt::write(project, &state)?;
    // Consumed only once a prompt has carried it on.
    state_file::update(project, Some(run_id), Durability::Lazy, |state| {
        state.context_checkpoint.active = false;
    })?;
    let planned = Planned {
        resuming: state.iteration_record.resuming,
        item: state.iteration_record.item.clone(),
        ..Planned::default()
    };
    journal::note(project, JournalEntry::of_run(&state, JournalEvent::Planned(planned)))?;
    backup::journal(project)?;
    Ok(state)
}

/// The to-do list as it stands; where an agent has taken the whole file away, or emptied it, it is written again
/// from what the state knows.
fn mend_todo(project: &Project, state: &RunState) -> Result<Option<TodoList>, StoreError> {
    let Some(file) = &state.options.todo_file else { return Ok(None) };
    if let Some(todo) = facts::todo(project, state) {
        backup::todo(project, state)?;
        return Ok(Some(todo));
    }
    // What stands in a list that has been emptied is no item, and is not lost.
    let rest = disk::read_text(&project.root().join(file))?.unwrap_or_default();
    let text = backup::lost_todo(project, state)? + &rest;
    let todo = TodoList::parse(&text);
    disk::replace(&project.root().join(file), text.as_bytes(), Durability::Durable)?;
    journal::note(project, JournalEntry::of_run(state, JournalEvent::TodoMended { file: file.clone() }))?;
    Ok(Some(todo))
}
