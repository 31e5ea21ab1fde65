//! Creates a run: checks its preconditions, and writes its state and first files.

use super::{StartError, records};
use crate::checkpoint::work::files_without_commit;
use crate::install::git_exclude::exclude_run_files;
use crate::memory;
use crate::run::prompt::{self, PromptError};
use crate::run::{backup, branch, protect};
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::item_check::{self, ItemCheck};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, RunBegun};
use plimsoll_domain::limits::Limits;
use plimsoll_domain::promise::{PromiseCode, PromiseWord};
use plimsoll_domain::prompt::task_text;
use plimsoll_domain::protected::ProtectedFiles;
use plimsoll_domain::state::{AtStart, Commit, Items, RunOptions, VerifyEach, WorkerOptions};
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunId, RunState, TodoList};
use plimsoll_launcher::git;
use plimsoll_policy::foreign;
use plimsoll_policy::protected::ProtectError;
use plimsoll_policy::todo_list::{self, Unfit};
use plimsoll_store::{
    Durability, Project, clock, disk, journal, layout, protected as protected_store, state_file,
};

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// The task; none if PROMPT.md states it.
    pub objective: Option<String>,
    /// A short name.
    pub name: Option<String>,
    /// The plan file; none for `fix_plan.md` if there is one.
    pub todo: Option<String>,
    /// The maximum number of sessions.
    pub max_iterations: u32,
    /// The word of the promise.
    pub promise: PromiseWord,
    /// Commands that must pass.
    pub verify: Vec<String>,
    /// When they run.
    pub verify_each: VerifyEach,
    /// True when the checks that items of the plan name may run.
    pub plan_verify: bool,
    /// True when the commands run in a sandbox.
    pub verify_sandbox: bool,
    /// The client, as the user named it.
    pub client: Option<String>,
    /// What the user passes on to the client.
    pub client_arguments: Vec<String>,
    /// Files and folders that no session may change.
    pub protect: Vec<String>,
    /// A review comes after so many ticked items; 0 for none.
    pub review_every: u32,
    /// The model that reviews.
    pub review_model: Option<String>,
    /// What the run may use.
    pub limits: Limits,
    /// The branch on which it works; none for the current one.
    pub branch: Option<String>,
    /// What becomes of uncommitted work at a checkpoint.
    pub commit: Commit,
    /// True when commits run the repository's own hooks and drivers.
    pub commit_hooks: bool,
    /// True when a session may continue with the next item while the window has room for it.
    pub pack: bool,
    /// True when the run's sessions have the working memory.
    pub memory: bool,
    /// True when only the exact promise line completes the run.
    pub strict_promise: bool,
    /// A client that says nothing for so long is ended; none for the settings' value.
    pub idle_timeout_seconds: Option<u64>,
    /// The same while a tool runs.
    pub tool_timeout_seconds: Option<u64>,
    /// A program with its arguments, which is started at the end and at pauses.
    pub notify: Vec<String>,
    /// How several workers share the plan; none for one session after another.
    pub workers: Option<WorkerOptions>,
    /// What the run of a single item is told of the whole plan; none for a run with a plan of its own.
    pub item_brief: Option<ItemBrief>,
}

/// Creates a run and writes its first files.
pub fn create(project: &Project, new: &NewRun) -> Result<RunState, StartError> {
    // What can be refused is refused before anything is written, and looked at again under the lock.
    check(project, new)?;
    // A kill after this leaves the branch checked out, and no run: the same command then begins there.
    let branch_before = new
        .branch
        .as_deref()
        .map(|name| branch::enter(project, name, new.commit_hooks))
        .transpose()?
        .flatten();
    // Git is asked first: no lock is held while it is waited for. A file that is made in between counts as the run's own.
    let files_at_start = files_without_commit(project);
    let head_at_start = git::head(project.root()).map(String::from);
    // Read without the lock, too, and after the switch to the run's branch.
    let protected = match new.workers.is_some() || new.item_brief.is_some() {
        true => ProtectedFiles::default(),
        false => protect::record_paths(project, &new.protect, plan_of(new), new.commit_hooks)?,
    };
    let lock = state_file::lock(project, state_file::TIMEOUT)?;
    let Ground { task, prompt_made, todo_file, todo, old } = look(project, new)?;
    let old = old.unwrap_or_default();
    let mut state = state(project, new, &task, prompt_made, todo_file, &todo);
    state.at_start.branch_before = branch_before;
    state.at_start.delegated_before = old.delegated();
    state.at_start.files_at_start = files_at_start;
    state.at_start.head = head_at_start;
    // By it a later commit knows a repository that an agent has made since, whose hooks and filters must not run.
    state.at_start.repository_at_start = Some(layout::repository_identity(project.root()));
    state.items.growth = old.items.growth;
    // Whoever starts the run is told of these at once.
    state.take_questions(&todo);
    state.items.parked.iter_mut().for_each(|question| question.told = true);
    state.options.protect.clone_from(&protected.paths);
    write_first_files(project, &state, &task, &protected)?;
    drop(lock);
    // Git is not waited for while the lock is held, and no session is at work yet.
    protect::renew_repository(project, &state)?;
    begin(project, &state)?;
    Ok(state)
}

