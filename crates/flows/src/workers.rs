//! `plimsoll run --workers N`: several workers share a plan. Each item is a separate run in a separate
//! worktree, started as a child of this process. The results are merged into one branch.
//!
//! This process schedules and merges; `plimsoll_policy::workers` makes all decisions. Its record
//! ([`workers_file`]) is outside the project and is written before each step that depends on it: a claim before its
//! worktree is created, a process before its output is read, the commit to merge before the branch moves. After a
//! kill between two steps, the next `--resume` recovers from the record, from the pids and start times of the
//! processes, and from the commits on the branch.

mod board;
mod closing_reason;
pub mod connection;
mod context;
mod error;
mod item_budget;
pub(crate) mod item_figures;
mod item_run;
mod merger;
mod new_record;
pub mod pending_items;
pub mod project_checkout;
mod record_transfer;
pub mod repository_copy;
mod retry;
mod returned_work_store;
mod scheduler;
mod session_notes;
mod shown_plan;
mod slot;
mod target;
mod unchecked_item;
pub mod workers_file;
pub(crate) mod worktrees;

pub use error::{BoardError, WorkersError};
pub use target::{PlanOnTarget, RemoteTarget};

use crate::install::git_exclude::add_run_files_to_git_exclude;
use crate::run::daily_spending;
use crate::run::sandbox::CommandScope;
use crate::run::{Interrupt, LaunchOptions, Preflight, RunEvent, RunObserver};
use crate::run_context::RunContext;
use board::{Board, FleetBoard, LocalBoard};
use connection::BoardConnection;
use context::ParallelRun;
use new_record::{
    new_fleet_member_state, new_state_and_rewrite_shown_plan_with_answers, record_member_name_and_token,
};
use plimsoll_domain::RunState;
use plimsoll_domain::git_names::CommitId;
use plimsoll_domain::workers::MemberToken;
use plimsoll_launcher::plimsoll_repository::PlimsollRepository;
use plimsoll_launcher::worktree::PlanFiles;
use plimsoll_launcher::{git, process, worktree};
use plimsoll_store::{Durability, Project, StoreError, disk, environment, layout, ledger, lock};
use project_checkout::ITEM_PLAN_FILE;
use repository_copy::copy_and_print_messages_if_large;
use scheduler::Scheduler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use target::{FleetTarget, LocalTarget};
use workers_file::WorkersFile;
use worktrees::{SetupCommand, Worktrees};

/// The description of a fleet that a joining machine has in addition to the board.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetDescription {
    pub fleet_name: String,
    /// This machine's name in the fleet.
    pub member_name: String,
    /// The secret that belongs to the name.
    pub member_token: MemberToken,
    /// The name of the remote in the clone.
    pub remote_name: String,
    /// The texts of all items.
    pub item_texts: Vec<String>,
    /// The branch of the remote into which all work is merged.
    pub target_branch: String,
    /// The commit at which the fleet began.
    pub start_commit_id: String,
    /// The path of the plan below the project, if git tracks it.
    pub tracked_plan_path: Option<String>,
}

/// A fleet that this machine joins, with two connections to its board.
pub struct FleetJoin {
    pub fleet: FleetDescription,
    /// The connection for claims, and for reports of workers and the merger.
    pub board_connection: Box<dyn BoardConnection>,
    /// The connection that renews leases.
    pub heartbeat_connection: Box<dyn BoardConnection>,
    /// The branch of the remote into which results are merged.
    pub target: RemoteTarget,
    /// How long this machine waits while the board or the remote is unreachable.
    pub outage_timeout: Duration,
}

/// Returns true in the run of a single item, which leaves reporting to the run of the whole plan.
pub fn is_item_run() -> bool {
    environment::variable(worktrees::WORKER_VARIABLE).is_some()
}

