//! Creates a run: checks its preconditions, and writes its state and first files.

use super::{StartError, records};
use crate::checkpoint::item_work::files_of_repository_without_commits;
use crate::install::git_exclude::exclude_run_files;
use crate::memory;
use crate::run::prompt::{self, PromptError};
use crate::run::{backup, branch, protect};
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::item_check::{self, ItemCheck};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, RunStartFacts};
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::promise::{PromiseCode, PromiseWord};
use plimsoll_domain::prompt::task_text_after_prompt_block;
use plimsoll_domain::protected::ProtectedFiles;
use plimsoll_domain::state::{
    CheckpointCommitMode, PlanItems, ProjectAtStart, RunOptions, VerifyTiming, WorkerOptions,
};
use plimsoll_domain::text::{count_with_noun, to_single_line, truncate_end};
use plimsoll_domain::todo::DEFAULT_PLAN;
use plimsoll_domain::{RunId, RunState, TodoList};
use plimsoll_launcher::git;
use plimsoll_policy::protected::ProtectError;
use plimsoll_policy::shell_loop;
use plimsoll_policy::todo_list::{self, PlanProblem};
use plimsoll_store::{
    Durability, Project, clock, disk, journal, layout, protected_files as protected_store, state_file,
};

/// The options of a new run.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// The task's text; `None` if PROMPT.md contains it.
    pub objective: Option<String>,
    pub name: Option<String>,
    /// The plan file; `None` for `fix_plan.md` if it exists.
    pub plan_file: Option<String>,
    pub max_iterations: u32,
    pub promise: PromiseWord,
    pub verify_commands: Vec<String>,
    /// When the verify commands run.
    pub verify_timing: VerifyTiming,
    /// True if the checks that items of the plan name may run.
    pub runs_plan_checks: bool,
    /// True if the commands run in a sandbox.
    pub verify_sandbox: bool,
    /// The client program, as the user named it.
    pub client: Option<String>,
    /// The arguments that the user passes on to the client.
    pub client_arguments: Vec<String>,
    /// Files and folders that no session may change.
    pub protected_paths: Vec<String>,
    /// A review follows after this many ticked items; 0 for none.
    pub items_per_review: u32,
    pub review_model: Option<String>,
    /// The limits on cost, tokens and time.
    pub limits: RunLimits,
    /// The branch on which the run works; `None` for the current one.
    pub branch: Option<String>,
    /// Whether uncommitted work is committed at a checkpoint.
    pub commit_mode: CheckpointCommitMode,
    /// True if commits run the repository's own hooks and drivers.
    pub runs_commit_hooks: bool,
    /// True if a session may continue with the next item while the window has room for it.
    pub packs_items: bool,
    /// True if the run's sessions have the working memory.
    pub uses_working_memory: bool,
    /// True if only the exact promise line completes the run.
    pub strict_promise: bool,
    /// A client that prints nothing for this long is ended; `None` for the value of the settings.
    pub idle_timeout_seconds: Option<u64>,
    /// The idle timeout while a tool runs.
    pub tool_timeout_seconds: Option<u64>,
    /// A program with its arguments that is started at the end, at pauses and for questions.
    pub notify_command: Vec<String>,
    /// How several workers share the plan; `None` for one session after another.
    pub workers: Option<WorkerOptions>,
    /// Context for the run of a single item: what it is told about the whole plan; `None` for a run with its
    /// own plan.
    pub item_brief: Option<ItemBrief>,
}

/// Creates a run and writes its first files.
pub fn create_run(project: &Project, new_run: &NewRun) -> Result<RunState, StartError> {
    // Everything that can be rejected is rejected before anything is written, and checked again under the
    // lock.
    check_new_run(project, new_run)?;
    // A kill after this leaves the branch checked out and no run: the same command then starts on that
    // branch.
    let branch_before = new_run
        .branch
        .as_deref()
        .map(|name| branch::switch_to_run_branch(project, name, new_run.runs_commit_hooks))
        .transpose()?
        .flatten();
    // Before the lock, because no lock is held while git runs. A file that is created in between counts as
    // the run's own.
    let files_at_start = files_of_repository_without_commits(project);
    let head_at_start = git::head_commit(project.root()).map(String::from);
    // Also read without the lock, and after the switch to the run's branch.
    let protected_files = match new_run.workers.is_some() || new_run.item_brief.is_some() {
        true => ProtectedFiles::default(),
        false => protect::read_protected_files_and_commits(
            project,
            &new_run.protected_paths,
            plan_path(new_run),
            new_run.runs_commit_hooks,
        )?,
    };
    let lock = state_file::lock_state(project, state_file::LOCK_TIMEOUT)?;
    let ValidatedRun { task, is_prompt_generated, todo_file, todo, previous_run } =
        validate_new_run(project, new_run)?;
    let previous_run = previous_run.unwrap_or_default();
    let mut state = new_run_state(project, new_run, &task, is_prompt_generated, todo_file, &todo);
    state.project_at_start.original_branch = branch_before;
    state.project_at_start.earlier_subagent_usage = previous_run.project_subagent_usage();
    state.project_at_start.files_at_start = files_at_start;
    state.project_at_start.head_commit = head_at_start;
    // Lets a later commit recognize a repository that an agent has created since, whose hooks and filters
    // must not run.
    state.project_at_start.git_folder_id_at_start = Some(layout::repository_identity(project.root()));
    state.plan_items.item_costs = previous_run.plan_items.item_costs;
    // The user is told of these questions right at the start.
    state.update_questions_from_plan(&todo);
    state.plan_items.parked_questions.iter_mut().for_each(|question| question.was_notified = true);
    state.options.protected_paths.clone_from(&protected_files.paths);
    write_new_run_files(project, &state, &task, &protected_files)?;
    drop(lock);
    // The lock is released, because git may take long. No session is running yet.
    protect::refresh_repository_identity(project, &state)?;
    record_run_start(project, &state)?;
    Ok(state)
}