/// The files of a new run; the caller holds the state's lock.
fn write_first_files(
    project: &Project,
    state: &RunState,
    task: &[u8],
    protected: &ProtectedFiles,
) -> Result<(), StartError> {
    let extra: &[&str] = if state.options.prompt_made { &["/PROMPT.md"] } else { &[] };
    // Before the run's files are there, so that no `git add -A` ever sees one.
    exclude_run_files(project.root(), extra)?;
    // The copy before PROMPT.md: by it `task` knows after a kill that the text there is ours and not the user's.
    prompt::keep_copy(project, task)?;
    if state.options.prompt_made {
        disk::replace(&project.prompt(), task, Durability::Durable)?;
    }
    // Before the state: a run that protects files and has no record of them is never completed.
    if !protected.paths.is_empty() {
        protected_store::write_record(project, &state.run_id, protected)?;
    }
    // The state last: with it the run exists. A kill before it leaves files that the same `create` writes again.
    Ok(state_file::create(project, state)?)
}

/// What follows once the state is written.
fn begin(project: &Project, state: &RunState) -> Result<(), StartError> {
    // The state's lock is released by now: short locks do not nest. After a kill before this, planning begins the root frame
    // again if the objective differs (`memory::open_for`).
    memory::begin_run(project, state)?;
    let begun = RunBegun {
        task_name: Some(state.options.task_name.clone()),
        max_iterations: Some(state.options.max_iterations),
        items: Some(counted(state.items.known_items.len(), "item")),
        verify: Some(state.options.commands()),
        memory: Some(state.options.memory),
        branch: state.options.branch.clone(),
        ..RunBegun::default()
    };
    journal::note(project, JournalEntry::of_run(state, JournalEvent::RunStarted(begun)))?;
    Ok(backup::afresh(project)?)
}

/// What a new run begins with.
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
    look(project, new)?;
    new.branch.iter().try_for_each(|name| branch::check(project, name).map(|_| ()))?;
    let is_parallel = new.workers.is_some() || new.item_brief.is_some();
    if is_parallel && !new.protect.is_empty() {
        return Err(ProtectError::WithWorkers.into());
    }
    // The run's own branch may have other files. Parallel runs protect none: each worker has files of its own.
    if new.branch.is_none() && !is_parallel {
        protect::read_paths(project, &new.protect, plan_of(new))?;
    }
    Ok(())
}

fn plan_of(new: &NewRun) -> Option<&str> {
    Some(new.todo.as_deref().unwrap_or(DEFAULT_PLAN))
}

/// What several machines share: the task and the plan.
#[derive(Debug)]
pub struct Shared {
    /// The task.
    pub task: String,
    /// The plan's file, from the project on.
    pub plan: String,
    /// Its items.
    pub todo: TodoList,
}

/// The task and the plan that several machines would share. Nothing is written.
pub fn to_share(project: &Project, new: &NewRun) -> Result<Shared, StartError> {
    let old = state_file::load(project, None)?;
    let (plan, todo) = todo(project, new)?;
    let (task, _) = task_or_plan(project, new, old.as_ref(), plan.as_deref())?;
    let plan = plan.ok_or(StartError::NoPlanToShare)?;
    if todo.open().is_empty() {
        let words = todo_list::words(&Unfit::AllTicked(todo.items.len()), &plan, plan != DEFAULT_PLAN);
        return Err(StartError::UnfitTodo(words));
    }
    Ok(Shared { task: String::from_utf8_lossy(&task).into_owned(), plan, todo })
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
    let (todo_file, todo) = todo(project, new)?;
    let (task, prompt_made) = task_or_plan(project, new, old.as_ref(), todo_file.as_deref())?;
    refuse_review(project, new.review_every, todo_file.as_deref())?;
    if new.workers.is_some() && todo_file.is_none() {
        return Err(StartError::NoPlanToShare);
    }
    Ok(Ground { task, prompt_made, todo_file, todo, old })
}