/// Runs the plan with parallel workers until the run ends or pauses. Returns the exit code. With
/// `reopen_set_aside`, items that were set aside are reopened.
pub fn run_parallel_plan(
    context: RunContext<'_>,
    launch_options: &LaunchOptions,
    preflight: Preflight,
    initial_state: &RunState,
    reopen_set_aside: bool,
    observer: &mut dyn RunObserver,
) -> Result<u8, WorkersError> {
    // Keeps the run's lock until this function returns.
    let _preflight = preflight;
    let project = context.project;
    let (workers_file, worktrees) =
        prepare_workers_file_branch_and_worktrees(project, initial_state, observer)?;
    let state = context.load_newest_state()?.unwrap_or_else(|| initial_state.clone());
    if reopen_set_aside {
        workers_file.update_and_write_file(|workers| shown_plan::reopen_failed_items(&mut workers.board))?;
    }
    // A resume may raise the daily limit, and other runs may have ended since.
    if workers_file.workers_state().waits_for_next_day
        && daily_spending::daily_limit_pause_ignoring_deadline(project, &state).is_none()
    {
        workers_file.update_and_write_file(|workers| {
            (workers.board.paused_until, workers.waits_for_next_day) = (0, false);
        })?;
    }
    let board = LocalBoard::new(workers_file, project, worktrees.checkout.repository_root.clone());
    let target = LocalTarget::new(board.workers_file(), project, &state, &worktrees);
    let parallel_run = ParallelRun {
        context,
        launch_options,
        initial_state: &state,
        board: &board,
        target: &target,
        worktrees: &worktrees,
    };
    std::thread::scope(|scope| {
        Scheduler::new(scope, parallel_run, observer, true).run_loop_and_request_worker_end_on_error()
    })
}

/// The path, relative to the project, of the file that shows the plan on a fleet member.
pub const PLAN_COPY_PATH: &str = shown_plan::SHOWN_PLAN_FILE;

/// Returns this machine's name in the run's fleet, with its token. Returns `None` if the run belongs to no fleet, or
/// if its record has no token: then the machine needs a new name, because it cannot prove that it has the old one.
pub fn fleet_member_name_and_token(
    project: &Project,
    run_state: &RunState,
) -> Result<Option<(String, MemberToken)>, StoreError> {
    Ok(workers_file::load_workers_state(project, &run_state.run_id)?
        .and_then(|workers| workers.fleet_member)
        .filter(|fleet_member| !fleet_member.token.is_empty())
        .map(|fleet_member| (fleet_member.name, fleet_member.token)))
}

/// Returns the git folder into which this clone fetches a fleet's branches; sessions cannot write there.
/// Returns `None` without a home folder.
pub fn fleet_fetch_folder(project: &Project, fleet_name: &str) -> Option<std::path::PathBuf> {
    let clone_digest = plimsoll_domain::digest::sha256_hex(&[project.root().as_os_str().as_encoded_bytes()]);
    let name = format!("{fleet_name}-{}.git", clone_digest.get(..12)?);
    Some(ledger::records_folder(project)?.parent()?.join("fleets").join(name))
}

/// Works on the plan of a fleet until no item is left for this machine. Returns the exit code.
pub fn run_fleet_member(
    context: RunContext<'_>,
    launch_options: &LaunchOptions,
    preflight: Preflight,
    initial_state: &RunState,
    fleet_join: FleetJoin,
    observer: &mut dyn RunObserver,
) -> Result<u8, WorkersError> {
    // Keeps the run's lock until this function returns.
    let _preflight = preflight;
    let FleetJoin { fleet, board_connection, heartbeat_connection, target: remote_target, outage_timeout } =
        fleet_join;
    let project = context.project;
    let checkout = project_checkout::read_checkout_with_branch_and_head(project)?;
    let workers_file = WorkersFile::open_or_create(project, context.run_id, || {
        Ok(new_fleet_member_state(&fleet, &checkout))
    })?;
    record_member_name_and_token(&workers_file, &fleet)?;
    let board = FleetBoard::new(
        workers_file,
        board_connection,
        heartbeat_connection,
        remote_target.clone(),
        outage_timeout,
    );
    let (interrupts, should_stop) = (observer.interrupts().clone(), AtomicBool::new(false));
    let is_interrupted = || interrupts.has_requested(Interrupt::AfterSession);
    retry::retry_while_transient(retry::START_TIMEOUT, &is_interrupted, BoardError::is_unreachable, || {
        board.refresh_from_board()
    })?;
    board.check_items_listed_as_merged(&is_interrupted);
    let worktrees = write_shared_files_and_open_worktrees(
        project,
        initial_state,
        board.workers_file(),
        checkout,
        remote_target.merge_repository().clone(),
        true,
    )?;
    let state = context.load_newest_state()?.unwrap_or_else(|| initial_state.clone());
    let target = FleetTarget::new(&remote_target, board.workers_file(), &worktrees);
    let parallel_run = ParallelRun {
        context,
        launch_options,
        initial_state: &state,
        board: &board,
        target: &target,
        worktrees: &worktrees,
    };
    let should_cancel =
        || interrupts.has_requested(Interrupt::Immediately) || should_stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| board.run_heartbeat(&should_stop));
        scope.spawn(|| {
            board.run_result_delivery(&should_stop, &should_cancel, &|item| {
                merger::redacted_notes_of_item_sessions(&worktrees, item)
            });
        });
        // Does not report to Linear, because each machine of a fleet would report only its own part.
        let exit_code =
            Scheduler::new(scope, parallel_run, observer, false).run_loop_and_request_worker_end_on_error();
        should_stop.store(true, Ordering::Relaxed);
        exit_code
    })
}