/// Writes the files of a new run. The caller holds the state's lock.
fn write_new_run_files(
    project: &Project,
    state: &RunState,
    task: &[u8],
    protected_files: &ProtectedFiles,
) -> Result<(), StartError> {
    let excluded_paths: &[&str] = if state.options.is_prompt_generated { &["/PROMPT.md"] } else { &[] };
    // Before the run's files exist, so that no `git add -A` ever sees one.
    exclude_run_files(project.root(), excluded_paths)?;
    // The copy before PROMPT.md: after a kill it shows the next start that the text there is ours and not the
    // user's.
    prompt::save_task_copy(project, task)?;
    if state.options.is_prompt_generated {
        disk::replace(&project.prompt_path(), task, Durability::Durable)?;
    }
    // Before the state: a run that protects files and has no record of them is never completed.
    if !protected_files.paths.is_empty() {
        protected_store::write_protected_record(project, &state.run_id, protected_files)?;
    }
    // The state last: the run exists once it is written. A kill before it leaves files that the same command
    // writes again.
    Ok(state_file::create_state(project, state)?)
}

/// Starts the memory, journals the start and resets the copies, after the state is written.
fn record_run_start(project: &Project, state: &RunState) -> Result<(), StartError> {
    // The state's lock has been released: short locks do not nest. After a kill before this, planning starts
    // the root frame again if the objective differs (`memory::prepare_memory_for_iteration`).
    memory::begin_run_memory(project, state)?;
    let facts = RunStartFacts {
        task_name: Some(state.options.task_name.clone()),
        max_iterations: Some(state.options.max_iterations),
        item_count_text: Some(count_with_noun(state.plan_items.known_items.len(), "item")),
        verify_commands: Some(state.options.all_verify_commands()),
        has_memory: Some(state.options.uses_working_memory),
        branch: state.options.branch.clone(),
        ..RunStartFacts::default()
    };
    journal::append_entry(project, JournalEntry::for_run(state, JournalEvent::RunStarted(facts)))?;
    Ok(backup::recreate_copies_for_new_run(project)?)
}

/// The inputs of a new run that passed all checks.
struct ValidatedRun {
    task: Vec<u8>,
    is_prompt_generated: bool,
    todo_file: Option<String>,
    todo: TodoList,
    /// The previous run of the project, whose measurements are reused.
    previous_run: Option<RunState>,
}

/// Checks that this run could begin. Writes nothing.
pub fn check_new_run(project: &Project, new_run: &NewRun) -> Result<(), StartError> {
    validate_new_run(project, new_run)?;
    new_run
        .branch
        .iter()
        .try_for_each(|name| branch::check_run_branch_return_current(project, name).map(|_| ()))?;
    let is_parallel = new_run.workers.is_some() || new_run.item_brief.is_some();
    if is_parallel && !new_run.protected_paths.is_empty() {
        return Err(ProtectError::UsedWithWorkers.into());
    }
    // The run's own branch may contain other files. Parallel runs protect none, because each worker has its
    // own files.
    if new_run.branch.is_none() && !is_parallel {
        protect::read_protected_paths(project, &new_run.protected_paths, plan_path(new_run))?;
    }
    Ok(())
}

fn plan_path(new_run: &NewRun) -> Option<&str> {
    Some(new_run.plan_file.as_deref().unwrap_or(DEFAULT_PLAN))
}

/// The task and the plan that several machines share.
#[derive(Debug)]
pub struct SharedWork {
    pub task: String,
    /// The plan file, relative to the project.
    pub plan: String,
    /// The parsed plan.
    pub todo: TodoList,
}

