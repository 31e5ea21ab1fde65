//! Creates a run: checks its preconditions, and writes its state and first files.

use super::{StartError, records};
use crate::checkpoint::item_work::files_of_repository_without_commits;
use crate::client_modules;
use crate::install::git_exclude::add_run_files_to_git_exclude;
use crate::memory;
use crate::run::prompt::{self, PromptError};
use crate::run::{backup, branch, protect};
use plimsoll_domain::item_brief::ItemBrief;
use plimsoll_domain::item_check::{self, ItemCheck};
use plimsoll_domain::journal::{JournalEntry, JournalEvent, RunStartDetails};
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::promise::{PromiseCode, PromiseWord};
use plimsoll_domain::prompt::strip_prompt_block;
use plimsoll_domain::protected::ProtectedFiles;
use plimsoll_domain::state::{
    CheckpointCommitMode, PlanItems, ProjectAtStart, RunOptions, VerifyTiming, WorkerOptions,
};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
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
    pub allows_several_items_per_session: bool,
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
    /// Context about the whole plan for the run of a single item; `None` for a run with its own plan.
    pub item_brief: Option<ItemBrief>,
}

/// Creates a run: switches to its branch, writes its first files and state, starts its memory, and records the
/// start in the journal.
pub fn create_run(project: &Project, new_run: &NewRun) -> Result<RunState, StartError> {
    // The checks run before anything is written, and again under the lock.
    check_new_run(project, new_run)?;
    // A kill after this line leaves the branch checked out without a run; the same command can be repeated.
    let previous_branch = new_run
        .branch
        .as_deref()
        .map(|name| branch::switch_to_run_branch_and_get_previous(project, name, new_run.runs_commit_hooks))
        .transpose()?
        .flatten();
    // Before the lock, because no lock is held while git runs. A file that is created in between counts as
    // created by the run.
    let files_at_start = files_of_repository_without_commits(project);
    let head_at_start = git::head_commit(project.root()).map(String::from);
    // Also read before the lock, and after the switch to the run's branch.
    let protected_files = match new_run.workers.is_some() || new_run.item_brief.is_some() {
        true => ProtectedFiles::default(),
        false => protect::read_protected_files_with_committed_entries(
            project,
            &new_run.protected_paths,
            plan_path(new_run),
            new_run.runs_commit_hooks,
        )?,
    };
    let state_lock = state_file::lock_state(project, state_file::LOCK_TIMEOUT)?;
    let ValidatedRun { task, is_prompt_generated, todo_file, todo, previous_run } =
        read_and_validate_new_run(project, new_run)?;
    let previous_run = previous_run.unwrap_or_default();
    let mut state = build_run_state(project, new_run, &task, is_prompt_generated, todo_file, &todo);
    state.project_at_start.original_branch = previous_branch;
    state.project_at_start.earlier_subagent_usage = previous_run.project_subagent_usage();
    state.project_at_start.files_at_start = files_at_start;
    state.project_at_start.head_commit = head_at_start;
    // A later commit compares this, because the hooks and filters of a repository that an agent has created
    // must not run.
    state.project_at_start.git_folder_id_at_start = Some(layout::repository_identity(project.root()));
    state.plan_items.item_costs = previous_run.plan_items.item_costs;
    // The user sees these questions when the run starts, so they need no notification.
    state.update_parked_questions_from_plan(&todo);
    state.plan_items.parked_questions.iter_mut().for_each(|question| question.was_notified = true);
    state.options.protected_paths.clone_from(&protected_files.paths);
    write_new_run_files(project, &state, &task, &protected_files)?;
    drop(state_lock);
    // The lock is released, because git may take long. No session is running yet.
    protect::refresh_repository_identity(project, &state)?;
    begin_memory_and_journal_run_start(project, &state)?;
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
    add_run_files_to_git_exclude(project.root(), excluded_paths)?;
    // The copy is written before PROMPT.md: after a kill it shows that PROMPT.md was generated and not
    // written by the user.
    prompt::save_task_copy(project, task)?;
    if state.options.is_prompt_generated {
        disk::replace(&project.prompt_path(), task, Durability::Durable)?;
    }
    // Before the state, because a run that protects files and has no record of them can never be completed.
    if !protected_files.paths.is_empty() {
        protected_store::write_protected_record(project, &state.run_id, protected_files)?;
    }
    // The state is written last, because it makes the run exist. After an earlier kill the same command
    // writes the files again.
    Ok(state_file::create_ledger_and_write_initial_state(project, state)?)
}