/// Kills the item runs of a canceled run whose own process no longer exists. The processes are identified by
/// the recorded pid and start time.
pub fn end_item_runs_if_run_lock_is_free(project: &Project, run_state: &RunState) -> Result<(), StoreError> {
    // A live process of the run has this lock and ends its item runs itself. While this function has the lock,
    // no run can start.
    let Ok(_run_lock) = lock::acquire_run_lock(project, PROCESS_EXIT_TIMEOUT) else { return Ok(()) };
    for item_progress in
        workers_file::load_workers_state(project, &run_state.run_id)?.unwrap_or_default().item_progress
    {
        if let Some(pid) = item_progress.pid {
            process::request_end(
                process::ProcessIdentity { pid, start_time: item_progress.process_start_ticks },
                true,
            );
        }
    }
    Ok(())
}

/// How long to wait for the lock of a process that was just killed.
const PROCESS_EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Opens the record and the worktrees of a run. Creates the record and the target branch if they do not exist,
/// for example after a kill.
fn prepare_workers_file_branch_and_worktrees(
    project: &Project,
    run_state: &RunState,
    observer: &mut dyn RunObserver,
) -> Result<(WorkersFile, Worktrees), WorkersError> {
    let checkout = project_checkout::read_checkout_with_branch_and_head(project)?;
    let workers_file = WorkersFile::open_or_create(project, &run_state.run_id, || {
        new_state_and_rewrite_shown_plan_with_answers(project, run_state, &checkout)
    })?;
    let workers_state = workers_file.workers_state();
    let repository = &checkout.repository_root;
    let (Ok(target_branch), Ok(start_commit)) =
        (workers_state.parse_target_branch(), CommitId::parse(&workers_state.start_commit_id))
    else {
        return Err(WorkersError::CannotCreateTarget(workers_state.target_branch_name));
    };
    let branch_exists = worktree::tip_of_branch(repository, &target_branch).is_some();
    if !branch_exists
        && !worktree::move_or_create_branch_if_at_expected_tip(
            repository,
            &target_branch,
            None,
            &start_commit,
        )
    {
        return Err(WorkersError::CannotCreateTarget(workers_state.target_branch_name));
    }
    let merge_repository = open_or_copy_merge_repository(project, run_state, repository, observer)?;
    let worktrees = write_shared_files_and_open_worktrees(
        project,
        run_state,
        &workers_file,
        checkout,
        merge_repository,
        false,
    )?;
    Ok((workers_file, worktrees))
}