/// Reads the task and the plan that several machines would share. Writes nothing.
pub fn read_shared_work(project: &Project, new_run: &NewRun) -> Result<SharedWork, StartError> {
    let previous_run = state_file::load_state(project, None)?;
    let (plan_file, todo) = read_plan(project, new_run)?;
    let (task, _) =
        read_task_or_generate_from_plan(project, new_run, previous_run.as_ref(), plan_file.as_deref())?;
    let plan = plan_file.ok_or(StartError::NoPlanToShare)?;
    if todo.open_items().is_empty() {
        let message = todo_list::render_plan_problem(
            &PlanProblem::AllTicked(todo.items.len()),
            &plan,
            plan != DEFAULT_PLAN,
        );
        return Err(StartError::UnusablePlan(message));
    }
    Ok(SharedWork { task: String::from_utf8_lossy(&task).into_owned(), plan, todo })
}

fn validate_new_run(project: &Project, new_run: &NewRun) -> Result<ValidatedRun, StartError> {
    if project.root().to_str().is_none() {
        return Err(StartError::NotUtf8(project.root().to_owned()));
    }
    records::check_records_location(project, &new_run.client_arguments)?;
    if let Some(document) = state_file::load_foreign_document(project)? {
        let missing_fields = shell_loop::missing_run_markers(&document);
        return Err(StartError::ForeignState(shell_loop::describe_blocking_state_file(
            &project.relative_to_root(project.state_path()),
            &missing_fields,
        )));
    }
    let previous_run = state_file::load_state(project, None)?;
    if let Some(active_run) =
        previous_run.as_ref().filter(|old| !old.lifecycle.is_over() && !old.run_id.is_empty())
    {
        return Err(StartError::RunExists {
            name: active_run.options.task_name.clone(),
            run_id: active_run.run_id.clone(),
            status: active_run.lifecycle.status(),
            iteration: active_run.iteration,
        });
    }
    let (todo_file, todo) = read_plan(project, new_run)?;
    let (task, is_prompt_generated) =
        read_task_or_generate_from_plan(project, new_run, previous_run.as_ref(), todo_file.as_deref())?;
    check_review_possible(project, new_run.items_per_review, todo_file.as_deref())?;
    if new_run.workers.is_some() && todo_file.is_none() {
        return Err(StartError::NoPlanToShare);
    }
    Ok(ValidatedRun { task, is_prompt_generated, todo_file, todo, previous_run })
}

/// Checks that reviews are possible: a review reads the diff of ticked items, so there must be a repository
/// and a plan.
pub(super) fn check_review_possible(
    project: &Project,
    items_per_review: u32,
    todo_file: Option<&str>,
) -> Result<(), StartError> {
    if items_per_review > 0 && todo_file.is_none() {
        return Err(StartError::NoPlanToReview);
    }
    if items_per_review > 0 && layout::find_git_folder(project.root()).is_none() {
        return Err(StartError::NoRepositoryToReview(project.root().display().to_string()));
    }
    Ok(())
}

/// Returns the task, and whether we generated it. A plan without a task yields a generated one.
fn read_task_or_generate_from_plan(
    project: &Project,
    new_run: &NewRun,
    previous_run: Option<&RunState>,
    plan: Option<&str>,
) -> Result<(Vec<u8>, bool), StartError> {
    match (read_task_and_is_generated(project, new_run, previous_run), plan) {
        (Err(StartError::NoTask), Some(plan)) => {
            Ok((format!("Do what {} says.", to_single_line(plan)).into_bytes(), true))
        }
        (result, _) => result,
    }
}

/// Returns the task's text, and whether the whole PROMPT.md was generated by us.
fn read_task_and_is_generated(
    project: &Project,
    new_run: &NewRun,
    previous_run: Option<&RunState>,
) -> Result<(Vec<u8>, bool), StartError> {
    let prompt_file = disk::read(&project.prompt_path())?;
    let text = prompt_file
        .as_deref()
        .map(task_text_after_prompt_block)
        .transpose()
        .map_err(|_| PromptError::MissingEndMark)?;
    // A PROMPT.md that an earlier run generated from its objective is not the user's text.
    let is_generated = previous_run
        .is_some_and(|old| old.options.is_prompt_generated && text == Some(old.options.objective.as_bytes()));
    // Neither is one of a run that was killed before it wrote the state: its copy is written first.
    let objective = new_run.objective.as_ref().map(String::as_bytes);
    let is_from_killed_run = text.is_some() && text == objective && prompt::is_saved_task(project, text)?;
    let is_generated = is_generated || is_from_killed_run;
    match (&new_run.objective, text) {
        (Some(_), Some(_)) if !is_generated => Err(StartError::TwoTasks),
        (Some(objective), _) => Ok((objective.clone().into_bytes(), true)),
        (None, Some(text)) => Ok((text.to_vec(), is_generated)),
        (None, None) => Err(StartError::NoTask),
    }
}

