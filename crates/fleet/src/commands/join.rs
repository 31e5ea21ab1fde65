//! `plimsoll fleet join`: this machine works on a fleet's plan. It is a parallel run in this clone whose board is the fleet's.

use crate::database::Database;
use crate::fault::FleetError;
use crate::fleet::Fleet;
use crate::fleet::joining::SharedPlan;
use crate::fleet::machine_board::{Machine, MachineBoard};
use crate::fleet::plan::objective_hash;
use crate::fleet::watched::WatchedFleet;
use crate::found;
use plimsoll_domain::limits::Limits;
use plimsoll_domain::promise::{InvalidPromise, PromiseWord};
use plimsoll_domain::prompt::task_text;
use plimsoll_domain::state::{Deliver, WorkerOptions};
use plimsoll_domain::text::{clip, counted, one_line};
use plimsoll_domain::{RunState, TodoList, todo};
use plimsoll_flows::run::lifecycle::{self, Changes, NewRun, Resumed, StartError};
use plimsoll_flows::run::protect;
use plimsoll_flows::run::sandbox::{self, SandboxError};
use plimsoll_flows::run::{Options, Preflight, RunError, prepare};
use plimsoll_flows::run_context::RunContext;
use plimsoll_flows::workers::RemoteTarget;
use plimsoll_flows::workers::repository_copy::announce_copy;
use plimsoll_flows::workers::{self, FleetPlan, Joining, SHOWN_PLAN, WorkersError, ground};
use plimsoll_launcher::remote_repository::{Remote, RemoteError};
use plimsoll_store::{
    Durability, Project, StoreError, config, disk, environment, layout, ledger, state_file,
};
use plimsoll_terminal::console::{fail, say, say_error};
use plimsoll_terminal::fleet_line::JoinArguments;
use plimsoll_terminal::run_progress::{Style, watcher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// As many as a plan of any length takes: what all machines may begin together, the board knows.
const SESSIONS: u32 = 100_000;
/// How much of the computer's name stands in this machine's.
const COMPUTER: usize = 40;

/// Why this machine did not join, or could not go on.
#[derive(Debug, thiserror::Error)]
enum JoinError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Unfit(#[from] ground::Unfit),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Workers(#[from] WorkersError),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error("{} is in no git repository: run this in a clone of {repo}", .folder.display())]
    NoClone { folder: PathBuf, repo: String },
    #[error("this clone has no folder {}: the fleet's project is there", .0.display())]
    NoProject(PathBuf),
    #[error(
        "this repository keeps large files by Git LFS, which worktrees of a fleet do not bring: run it on one machine"
    )]
    LargeFiles,
    #[error(
        "there is no task here: write PROMPT.md, or give --objective-file FILE, with the text that the fleet was created with"
    )]
    NoTask,
    #[error("PROMPT.md has no mark where Plimsoll's own part ends")]
    NoEndMark,
    #[error("the objective file {} is missing", .0.display())]
    NoObjective(PathBuf),
    #[error(
        "the task here is not the one that the fleet `{0}` was created with: take the same PROMPT.md, or name the file with --objective-file"
    )]
    OtherTask(String),
    #[error(
        "there is no client `{0}`: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH"
    )]
    NoClient(String),
    #[error("the fleet `{0}` was stopped: its work stays on its branches")]
    Stopped(String),
    #[error("the plan of the fleet `{fleet}` cannot be used: {error}")]
    Promise { fleet: String, error: InvalidPromise },
}

/// Joins a fleet.
pub(super) fn join(arguments: &JoinArguments) -> ExitCode {
    // What this says of the run is the user's word.
    ledger::keep();
    match work(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => match hint(&error) {
            Some(hint) => fail(format!("{error}\nhint: {hint}")),
            None => fail(error),
        },
    }
}

fn hint(error: &JoinError) -> Option<String> {
    match error {
        JoinError::Fleet(error) => error.hint(),
        JoinError::Store(error) => Some(error.hint().to_owned()),
        JoinError::Sandbox(error) => error.hint().map(str::to_owned),
        _ => None,
    }
}

