//! `plimsoll run --workers N`: several workers share a plan. Each item is a run of its own in a worktree of its own, a child of
//! this process; what they have done comes together on one branch.
//!
//! This process schedules and merges, and decides through `plimsoll_policy::workers` alone. Its record ([`table`]) is outside the
//! project and written before whatever follows from it: a claim before its worktree, a process before it is followed, a landing's
//! commit before the branch moves. A kill between two steps leaves what the next `--resume` finds by the record, by the
//! processes' pids and start times, and by the commits on the branch.

mod board;
mod child;
mod closing;
pub mod connection;
mod context;
mod error;
pub mod ground;
pub(crate) mod item_figures;
mod means;
mod merger;
mod new_record;
pub mod pending_items;
mod records;
pub mod repository_copy;
mod retry;
mod returned;
mod scheduler;
mod session_notes;
mod shown_plan;
mod slot;
pub mod table;
mod target;
pub(crate) mod tree;

pub use error::{BoardError, WorkersError};
pub use target::RemoteTarget;

use crate::install::git_exclude::exclude_run_files;
use crate::run::day;
use crate::run::sandbox::CommandScope;
use crate::run::{Interrupt, Options, Preflight, Progress, RunObserver};
use crate::run_context::RunContext;
use board::{Board, FleetBoard, LocalBoard};
use connection::BoardConnection;
use context::ParallelRun;
use ground::ITEM_PLAN;
use new_record::{new_record, record_of_member};
use plimsoll_domain::RunState;
use plimsoll_domain::git_names::CommitId;
use plimsoll_launcher::own_repository::OwnRepository;
use plimsoll_launcher::worktree::PlanFiles;
use plimsoll_launcher::{git, process, worktree};
use plimsoll_store::{Durability, Project, StoreError, disk, environment, layout, ledger, lock};
use repository_copy::announce_copy;
use scheduler::Scheduler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use table::Table;
use target::{FleetTarget, LocalTarget};
use tree::{Setup, Trees};

/// What a machine that joins a fleet knows of it beside the board.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetPlan {
    /// The fleet's name.
    pub name: String,
    /// This machine's own name in it.
    pub member: String,
    /// What the clone calls the remote.
    pub remote: String,
    /// The words of all items.
    pub items: Vec<String>,
    /// The branch of the remote into which everything is merged.
    pub target: String,
    /// The commit at which it began.
    pub began_at: String,
    /// The plan, from the project on, if git follows it.
    pub tracked_plan: Option<String>,
}

/// A fleet that is joined, with two connections to its board.
pub struct Joining {
    /// What is known of it.
    pub plan: FleetPlan,
    /// For claims, and for what workers and the merger say.
    pub board: Box<dyn BoardConnection>,
    /// For what keeps leases.
    pub heartbeat: Box<dyn BoardConnection>,
    /// Where results come together.
    pub target: RemoteTarget,
    /// How long this machine waits while the board or the remote is away.
    pub patience: Duration,
}

/// True in the run of one item: the run of the whole plan reports for it.
pub fn is_item_run() -> bool {
    environment::variable(tree::WORKER_VARIABLE).is_some()
}

/// Runs a parallel run to its end (or its pause); answers with the exit code. `reopen` opens again what was set aside.
pub fn run(
    context: RunContext<'_>,
    options: &Options,
    ready: Preflight,
    run: &RunState,
    reopen: bool,
    watcher: &mut dyn RunObserver,
) -> Result<u8, WorkersError> {
    // Its lock is held as long as this process works.
    let _ready = ready;
    let project = context.project;
    let (table, trees) = open(project, run, watcher)?;
    let run = context.load_state()?.unwrap_or_else(|| run.clone());
    if reopen {
        table.change(|workers| shown_plan::reopen_all(&mut workers.board))?;
    }
    // A resume may allow more, and other runs may be over.
    if table.now().waits_for_next_day && day::is_spent(project, &run).is_none() {
        table.change(|workers| (workers.board.paused_until, workers.waits_for_next_day) = (0, false))?;
    }
    let board = LocalBoard::new(table, project, trees.ground.repository.clone());
    let target = LocalTarget::new(board.table(), project, &run, &trees);
    let work = ParallelRun { context, options, state: &run, board: &board, target: &target, trees: &trees };
    std::thread::scope(|scope| Scheduler::new(scope, work, watcher, true).run())
}