/// Reads the plan file. Returns no file if none is named and the default one does not exist.
fn read_plan(project: &Project, new_run: &NewRun) -> Result<(Option<String>, TodoList), StartError> {
    let plan_file = new_run.plan_file.clone().unwrap_or_else(|| DEFAULT_PLAN.to_owned());
    match (disk::read_text(&project.root().join(&plan_file))?, &new_run.plan_file) {
        (Some(text), named_plan) => {
            let todo = TodoList::parse(&text);
            match todo_list::find_problem_in_parsed_plan(&todo, &text)
                .filter(|problem| !matches!(problem, PlanProblem::AllTicked(_)))
            {
                Some(problem) => Err(StartError::UnusablePlan(todo_list::render_plan_problem(
                    &problem,
                    &plan_file,
                    named_plan.is_some(),
                ))),
                None => Ok((Some(plan_file), todo)),
            }
        }
        (None, Some(_)) => Err(StartError::PlanMissing(plan_file)),
        (None, None) => Ok((None, TodoList::default())),
    }
}

/// Returns a warning if a new run has a plan without an open item: its sessions have nothing to work on.
pub fn no_open_items_message(run: &RunState) -> Option<String> {
    if !run.plan_items.todo_items.is_empty() {
        return None;
    }
    let plan_file = run.options.todo_file.as_ref()?;
    Some(todo_list::render_plan_problem(
        &PlanProblem::AllTicked(run.plan_items.known_items.len()),
        plan_file,
        plan_file != DEFAULT_PLAN,
    ))
}

/// Returns the checks that open items of the plan name now. They are stored outside the project: a check that
/// is written into the plan later does not run.
fn checks_of_open_items(todo: &TodoList) -> Vec<ItemCheck> {
    let to_check = |item: String| {
        let command = item_check::parse_verify_command(&item)?;
        Some(ItemCheck { item_text: item, command })
    };
    todo.open_items().into_iter().filter_map(to_check).collect()
}

fn new_run_state(
    project: &Project,
    new_run: &NewRun,
    task: &[u8],
    is_prompt_generated: bool,
    todo_file: Option<String>,
    todo: &TodoList,
) -> RunState {
    let text = String::from_utf8_lossy(task);
    // Editors on Windows start a file with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let folder_name =
        project.root().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let first_line =
        text.lines().map(|line| line.trim_start_matches(['#', ' '])).find(|line| !line.is_empty());
    let task_name = new_run
        .name
        .clone()
        .or(first_line.map(|line| truncate_end(&to_single_line(line), 60)))
        .unwrap_or(folder_name);
    RunState {
        run_id: RunId::from(uuid::Uuid::new_v4().to_string()),
        promise_code: PromiseCode::from_random_bits(uuid::Uuid::new_v4().as_fields().0),
        options: RunOptions {
            task_name: to_single_line(&task_name),
            objective: text.to_owned(),
            max_iterations: new_run.max_iterations,
            completion_promise: new_run.promise.clone(),
            todo_file,
            verify_commands: new_run.verify_commands.clone(),
            verify_timing: new_run.verify_timing,
            plan_checks: if new_run.runs_plan_checks { checks_of_open_items(todo) } else { Vec::new() },
            verify_sandbox: new_run.verify_sandbox,
            client: new_run.client.clone(),
            client_arguments: new_run.client_arguments.clone(),
            branch: new_run.branch.clone(),
            protected_paths: new_run.protected_paths.clone(),
            items_per_review: new_run.items_per_review,
            review_model: new_run.review_model.clone(),
            is_prompt_generated,
            limits: new_run.limits.clone(),
            commit_mode: new_run.commit_mode,
            runs_commit_hooks: new_run.runs_commit_hooks,
            packs_items: new_run.packs_items,
            uses_working_memory: new_run.uses_working_memory,
            strict_promise: new_run.strict_promise,
            idle_timeout_seconds: new_run.idle_timeout_seconds,
            tool_timeout_seconds: new_run.tool_timeout_seconds,
            notify_command: new_run.notify_command.clone(),
            workers: new_run.workers.clone(),
            item_brief: new_run.item_brief.clone(),
        },
        project_at_start: ProjectAtStart {
            started_at: clock::to_timestamp(clock::now()),
            ..ProjectAtStart::default()
        },
        plan_items: PlanItems {
            todo_items: todo.open_items(),
            completed_items: todo.ticked_items(),
            known_items: todo.items.iter().map(|item| item.text.clone()).collect(),
            ever_ticked_items: todo.ticked_items(),
            ..PlanItems::default()
        },
        ..RunState::default()
    }
}