/// A review looks at the diff of ticked items, so there must be a repository and a plan.
pub(super) fn refuse_review(
    project: &Project,
    every: u32,
    todo_file: Option<&str>,
) -> Result<(), StartError> {
    if every > 0 && todo_file.is_none() {
        return Err(StartError::NoPlanToReview);
    }
    if every > 0 && layout::git_folder_of(project.root()).is_none() {
        return Err(StartError::NoRepositoryToReview(project.root().display().to_string()));
    }
    Ok(())
}

/// The same as [`task`], but a plan alone is a task, too.
fn task_or_plan(
    project: &Project,
    new: &NewRun,
    old: Option<&RunState>,
    plan: Option<&str>,
) -> Result<(Vec<u8>, bool), StartError> {
    match (task(project, new, old), plan) {
        (Err(StartError::NoTask), Some(plan)) => {
            Ok((format!("Do what {} says.", one_line(plan)).into_bytes(), true))
        }
        (found, _) => found,
    }
}

/// The task's text, and whether PROMPT.md is ours as a whole.
fn task(project: &Project, new: &NewRun, old: Option<&RunState>) -> Result<(Vec<u8>, bool), StartError> {
    let there = disk::read(&project.prompt())?;
    let text = there.as_deref().map(task_text).transpose().map_err(|_| PromptError::NoEndMark)?;
    // A PROMPT.md that an earlier run made of its objective is not the user's text.
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

/// The to-do file and what it lists; no file where none is named and the usual one is not there.
fn todo(project: &Project, new: &NewRun) -> Result<(Option<String>, TodoList), StartError> {
    let file = new.todo.clone().unwrap_or_else(|| DEFAULT_PLAN.to_owned());
    match (disk::read_text(&project.root().join(&file))?, &new.todo) {
        (Some(text), named) => {
            let todo = TodoList::parse(&text);
            match todo_list::unfit_list(&todo, &text).filter(|unfit| !matches!(unfit, Unfit::AllTicked(_))) {
                Some(unfit) => Err(StartError::UnfitTodo(todo_list::words(&unfit, &file, named.is_some()))),
                None => Ok((Some(file), todo)),
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
    Some(todo_list::words(&Unfit::AllTicked(run.items.known_items.len()), file, file != DEFAULT_PLAN))
}

/// The checks that open items of the plan name now. They are kept outside the project: what is written into the plan later does
/// not run.
fn checks(todo: &TodoList) -> Vec<ItemCheck> {
    let check = |item: String| {
        let command = item_check::command(&item)?;
        Some(ItemCheck { item, command })
    };
    todo.open().into_iter().filter_map(check).collect()
}

/// The state of the new run.
fn state(
    project: &Project,
    new: &NewRun,
    task: &[u8],
    prompt_made: bool,
    todo_file: Option<String>,
    todo: &TodoList,
) -> RunState {
    let text = String::from_utf8_lossy(task);
    // Editors on Windows begin a file with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let folder =
        project.root().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let first_line =
        text.lines().map(|line| line.trim_start_matches(['#', ' '])).find(|line| !line.is_empty());
    let name = new.name.clone().or(first_line.map(|line| clip(&one_line(line), 60))).unwrap_or(folder);
    RunState {
        run_id: RunId::from(uuid::Uuid::new_v4().to_string()),
        nonce: PromiseCode::from_random(uuid::Uuid::new_v4().as_fields().0),
        options: RunOptions {
            task_name: one_line(&name),
            objective: text.to_owned(),
            max_iterations: new.max_iterations,
            completion_promise: new.promise.clone(),
            todo_file,
            verify: new.verify.clone(),
            verify_each: new.verify_each,
            plan_checks: if new.plan_verify { checks(todo) } else { Vec::new() },
            verify_sandbox: new.verify_sandbox,
            client: new.client.clone(),
            client_arguments: new.client_arguments.clone(),
            branch: new.branch.clone(),
            protect: new.protect.clone(),
            review_every: new.review_every,
            review_model: new.review_model.clone(),
            prompt_made,
            limits: new.limits.clone(),
            commit: new.commit,
            commit_hooks: new.commit_hooks,
            pack: new.pack,
            memory: new.memory,
            strict_promise: new.strict_promise,
            idle_timeout_seconds: new.idle_timeout_seconds,
            tool_timeout_seconds: new.tool_timeout_seconds,
            notify: new.notify.clone(),
            workers: new.workers.clone(),
            item_brief: new.item_brief.clone(),
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