/// The file that shows a member its plan, from the project on.
pub const SHOWN_PLAN: &str = shown_plan::SHOWN;

/// This machine's name in the fleet for which a run works.
pub fn member_of(project: &Project, run: &RunState) -> Result<Option<String>, StoreError> {
    Ok(table::load(project, &run.run_id)?.and_then(|workers| workers.member).map(|member| member.name))
}

/// Where this clone keeps what it fetches of a fleet: outside of where sessions write. None without a home.
pub fn fetched_folder(project: &Project, fleet: &str) -> Option<std::path::PathBuf> {
    let clone = plimsoll_domain::digest::sha256(&[project.root().as_os_str().as_encoded_bytes()]);
    let name = format!("{fleet}-{}.git", clone.get(..12)?);
    Some(ledger::all_records(project)?.parent()?.join("fleets").join(name))
}

/// Works on the plan of a fleet until nothing of it is left for this machine; answers with the exit code.
pub fn join(
    context: RunContext<'_>,
    options: &Options,
    ready: Preflight,
    run: &RunState,
    joining: Joining,
    watcher: &mut dyn RunObserver,
) -> Result<u8, WorkersError> {
    // Its lock is held as long as this process works.
    let _ready = ready;
    let Joining { plan, board, heartbeat, target: remote, patience } = joining;
    let project = context.project;
    let ground = ground::look(project)?;
    let table = Table::open(project, context.run_id, || Ok(record_of_member(&plan, &ground)))?;
    let board = FleetBoard::new(table, board, heartbeat, remote.clone(), patience);
    let (interrupts, ends) = (watcher.interrupts().clone(), AtomicBool::new(false));
    let is_interrupted = || interrupts.has_asked(Interrupt::Once);
    retry::retry(retry::BEGINNING, &is_interrupted, BoardError::is_away, || board.look())?;
    let trees = settle_in(project, run, board.table(), ground, remote.own().clone(), true)?;
    let run = context.load_state()?.unwrap_or_else(|| run.clone());
    let target = FleetTarget::new(&remote, board.table(), &trees);
    let work = ParallelRun { context, options, state: &run, board: &board, target: &target, trees: &trees };
    let give_up = || interrupts.has_asked(Interrupt::Again) || ends.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| board.beat(&ends));
        scope.spawn(|| board.deliver_results(&ends, &give_up, &|item| merger::notes(&trees, item)));
        // Of a fleet each machine would tell Linear its own part.
        let code = Scheduler::new(scope, work, watcher, false).run();
        ends.store(true, Ordering::Relaxed);
        code
    })
}

/// Ends what the workers of a run that was cancelled have at work, where its own process is gone: what was written down as theirs,
/// by pid and start time.
pub fn end_left(project: &Project, run: &RunState) -> Result<(), StoreError> {
    // A process that lives ends them itself; and while this is held, none begins.
    let Ok(_only) = lock::acquire_run(project, DYING) else { return Ok(()) };
    for work in table::load(project, &run.run_id)?.unwrap_or_default().works {
        if let Some(pid) = work.pid {
            process::ask_to_end(process::Identity { pid, started: work.process_started }, true);
        }
    }
    Ok(())
}

/// One that was killed takes a moment to let go of its lock.
const DYING: Duration = Duration::from_millis(500);