/// Starts the memory, records the start in the journal and resets the backup copies. Called after the state
/// is written.
fn begin_memory_and_journal_run_start(project: &Project, state: &RunState) -> Result<(), StartError> {
    // The caller has released the state's lock, because locks are not nested. After a kill before this line,
    // `memory::abandon_frames_and_reopen_root_for_iteration` starts the root frame if the objective differs.
    memory::begin_run_memory_if_enabled(project, state)?;
    let start_details = RunStartDetails {
        task_name: Some(state.options.task_name.clone()),
        max_iterations: Some(state.options.max_iterations),
        item_count_text: Some(count_with_noun(state.plan_items.known_items.len(), "item")),
        verify_commands: Some(state.options.unique_verify_and_check_commands()),
        has_memory: Some(state.options.uses_working_memory),
        branch: state.options.branch.clone(),
        other_modules: client_modules::find_other_modules_from_settings_files(project),
        ..RunStartDetails::default()
    };
    journal::append_entry(project, JournalEntry::for_run(state, JournalEvent::RunStarted(start_details)))?;
    Ok(backup::recreate_backup_copies_for_new_run(project)?)
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

/// Checks that this run can be created. Writes nothing.
pub fn check_new_run(project: &Project, new_run: &NewRun) -> Result<(), StartError> {
    read_and_validate_new_run(project, new_run)?;
    new_run
        .branch
        .iter()
        .try_for_each(|name| branch::check_run_branch_and_get_current(project, name).map(|_| ()))?;
    let is_parallel = new_run.workers.is_some() || new_run.item_brief.is_some();
    if is_parallel && !new_run.protected_paths.is_empty() {
        return Err(ProtectError::UsedWithWorkers.into());
    }
    // Not with a branch, which may contain other files, and not for parallel runs, which protect no files.
    if new_run.branch.is_none() && !is_parallel {
        protect::check_and_read_requested_and_settings_paths(
            project,
            &new_run.protected_paths,
            plan_path(new_run),
        )?;
    }
    Ok(())
}

fn plan_path(new_run: &NewRun) -> Option<&str> {
    Some(new_run.plan_file.as_deref().unwrap_or(DEFAULT_PLAN))
}

/// The task and the plan of a run that several machines share.
#[derive(Debug)]
pub struct SharedWork {
    pub task: String,
    /// The plan file, relative to the project.
    pub plan: String,
    /// The parsed plan.
    pub todo: TodoList,
}

/// Reads the task and the plan that several machines are going to share. Returns an error if there is no plan,
/// or no open item in it. Writes nothing.
pub fn read_task_and_unfinished_plan_to_share(
    project: &Project,
    new_run: &NewRun,
) -> Result<SharedWork, StartError> {
    let previous_run = state_file::load_state(project, None)?;
    let (plan_file, todo) = read_and_validate_plan_if_any(project, new_run)?;
    let (task, _) =
        read_task_or_generate_from_plan(project, new_run, previous_run.as_ref(), plan_file.as_deref())?;
    let plan = plan_file.ok_or(StartError::NoPlanForWorkers)?;
    if todo.open_items().is_empty() {
        let message = todo_list::render_plan_problem_with_fix(
            &PlanProblem::AllTicked(todo.items.len()),
            &plan,
            plan != DEFAULT_PLAN,
        );
        return Err(StartError::UnusablePlan(message));
    }
    Ok(SharedWork { task: String::from_utf8_lossy(&task).into_owned(), plan, todo })
}

fn read_and_validate_new_run(project: &Project, new_run: &NewRun) -> Result<ValidatedRun, StartError> {
    if project.root().to_str().is_none() {
        return Err(StartError::NotUtf8(project.root().to_owned()));
    }
    records::reject_records_writable_by_sessions(project, &new_run.client_arguments)?;
    if let Some(document) = state_file::load_state_document_of_other_program(project)? {
        let missing_fields = shell_loop::missing_run_marker_fields(&document);
        return Err(StartError::StateNotWrittenByPlimsoll(shell_loop::describe_state_file_blocking_new_run(
            &project.relative_to_root(project.state_path()),
            &missing_fields,
        )));
    }
    reject_prompt_in_other_spelling(project)?;
    let previous_run = state_file::load_state(project, None)?;
    if let Some(active_run) = previous_run
        .as_ref()
        .filter(|previous| !previous.lifecycle.has_ended() && !previous.run_id.is_empty())
    {
        return Err(StartError::RunExists {
            name: active_run.options.task_name.clone(),
            run_id: active_run.run_id.clone(),
            status: active_run.lifecycle.status(),
            iteration: active_run.iteration,
        });
    }
    let (todo_file, todo) = read_and_validate_plan_if_any(project, new_run)?;
    let (task, is_prompt_generated) =
        read_task_or_generate_from_plan(project, new_run, previous_run.as_ref(), todo_file.as_deref())?;
    check_review_possible(project, new_run.items_per_review, todo_file.as_deref())?;
    if new_run.workers.is_some() && todo_file.is_none() {
        return Err(StartError::NoPlanForWorkers);
    }
    Ok(ValidatedRun { task, is_prompt_generated, todo_file, todo, previous_run })
}

/// Returns an error if reviews are enabled without a repository or a plan, because a review reads the diff of
/// ticked items.
pub(super) fn check_review_possible(
    project: &Project,
    items_per_review: u32,
    todo_file: Option<&str>,
) -> Result<(), StartError> {
    if items_per_review > 0 && todo_file.is_none() {
        return Err(StartError::NoPlanForReview);
    }
    if items_per_review > 0 && layout::find_git_folder(project.root()).is_none() {
        return Err(StartError::NoRepositoryToReview(project.root().display().to_string()));
    }
    Ok(())
}

/// Returns an error if the project has PROMPT.md under another name, which a volume that ignores case finds, too.
fn reject_prompt_in_other_spelling(project: &Project) -> Result<(), StartError> {
    const PROMPT_FILE: &str = "PROMPT.md";
    let listed_name = disk::on_disk_spelling_or_keep(project.root(), PROMPT_FILE);
    if listed_name == PROMPT_FILE {
        return Ok(());
    }
    Err(StartError::PromptSpelledDifferently(listed_name))
}

/// Returns the task, and whether Plimsoll generates PROMPT.md. Generates a task if there is only a plan.
fn read_task_or_generate_from_plan(
    project: &Project,
    new_run: &NewRun,
    previous_run: Option<&RunState>,
    plan_file: Option<&str>,
) -> Result<(Vec<u8>, bool), StartError> {
    match (read_task_and_whether_generated(project, new_run, previous_run), plan_file) {
        (Err(StartError::NoTask), Some(plan)) => {
            Ok((format!("Do what {} says.", to_safe_single_line(plan)).into_bytes(), true))
        }
        (result, _) => result,
    }
}

/// Returns the task's text, and whether Plimsoll generates PROMPT.md from it. Returns an error if the user
/// has both named an objective and written a PROMPT.md, or neither.
fn read_task_and_whether_generated(
    project: &Project,
    new_run: &NewRun,
    previous_run: Option<&RunState>,
) -> Result<(Vec<u8>, bool), StartError> {
    let prompt_file = disk::read(&project.prompt_path())?;
    let text = prompt_file
        .as_deref()
        .map(strip_prompt_block)
        .transpose()
        .map_err(|_| PromptError::MissingEndMarker)?;
    // A PROMPT.md that the previous run generated from its objective was not written by the user.
    let is_generated = previous_run.is_some_and(|previous| {
        previous.options.is_prompt_generated && text == Some(previous.options.objective.as_bytes())
    });
    // Neither was the PROMPT.md of a run that was killed before it wrote its state; the copy shows this.
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

/// Reads the plan file, and returns its name and the parsed plan. Returns an error if the plan is unusable or
/// the named file is missing, and no name if none was named and the default file does not exist.
fn read_and_validate_plan_if_any(
    project: &Project,
    new_run: &NewRun,
) -> Result<(Option<String>, TodoList), StartError> {
    // Git and later comparisons know the plan by the name that its folder lists, and not by every spelling that the
    // volume accepts.
    let plan_file =
        disk::on_disk_spelling_or_keep(project.root(), new_run.plan_file.as_deref().unwrap_or(DEFAULT_PLAN));
    match (disk::read_text(&project.root().join(&plan_file))?, &new_run.plan_file) {
        (Some(text), named_plan) => {
            let todo = TodoList::parse(&text);
            match todo_list::find_unclear_lines_or_lack_of_open_items(&todo, &text)
                .filter(|problem| !matches!(problem, PlanProblem::AllTicked(_)))
            {
                Some(problem) => Err(StartError::UnusablePlan(todo_list::render_plan_problem_with_fix(
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

/// Returns a warning if the run has a plan without an open item, so that its sessions have no work.
pub fn warning_if_no_open_items(run: &RunState) -> Option<String> {
    if !run.plan_items.todo_items.is_empty() {
        return None;
    }
    let plan_file = run.options.todo_file.as_ref()?;
    Some(todo_list::render_plan_problem_with_fix(
        &PlanProblem::AllTicked(run.plan_items.known_items.len()),
        plan_file,
        plan_file != DEFAULT_PLAN,
    ))
}

/// Returns the checks in the open items of the plan. They are stored outside the project, so that checks that
/// are written into the plan later do not run.
fn checks_of_open_items(todo: &TodoList) -> Vec<ItemCheck> {
    let to_check = |item: String| {
        let command = item_check::parse_verify_command(&item)?;
        Some(ItemCheck { item_text: item, command })
    };
    todo.open_items().into_iter().filter_map(to_check).collect()
}

fn build_run_state(
    project: &Project,
    new_run: &NewRun,
    task: &[u8],
    is_prompt_generated: bool,
    todo_file: Option<String>,
    todo: &TodoList,
) -> RunState {
    let task_text = String::from_utf8_lossy(task);
    // Editors on Windows start a file with a byte order mark.
    let task_text = task_text.trim_start_matches('\u{feff}');
    let folder_name =
        project.root().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let first_line =
        task_text.lines().map(|line| line.trim_start_matches(['#', ' '])).find(|line| !line.is_empty());
    let task_name = new_run
        .name
        .clone()
        .or(first_line.map(|line| truncate_end(&to_safe_single_line(line), 60)))
        .unwrap_or(folder_name);
    RunState {
        run_id: RunId::from(uuid::Uuid::new_v4().to_string()),
        promise_code: PromiseCode::from_random_bits(uuid::Uuid::new_v4().as_fields().0),
        options: RunOptions {
            task_name: to_safe_single_line(&task_name),
            objective: task_text.to_owned(),
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
            allows_several_items_per_session: new_run.allows_several_items_per_session,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn create_project(files: &[(&str, &str)]) -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        for (path, text) in files {
            disk::replace(&folder.path().join(path), text.as_bytes(), Durability::Lazy).unwrap();
        }
        (folder, project)
    }

    #[test]
    fn a_plan_is_known_by_the_name_that_its_folder_lists() {
        let (_folder, project) = create_project(&[("docs/Plan.md", "- [ ] One\n")]);
        let ignores_case = disk::exists(&project.root().join("DOCS"));
        let mut rows = vec![
            ("docs/Plan.md", Some("docs/Plan.md")),
            ("./docs//Plan.md", Some("docs/Plan.md")),
            ("missing.md", None),
        ];
        rows.extend(ignores_case.then_some(("DOCS/plan.MD", Some("docs/Plan.md"))));
        for (named_plan, expected) in rows {
            let new_run = NewRun { plan_file: Some(named_plan.to_owned()), ..NewRun::default() };
            let plan_file =
                read_and_validate_plan_if_any(&project, &new_run).ok().and_then(|(plan_file, _)| plan_file);
            assert_eq!(plan_file.as_deref(), expected, "{named_plan}");
        }
    }

    #[test]
    fn a_task_file_under_another_name_is_refused_where_it_would_be_overwritten() {
        let (_folder, project) = create_project(&[("PROMPT.md", "The task.\n")]);
        assert!(reject_prompt_in_other_spelling(&project).is_ok());
        let (_folder, project) = create_project(&[("prompt.md", "A file of the user.\n")]);
        let ignores_case = disk::exists(&project.prompt_path());
        match reject_prompt_in_other_spelling(&project) {
            Err(error) => {
                assert!(ignores_case && error.to_string().contains("as prompt.md: rename it"), "{error}");
            }
            Ok(()) => assert!(!ignores_case, "on this volume it would be overwritten"),
        }
    }
}