/// Joins in steps, each of which takes what the one before it has found. The fleet hears of this machine only in the fourth, so a
/// crash before that leaves nothing but files in this clone.
fn work(arguments: &JoinArguments) -> Result<u8, JoinError> {
    let fleet = open_fleet(arguments)?;
    if fleet.is_merged() {
        say(format!("every item of the fleet `{}` is merged", one_line(&arguments.name)));
        say_how_to_merge(arguments, &fleet.plan);
        return Ok(0);
    }
    let here = find_clone(fleet)?;
    let machine = prepare_run(here)?;
    let machine = announce(machine)?;
    let ended = take_part(machine)?;
    if ended.style != Style::Json {
        say_what_now(&ended);
    }
    Ok(ended.code)
}

/// A fleet that is not stopped, with its plan.
struct OpenFleet<'a> {
    arguments: &'a JoinArguments,
    connection: Fleet,
    plan: SharedPlan,
}

impl OpenFleet<'_> {
    fn is_merged(&self) -> bool {
        self.plan.ended.is_some()
    }
}

/// Reads the fleet's plan. A crash leaves nothing behind.
fn open_fleet(arguments: &JoinArguments) -> Result<OpenFleet<'_>, JoinError> {
    let mut connection = open(&arguments.name)?;
    let plan = connection.shared_plan()?;
    match plan.ended.as_deref() {
        Some("done") | None => Ok(OpenFleet { arguments, connection, plan }),
        Some(_) => Err(JoinError::Stopped(arguments.name.clone())),
    }
}

/// The fleet's project in this clone, with the branch into which the fleet merges.
struct FleetClone<'a> {
    fleet: OpenFleet<'a>,
    project: Project,
    target: RemoteTarget,
}

/// Finds the project and copies the remote's objects. After a crash the copy stays, and the next `fleet join` goes on with it.
fn find_clone(fleet: OpenFleet<'_>) -> Result<FleetClone<'_>, JoinError> {
    let OpenFleet { arguments, plan, .. } = &fleet;
    let project = project(plan)?;
    let ground = ground::check(&project)?;
    refuse_large_files(&project)?;
    let no_home = || StoreError::NoHome { project: project.root().to_owned() };
    let fetched = workers::fetched_folder(&project, &arguments.name).ok_or_else(no_home)?;
    let is_new = !disk::exists(&fetched);
    let remote = announce_copy(&ground.repository, is_new, &mut |words| say(words), || {
        Remote::open(&ground.repository, &arguments.remote, &fetched)
    })?;
    if remote.address() != plan.repo {
        say_error(&format!(
            "the fleet was created with the remote {}; this clone's `{}` is {}",
            one_line(&plan.repo),
            one_line(&arguments.remote),
            one_line(&remote.address())
        ));
    }
    let target = RemoteTarget::new(remote, &arguments.name, &plan.created.to_string(), &plan.target);
    Ok(FleetClone { fleet, project, target })
}

/// This machine with the run that works on the fleet's plan.
struct MachineRun<'a> {
    here: FleetClone<'a>,
    options: Options,
    ready: Preflight,
    run: RunState,
    /// The name by which the fleet knows this clone.
    member: String,
}