/// The record and the branch of a run, made where a kill has left none.
fn open(
    project: &Project,
    run: &RunState,
    watcher: &mut dyn RunObserver,
) -> Result<(Table, Trees), WorkersError> {
    let ground = ground::look(project)?;
    let table = Table::open(project, &run.run_id, || new_record(project, run, &ground))?;
    let now = table.now();
    let repository = &ground.repository;
    let (Ok(target), Ok(began_at)) = (now.target_branch(), CommitId::parse(&now.began_at)) else {
        return Err(WorkersError::NoTarget(now.target));
    };
    let is_there = worktree::end_of(repository, &target).is_some();
    if !is_there && !worktree::move_branch(repository, &target, None, &began_at) {
        return Err(WorkersError::NoTarget(now.target));
    }
    let own = copy_repository(project, run, repository, watcher)?;
    let trees = settle_in(project, run, &table, ground, own, false)?;
    Ok((table, trees))
}

/// The repository of ours in which the results of a run are merged, made before the first session. The user is told if that takes
/// long.
fn copy_repository(
    project: &Project,
    run: &RunState,
    repository: &std::path::Path,
    watcher: &mut dyn RunObserver,
) -> Result<OwnRepository, WorkersError> {
    let home = || StoreError::NoHome { project: project.root().to_owned() };
    let folder = tree::merge_git_folder(project, &run.run_id).ok_or_else(home)?;
    let is_new = !disk::exists(&folder);
    let print = &mut |words| watcher.tell(&Progress::Note(words));
    let own = announce_copy(repository, is_new, print, || OwnRepository::open(repository, &folder));
    own.map_err(|error| WorkersError::NoMerger(error.to_string()))
}

/// Where the worktrees are, and what is there before the first of them.
fn settle_in(
    project: &Project,
    run: &RunState,
    table: &Table,
    ground: ground::Ground,
    own: OwnRepository,
    keeps_repository: bool,
) -> Result<Trees, WorkersError> {
    let now = table.now();
    let item_plan =
        ground.repo_path(ITEM_PLAN).ok_or(WorkersError::NoMerger("no item can have a plan".to_owned()))?;
    // What a fleet shows of a plan that git does not track lies among our own files.
    let has_plan = now.member.is_none() || now.plan_is_tracked;
    let plan = has_plan.then(|| ground.repo_path(&now.plan)).flatten();
    let plan_files = PlanFiles { plan, item_plan };
    let setup = run.options.workers.as_ref().and_then(|workers| workers.setup.clone());
    let setup = setup.map(|command| Setup { command, scope: CommandScope::of_run(run) });
    let trees = Trees::open(project, run, ground, plan_files, setup, own, keeps_repository);
    let trees = trees.map_err(|error| WorkersError::NoMerger(error.to_string()))?;
    shown_plan::show(project, run, table)?;
    keep_task(project, run)?;
    // All worktrees share this file: written before any of their runs begins, so that none of them has anything to add.
    let is_prompt_tracked = git::is_tracked(project.root(), "PROMPT.md");
    let extra: &[&str] = if is_prompt_tracked { &[ITEM_PLAN] } else { &[ITEM_PLAN, "/PROMPT.md"] };
    exclude_run_files(project.root(), extra)?;
    Ok(trees)
}

/// The task as the items' runs are given it, outside of where sessions write.
fn keep_task(project: &Project, run: &RunState) -> Result<(), StoreError> {
    let Some(path) = task_path(project, run) else { return Ok(()) };
    disk::replace(&path, run.options.objective.as_bytes(), Durability::Lazy)
}

/// The project in the worktree of an item, by the item's number in the plan; none if there is none (any more).
pub fn project_of_item(project: &Project, run: &RunState, number: usize) -> Option<Project> {
    let tree = tree::folder(project, &run.run_id)?.join(number.to_string());
    let (top, _) = layout::repository(project.root())?;
    let below = project.root().strip_prefix(top).ok()?;
    let root = if below.as_os_str().is_empty() { tree } else { tree.join(below) };
    disk::is_folder(&root).then(|| Project::at(&root))
}

fn task_path(project: &Project, run: &RunState) -> Option<std::path::PathBuf> {
    ledger::folder(project, &run.run_id).map(|folder| folder.join("task.md"))
}