/// Opens the repository copy in which the results of a run are merged, and creates the copy first if necessary.
/// Prints a notice if copying takes long.
fn open_or_copy_merge_repository(
    project: &Project,
    run_state: &RunState,
    repository: &std::path::Path,
    observer: &mut dyn RunObserver,
) -> Result<PlimsollRepository, WorkersError> {
    let no_home_error = || StoreError::NoHome { project: project.root().to_owned() };
    let folder = worktrees::merge_git_folder(project, &run_state.run_id).ok_or_else(no_home_error)?;
    let needs_copy = !disk::exists(&folder);
    let show_notice = &mut |message| observer.on_event(&RunEvent::Notice(message));
    let merge_repository = copy_and_print_messages_if_large(repository, needs_copy, show_notice, || {
        PlimsollRepository::open_or_copy_from_clone(repository, &folder)
    });
    merge_repository.map_err(|error| WorkersError::CannotPrepareMergeWorktree(error.to_string()))
}

/// Writes the files that all worktrees share: the shown plan, the task file and the ignore patterns. Returns the
/// worktrees.
fn write_shared_files_and_open_worktrees(
    project: &Project,
    run_state: &RunState,
    workers_file: &WorkersFile,
    checkout: project_checkout::ProjectCheckout,
    merge_repository: PlimsollRepository,
    keeps_merge_repository: bool,
) -> Result<Worktrees, WorkersError> {
    let workers_state = workers_file.workers_state();
    let item_plan = checkout
        .path_in_repository_unless_outside(ITEM_PLAN_FILE)
        .ok_or(WorkersError::CannotPrepareMergeWorktree("no item can have a plan".to_owned()))?;
    // In a fleet, a plan that git does not track is shown in a file of Plimsoll, which is in no worktree.
    let is_plan_in_worktrees = workers_state.fleet_member.is_none() || workers_state.plan_is_tracked;
    let plan = is_plan_in_worktrees
        .then(|| checkout.path_in_repository_unless_outside(&workers_state.plan_path))
        .flatten();
    let plan_files = PlanFiles { plan, item_plan };
    let setup_command = run_state.options.workers.as_ref().and_then(|workers| workers.setup_command.clone());
    let setup_command =
        setup_command.map(|command| SetupCommand { command, scope: CommandScope::for_run(run_state) });
    let worktrees = Worktrees::new_and_open_merge_repository(
        project,
        run_state,
        checkout,
        plan_files,
        setup_command,
        merge_repository,
        keeps_merge_repository,
    );
    let worktrees = worktrees.map_err(|error| WorkersError::CannotPrepareMergeWorktree(error.to_string()))?;
    shown_plan::write_board_to_shown_plan_and_state(project, run_state, workers_file)?;
    write_task_file(project, run_state)?;
    // All worktrees share git's exclude file. It is written before any of their runs begins, so that none of them
    // has to change it.
    let is_prompt_tracked = git::is_tracked(project.root(), "PROMPT.md");
    let extra_patterns: &[&str] =
        if is_prompt_tracked { &[ITEM_PLAN_FILE] } else { &[ITEM_PLAN_FILE, "/PROMPT.md"] };
    add_run_files_to_git_exclude(project.root(), extra_patterns)?;
    Ok(worktrees)
}

/// Writes the task of the items' runs to a file that sessions cannot write.
fn write_task_file(project: &Project, run_state: &RunState) -> Result<(), StoreError> {
    let Some(path) = task_file_path(project, run_state) else { return Ok(()) };
    disk::replace(&path, run_state.options.objective.as_bytes(), Durability::Lazy)
}

/// Returns the project in the worktree of an item, by the item's number in the plan. Returns `None` if there
/// is no such worktree.
pub fn project_in_item_worktree(
    project: &Project,
    run_state: &RunState,
    item_number: usize,
) -> Option<Project> {
    let worktree = worktrees::worktrees_folder(project, &run_state.run_id)?.join(item_number.to_string());
    let (repository_root, _) = layout::find_repository(project.root())?;
    let project_path = project.root().strip_prefix(repository_root).ok()?;
    let item_project_root =
        if project_path.as_os_str().is_empty() { worktree } else { worktree.join(project_path) };
    disk::is_folder(&item_project_root).then(|| Project::with_local_files(&item_project_root))
}

fn task_file_path(project: &Project, run_state: &RunState) -> Option<std::path::PathBuf> {
    ledger::inherited_or_default_run_record_folder(project, &run_state.run_id)
        .map(|folder| folder.join("task.md"))
}