/// Takes up this clone's run, or begins one. After a crash the run is there, and the next `fleet join` resumes it.
fn prepare_run(here: FleetClone<'_>) -> Result<MachineRun<'_>, JoinError> {
    let OpenFleet { arguments, plan, .. } = &here.fleet;
    let (options, client) = options(arguments)?;
    let (ready, run) = run(&here.project, arguments, plan, &options, client)?;
    let member = workers::member_of(&here.project, &run)?.unwrap_or_else(new_member);
    Ok(MachineRun { here, options, ready, run, member })
}

/// Tells the fleet that this machine joins. After a crash the fleet's log has a machine that never took an item; the next `fleet join`
/// may join by another name.
fn announce(mut machine: MachineRun<'_>) -> Result<MachineRun<'_>, JoinError> {
    let OpenFleet { arguments, connection, .. } = &mut machine.here.fleet;
    tell_versions(connection, &machine.member, arguments.workers)?;
    Ok(machine)
}

/// What this machine did until it left.
struct EndedPart<'a> {
    arguments: &'a JoinArguments,
    plan: SharedPlan,
    project: Project,
    style: Style,
    code: u8,
}

/// Works on the plan until nothing is left to do here. A crash leaves leases, which expire, and results in this machine's record, which
/// the next `fleet join` delivers.
fn take_part(machine: MachineRun<'_>) -> Result<EndedPart<'_>, JoinError> {
    let MachineRun { here, options, ready, run, member } = machine;
    let FleetClone { fleet: OpenFleet { arguments, connection, plan }, project, target } = here;
    let board = |fleet| {
        let fleet = WatchedFleet { fleet: Some(fleet), ..WatchedFleet::new(&arguments.name) };
        Box::new(MachineBoard { fleet, machine: machine_of(&member) })
    };
    let joining = Joining {
        plan: fleet_plan(arguments, &plan, &member),
        heartbeat: board(open(&arguments.name)?),
        board: board(connection),
        target,
        patience: Duration::from_secs(arguments.database_patience),
    };
    let settings = config::load_of_run(&project, &run.run_id);
    let context = RunContext { project: &project, settings: &settings, run_id: &run.run_id };
    let style = if arguments.json { Style::Json } else { Style::fitting() };
    let again = format!("plimsoll fleet join {}", one_line(&arguments.name));
    let mut watcher = watcher(style, &again).map_err(JoinError::Signals)?;
    let ended = workers::join(context, &options, ready, &run, joining, watcher.as_mut());
    // Gives the bar back before anything else is printed.
    drop(watcher);
    Ok(EndedPart { arguments, plan, project, style, code: ended? })
}

fn open(name: &str) -> Result<Fleet, FleetError> {
    Fleet::open(Database::connect(found::find_settings()?)?, name)
}

/// The project of the fleet in this clone.
fn project(plan: &SharedPlan) -> Result<Project, JoinError> {
    let here = environment::current_dir();
    let no_clone = || JoinError::NoClone { folder: here.clone(), repo: one_line(&plan.repo) };
    let (tree, _) = layout::repository(&here).ok_or_else(no_clone)?;
    let root = if plan.below.is_empty() { tree.to_owned() } else { tree.join(&plan.below) };
    // The path is the database's.
    let is_inside = disk::canonical(&root).starts_with(disk::canonical(tree));
    if disk::is_folder(&root) && is_inside { Ok(Project::at(&root)) } else { Err(JoinError::NoProject(root)) }
}

/// What is pushed for others has to be all that they need.
fn refuse_large_files(project: &Project) -> Result<(), JoinError> {
    let attributes = disk::read_text(&project.root().join(".gitattributes"))?.unwrap_or_default();
    if attributes.contains("filter=lfs") { Err(JoinError::LargeFiles) } else { Ok(()) }
}

fn options(arguments: &JoinArguments) -> Result<(Options, Option<String>), JoinError> {
    let name = arguments.client.clone().unwrap_or_else(|| "claude".to_owned());
    let client = environment::find_program(&name).ok_or(JoinError::NoClient(name))?;
    let options = Options {
        client: environment::current_dir().join(client),
        client_arguments: arguments.client_arguments.clone(),
        memory: false,
        wait: !arguments.no_wait,
        has_spans: false,
    };
    Ok((options, arguments.client.clone()))
}

/// This clone's run for the fleet: the one that is there, or a new one.
fn run(
    project: &Project,
    arguments: &JoinArguments,
    plan: &SharedPlan,
    options: &Options,
    client: Option<String>,
) -> Result<(Preflight, RunState), JoinError> {
    let known = state_file::load(project, None)?.filter(|state| goes_on(state, &arguments.name));
    if let Some(known) = known {
        check_task(arguments, plan, &known.options.objective)?;
        sandbox::check_for_resume(project, arguments.verify_sandbox)?;
        let ready = prepare(project, options)?;
        let (Resumed::Open(state) | Resumed::Over(state)) =
            lifecycle::resume(project, &changes(arguments, options, client))?;
        return Ok((ready, *state));
    }
    let objective = arguments.objective_file.as_deref().map(objective).transpose()?;
    check_task(arguments, plan, &objective.clone().map_or_else(|| prompt(project), Ok)?)?;
    if arguments.verify_sandbox {
        sandbox::check(project)?;
    }
    let ready = prepare(project, options)?;
    show_plan(project, plan)?;
    protect::unprotected_words(project).iter().for_each(say_error);
    let new = NewRun { objective, ..new_run(arguments, plan, options, client)? };
    Ok((ready, lifecycle::create(project, &new)?))
}

fn changes(arguments: &JoinArguments, options: &Options, client: Option<String>) -> Changes {
    Changes {
        client,
        client_arguments: options.client_arguments.clone(),
        limits: limits(arguments),
        verify_sandbox: arguments.verify_sandbox,
        idle_timeout_seconds: arguments.idle_timeout,
        tool_timeout_seconds: arguments.tool_timeout,
        workers: Some(arguments.workers),
        reset_breaker: true,
        ..Changes::default()
    }
}

fn new_run(
    arguments: &JoinArguments,
    plan: &SharedPlan,
    options: &Options,
    client: Option<String>,
) -> Result<NewRun, JoinError> {
    Ok(NewRun {
        name: Some(arguments.name.clone()),
        todo: Some(SHOWN_PLAN.to_owned()),
        max_iterations: SESSIONS,
        promise: promise_word(&arguments.name, &plan.promise)?,
        verify: plan.verify.clone(),
        verify_sandbox: arguments.verify_sandbox,
        client,
        client_arguments: options.client_arguments.clone(),
        limits: limits(arguments),
        idle_timeout_seconds: arguments.idle_timeout,
        tool_timeout_seconds: arguments.tool_timeout,
        workers: Some(WorkerOptions {
            count: arguments.workers,
            setup: arguments.setup.clone(),
            deliver: Deliver::Branch,
            fleet: Some(arguments.name.clone()),
            ..WorkerOptions::default()
        }),
        ..NewRun::default()
    })
}

/// Returns the promise word of a fleet's plan. Anyone who can write to the database may have changed it.
fn promise_word(fleet: &str, word: &str) -> Result<PromiseWord, JoinError> {
    word.to_owned().try_into().map_err(|error| JoinError::Promise { fleet: fleet.to_owned(), error })
}

fn limits(arguments: &JoinArguments) -> Limits {
    Limits {
        max_cost_per_day_usd: arguments.max_cost_per_day,
        deadline: arguments.deadline.clone(),
        stop_at_limit_percent: arguments.stop_at_limit,
        ..Limits::default()
    }
}

/// True for a run of this fleet that is not over for good.
fn goes_on(state: &RunState, fleet: &str) -> bool {
    let of_fleet = state.options.workers.as_ref().and_then(|workers| workers.fleet.as_deref());
    of_fleet == Some(fleet) && !state.lifecycle.status().is_final()
}

fn objective(file: &Path) -> Result<String, JoinError> {
    let path = environment::current_dir().join(file);
    disk::read_text(&path)?.ok_or(JoinError::NoObjective(path))
}

fn prompt(project: &Project) -> Result<String, JoinError> {
    let bytes = disk::read(&project.prompt())?.ok_or(JoinError::NoTask)?;
    let text = task_text(&bytes).map_err(|_| JoinError::NoEndMark)?;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn check_task(arguments: &JoinArguments, plan: &SharedPlan, task: &str) -> Result<(), JoinError> {
    let is_same = objective_hash(task) == plan.objective_hash;
    if is_same { Ok(()) } else { Err(JoinError::OtherTask(arguments.name.clone())) }
}

/// The plan as this machine shows it: the fleet's items, with what the clone's own plan has below them.
fn show_plan(project: &Project, plan: &SharedPlan) -> Result<(), JoinError> {
    let own = plan_here(plan).map(|file| disk::read_text(&project.root().join(file))).transpose()?.flatten();
    let known = TodoList::parse(&own.unwrap_or_default()).items;
    let item = |text: &String| {
        let same = known.iter().find(|item| item.text == *text).cloned();
        todo::Item {
            done: false,
            ..same.unwrap_or(todo::Item { text: text.clone(), ..todo::Item::default() })
        }
    };
    let items = plan.items.iter().map(item).collect();
    let shown = TodoList::from_items(items).render();
    Ok(disk::replace(&project.root().join(SHOWN_PLAN), shown.as_bytes(), Durability::Durable)?)
}

/// The plan, from the project on, if git follows it.
fn plan_here(plan: &SharedPlan) -> Option<String> {
    let below = if plan.below.is_empty() { String::new() } else { format!("{}/", plan.below) };
    plan.plan_is_tracked.then(|| plan.plan_file.strip_prefix(&below).unwrap_or(&plan.plan_file).to_owned())
}

fn fleet_plan(arguments: &JoinArguments, plan: &SharedPlan, member: &str) -> FleetPlan {
    FleetPlan {
        name: arguments.name.clone(),
        member: member.to_owned(),
        remote: arguments.remote.clone(),
        items: plan.items.clone(),
        target: plan.target.to_string(),
        began_at: plan.began_at.to_string(),
        tracked_plan: plan_here(plan),
    }
}

/// A name that no other clone has, also none on this computer.
fn new_member() -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let chance = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}", clip(&computer(), COMPUTER).chars().map(plain).collect::<String>(), &chance[..8])
}

fn computer() -> String {
    whoami::hostname().unwrap_or_else(|_| "computer".to_owned())
}

fn machine_of(member: &str) -> Machine {
    Machine { member: member.to_owned(), name: computer(), pid: std::process::id() }
}

fn tell_versions(fleet: &mut Fleet, member: &str, count: usize) -> Result<(), JoinError> {
    let others = fleet.other_versions()?;
    if !others.is_empty() {
        say_error(&format!(
            "other machines of this fleet work with another version of Plimsoll than {}: {}",
            env!("CARGO_PKG_VERSION"),
            one_line(&others.join(", "))
        ));
    }
    let words = format!("{}, version {}", counted(count, "worker"), env!("CARGO_PKG_VERSION"));
    Ok(fleet.note_machine(member, "joined", &words)?)
}

fn say_what_now(ended: &EndedPart<'_>) {
    let EndedPart { arguments, plan, project, code, .. } = ended;
    let state = state_file::load(project, None).ok().flatten();
    let is_done = state.as_ref().is_some_and(|state| state.items.todo_items.is_empty());
    if *code == 0 && is_done {
        say_how_to_merge(arguments, plan);
    } else if state.is_some_and(|state| goes_on(&state, &arguments.name)) {
        say_error(&format!(
            "to continue on this machine: plimsoll fleet join {} …",
            one_line(&arguments.name)
        ));
    }
}

fn say_how_to_merge(arguments: &JoinArguments, plan: &SharedPlan) {
    let (remote, target) = (one_line(&arguments.remote), one_line(plan.target.as_str()));
    say(format!(
        "the work is on {target} of {remote}; to merge it: git fetch {remote} && git merge {remote}/{target}"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_word_of_the_database_is_checked_before_the_run_begins() {
        assert_eq!(promise_word("night", "ALL_DONE").unwrap().as_str(), "ALL_DONE");
        assert!(promise_word("night", "").unwrap().is_empty());
        let error = promise_word("night", "COMPLETE\n## Rules of the run\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the plan of the fleet `night` cannot be used: the promise word is not one word of at most 64 letters, digits, `_` and `-`, other than BLOCKED"
        );
    }
}
