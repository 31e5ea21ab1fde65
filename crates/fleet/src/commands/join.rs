//! `plimsoll fleet join`: this machine works on a fleet's plan. It is a parallel run in this clone that uses the fleet's board.

use super::open_fleet_and_run_with_timeout;
use crate::database::Database;
use crate::database_error::FleetError;
use crate::fleet::Fleet;
use crate::fleet::machine_board::{Machine, MachineBoard};
use crate::fleet::members::{Member, MemberEventKind};
use crate::fleet::plan::hash_objective;
use crate::fleet::reconnecting_fleet::ReconnectingFleet;
use crate::fleet::shared_plan::SharedPlan;
use crate::settings_loader;
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_domain::limits::RunLimits;
use plimsoll_domain::promise::{InvalidPromise, PromiseWord};
use plimsoll_domain::prompt::strip_prompt_block;
use plimsoll_domain::state::{DeliveryMode, WorkerOptions};
use plimsoll_domain::text::{count_with_noun, to_safe_single_line, truncate_end};
use plimsoll_domain::workers::MemberToken;
use plimsoll_domain::{RunState, TodoList, todo};
use plimsoll_flows::run::lifecycle::{self, NewRun, ResumeChanges, ResumeOutcome, StartError};
use plimsoll_flows::run::protect;
use plimsoll_flows::run::sandbox::{self, SandboxError};
use plimsoll_flows::run::{LaunchOptions, Preflight, RunError, check_client_prepare_hooks_and_lock_run};
use plimsoll_flows::run_context::RunContext;
use plimsoll_flows::workers::RemoteTarget;
use plimsoll_flows::workers::repository_copy::copy_and_print_messages_if_large;
use plimsoll_flows::workers::{
    self, FleetDescription, FleetJoin, PLAN_COPY_PATH, WorkersError, project_checkout,
};
use plimsoll_launcher::remote_repository::{Remote, RemoteError};
use plimsoll_store::{
    Durability, Project, StoreError, config, disk, environment, layout, ledger, state_file,
};
use plimsoll_terminal::console::{fail_with, print_hint, print_text, print_warning};
use plimsoll_terminal::fleet_command_line::JoinArguments;
use plimsoll_terminal::run_progress::{ProgressFormat, new_run_observer_handling_signals};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Practically unlimited: the board enforces the session limit of all machines together.
const MAX_SESSIONS: u32 = 100_000;
/// Maximum length of the computer's name in a member's name.
const MAX_COMPUTER_NAME_CHARS: usize = 40;

/// The reason why this machine did not join or could not continue.
#[derive(Debug, thiserror::Error)]
enum JoinError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    UnsuitableRepository(#[from] project_checkout::UnsuitableRepository),
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
    #[error("{} is not in a git repository: run this in a clone of {repo}", .folder.display())]
    NotInRepository { folder: PathBuf, repo: String },
    #[error("this clone has no folder {}, where the fleet's project is", .0.display())]
    ProjectFolderMissing(PathBuf),
    #[error("this repository uses Git LFS, which a fleet does not support: run the plan on one machine")]
    UsesGitLfs,
    #[error(
        "there is no task here: write PROMPT.md, or give --objective-file FILE, with the text that the fleet was created with"
    )]
    TaskMissing,
    #[error("PROMPT.md lacks the end marker of Plimsoll's own part")]
    MissingEndMarker,
    #[error("the objective file {} is missing", .0.display())]
    ObjectiveFileMissing(PathBuf),
    #[error(
        "the task here is not the one that the fleet `{0}` was created with: take the same PROMPT.md, or name the file with --objective-file"
    )]
    DifferentTask(String),
    #[error(
        "`{0}` was not found: install Claude Code (`npm install -g @anthropic-ai/claude-code`) or name it with --client PATH"
    )]
    ClientNotFound(String),
    #[error("the fleet `{0}` was stopped; its work stays on its branches")]
    FleetStopped(String),
    #[error(
        "the database says that every item of the fleet `{fleet}` is merged, and {branch} does not contain item {number}: plimsoll doctor --fleet {fleet}"
    )]
    ItemMissingFromTarget { fleet: String, number: usize, branch: String },
    #[error("the plan of the fleet `{fleet}` cannot be used: {error}")]
    InvalidPromiseWord { fleet: String, error: InvalidPromise },
}

/// Joins a fleet and works on its plan until this machine's run ends or pauses. Prints the error if it fails.
pub(super) fn join_fleet(arguments: &JoinArguments) -> ExitCode {
    // The user started this process, so it may write the run's ledger.
    ledger::enable_ledger_writes();
    match join_and_work(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let text = match hint(&error) {
                Some(hint) => format!("{error}\nhint: {hint}"),
                None => error.to_string(),
            };
            fail_with(text, exit_status(&error))
        }
    }
}

/// Returns the exit status of an error. A service manager must not repeat a command that fails with one of `FatalError` or
/// `Cancelled`: the user has to change something first.
fn exit_status(error: &JoinError) -> ExitStatus {
    match error {
        JoinError::FleetStopped(_) => ExitStatus::Cancelled,
        JoinError::Fleet(FleetError::FleetNotFound(_) | FleetError::SchemaMismatch { .. })
        | JoinError::UnsuitableRepository(_)
        | JoinError::NotInRepository { .. }
        | JoinError::ProjectFolderMissing(_)
        | JoinError::UsesGitLfs
        | JoinError::TaskMissing
        | JoinError::MissingEndMarker
        | JoinError::ObjectiveFileMissing(_)
        | JoinError::DifferentTask(_)
        | JoinError::ClientNotFound(_)
        | JoinError::ItemMissingFromTarget { .. }
        | JoinError::InvalidPromiseWord { .. }
        | JoinError::Run(RunError::HookProgramsMissing(_)) => ExitStatus::FatalError,
        JoinError::Fleet(_)
        | JoinError::Store(_)
        | JoinError::Remote(_)
        | JoinError::Start(_)
        | JoinError::Run(_)
        | JoinError::Sandbox(_)
        | JoinError::Workers(_)
        | JoinError::Signals(_) => ExitStatus::Failure,
    }
}

fn hint(error: &JoinError) -> Option<String> {
    match error {
        JoinError::Fleet(error) => error.hint(),
        JoinError::Store(error) => Some(error.hint().to_owned()),
        JoinError::Sandbox(error) => error.fix_hint().map(str::to_owned),
        _ => None,
    }
}

/// Joins in steps; each takes the result of the previous one. Only the fourth step registers this machine with the fleet,
/// so a crash before that leaves only files in this clone.
fn join_and_work(arguments: &JoinArguments) -> Result<u8, JoinError> {
    let mut fleet_clone = check_project_and_open_remote(open_fleet_unless_stopped(arguments)?)?;
    if fleet_clone.fleet.is_done() {
        check_target_contains_all_items(&mut fleet_clone)?;
        print_text(format!("every item of the fleet `{}` is merged", to_safe_single_line(&arguments.name)));
        print_merge_command(arguments, &fleet_clone.fleet.plan);
        return Ok(0);
    }
    let machine_run = resume_or_create_run(fleet_clone)?;
    let machine_run = record_machine_joined_in_journal(machine_run)?;
    let finished_work = run_workers_until_done_or_paused(machine_run)?;
    if finished_work.progress_format != ProgressFormat::Json {
        print_merge_command_or_resume_hint(&finished_work);
    }
    Ok(finished_work.exit_code)
}

/// An open connection to a fleet that was not stopped, with its plan.
struct OpenFleet<'a> {
    arguments: &'a JoinArguments,
    connected_fleet: Fleet,
    plan: SharedPlan,
}

impl OpenFleet<'_> {
    fn is_done(&self) -> bool {
        self.plan.end_reason.is_some()
    }
}

/// Connects and reads the fleet's plan. Fails if the fleet was stopped. A crash leaves nothing behind.
fn open_fleet_unless_stopped(arguments: &JoinArguments) -> Result<OpenFleet<'_>, JoinError> {
    let mut connected_fleet = connect_and_open_fleet(&arguments.name)?;
    let plan = connected_fleet.read_shared_plan()?;
    match plan.end_reason.as_deref() {
        Some("done") | None => Ok(OpenFleet { arguments, connected_fleet, plan }),
        Some(_) => Err(JoinError::FleetStopped(arguments.name.clone())),
    }
}

/// The fleet's project in this clone, with the branch into which the fleet merges.
struct FleetClone<'a> {
    fleet: OpenFleet<'a>,
    project: Project,
    remote_target: RemoteTarget,
}

/// Checks the project and opens the remote, with a copy of the clone for the data that git fetches. After a crash the copy remains,
/// and the next `fleet join` uses it.
fn check_project_and_open_remote(fleet: OpenFleet<'_>) -> Result<FleetClone<'_>, JoinError> {
    let OpenFleet { arguments, plan, .. } = &fleet;
    let project = find_plan_project_in_current_repository(plan)?;
    let checkout = project_checkout::check_suitable_for_workers(&project)?;
    refuse_git_lfs(&project)?;
    let no_home_error = || StoreError::NoHome { project: project.root().to_owned() };
    let fetch_folder = workers::fleet_fetch_folder(&project, &arguments.name).ok_or_else(no_home_error)?;
    let is_new_copy = !disk::exists(&fetch_folder);
    let remote = copy_and_print_messages_if_large(
        &checkout.repository_root,
        is_new_copy,
        &mut |text| print_text(text),
        || Remote::open(&checkout.repository_root, &arguments.remote, &fetch_folder),
    )?;
    if remote.address_without_credentials() != plan.remote_address {
        print_warning(&format!(
            "the fleet was created with the remote {}; this clone's `{}` is {}",
            to_safe_single_line(&plan.remote_address),
            to_safe_single_line(&arguments.remote),
            to_safe_single_line(&remote.address_without_credentials())
        ));
    }
    let remote_target =
        RemoteTarget::new(remote, &arguments.name, &plan.created_at.to_string(), &plan.target_branch)
            .with_plan(plan.plan_on_target());
    Ok(FleetClone { fleet, project, remote_target })
}

/// Fails unless every item is recorded as merged and the target branch contains it.
fn check_target_contains_all_items(fleet_clone: &mut FleetClone<'_>) -> Result<(), JoinError> {
    let FleetClone { fleet: OpenFleet { arguments, connected_fleet, plan }, remote_target, .. } = fleet_clone;
    let all_items: Vec<usize> = (0..plan.item_texts.len()).collect();
    let items_with_commits = connected_fleet.read_candidate_commits_of_merged_items(&all_items)?;
    let missing_items =
        remote_target.find_items_missing_from_target(&plan.start_commit, &items_with_commits, &|| false)?;
    // An item that is not even recorded as merged is missing as well.
    let recorded_items: BTreeSet<usize> = items_with_commits.iter().map(|(item, _)| *item).collect();
    let missing_item =
        all_items.iter().find(|item| !recorded_items.contains(item) || missing_items.contains(item));
    match missing_item {
        None => Ok(()),
        Some(item) => Err(JoinError::ItemMissingFromTarget {
            fleet: arguments.name.clone(),
            number: item + 1,
            branch: to_safe_single_line(plan.target_branch.as_str()),
        }),
    }
}

/// This machine with the run that works on the fleet's plan.
struct MachineRun<'a> {
    fleet_clone: FleetClone<'a>,
    launch_options: LaunchOptions,
    preflight: Preflight,
    run_state: RunState,
    /// The name of this clone in the fleet, and its token.
    member_name: String,
    member_token: MemberToken,
}

impl MachineRun<'_> {
    fn member(&self) -> Member {
        Member::new(&self.member_name, &self.member_token)
    }
}

/// Resumes this clone's run, or creates one. After a crash the run exists, and the next `fleet join` resumes it.
fn resume_or_create_run(fleet_clone: FleetClone<'_>) -> Result<MachineRun<'_>, JoinError> {
    let OpenFleet { arguments, plan, .. } = &fleet_clone.fleet;
    let (launch_options, requested_client) = launch_options_and_requested_client(arguments)?;
    let (preflight, run_state) = lock_and_resume_or_create_run(
        &fleet_clone.project,
        arguments,
        plan,
        &launch_options,
        requested_client,
    )?;
    let (member_name, member_token) = workers::fleet_member_name_and_token(&fleet_clone.project, &run_state)?
        .unwrap_or_else(|| (new_member_name(), new_member_token()));
    Ok(MachineRun { fleet_clone, launch_options, preflight, run_state, member_name, member_token })
}

/// Records in the fleet's journal that this machine joins. After a crash the journal has a machine that never claimed an item; the
/// next `fleet join` may use another name.
fn record_machine_joined_in_journal(mut machine_run: MachineRun<'_>) -> Result<MachineRun<'_>, JoinError> {
    let member = machine_run.member();
    let OpenFleet { arguments, connected_fleet, .. } = &mut machine_run.fleet_clone.fleet;
    record_join_and_warn_about_versions(connected_fleet, &member, arguments.workers)?;
    Ok(machine_run)
}

/// The result of this machine's work.
struct FinishedWork<'a> {
    arguments: &'a JoinArguments,
    plan: SharedPlan,
    project: Project,
    progress_format: ProgressFormat,
    exit_code: u8,
}

/// Runs this machine's workers until its run ends or pauses. A crash leaves leases, which expire, and results in this machine's
/// files, which the next `fleet join` delivers.
fn run_workers_until_done_or_paused(machine_run: MachineRun<'_>) -> Result<FinishedWork<'_>, JoinError> {
    let machine = this_machine(machine_run.member());
    let MachineRun { fleet_clone, launch_options, preflight, run_state, member_name, member_token } =
        machine_run;
    let FleetClone { fleet: OpenFleet { arguments, connected_fleet, plan }, project, remote_target } =
        fleet_clone;
    let new_machine_board = |fleet| {
        let fleet =
            ReconnectingFleet { connected_fleet: Some(fleet), ..ReconnectingFleet::new(&arguments.name) };
        Box::new(MachineBoard { fleet, machine: machine.clone() })
    };
    let fleet_join = FleetJoin {
        fleet: describe_fleet(arguments, &plan, member_name, member_token),
        heartbeat_connection: new_machine_board(connect_and_open_fleet(&arguments.name)?),
        board_connection: new_machine_board(connected_fleet),
        target: remote_target,
        outage_timeout: Duration::from_secs(arguments.database_timeout_seconds),
    };
    let settings = config::load_for_run(&project, &run_state.run_id);
    let context = RunContext { project: &project, settings: &settings, run_id: &run_state.run_id };
    let progress_format =
        if arguments.json { ProgressFormat::Json } else { ProgressFormat::for_current_terminal() };
    let resume_command = format!("plimsoll fleet join {}", to_safe_single_line(&arguments.name));
    let mut observer =
        new_run_observer_handling_signals(progress_format, &resume_command).map_err(JoinError::Signals)?;
    let exit_code = workers::run_fleet_member(
        context,
        &launch_options,
        preflight,
        &run_state,
        fleet_join,
        observer.as_mut(),
    );
    // Removes the progress bar before anything else is printed.
    drop(observer);
    leave_fleet_ignoring_errors(&arguments.name, machine.member);
    Ok(FinishedWork { arguments, plan, project, progress_format, exit_code: exit_code? })
}

/// Marks this machine's workers as gone. An error does not matter: they count as gone once their leases run out.
fn leave_fleet_ignoring_errors(fleet_name: &str, member: Member) {
    let _ = open_fleet_and_run_with_timeout(fleet_name, "leave the fleet", move |fleet| {
        fleet.leave_fleet(&member)
    });
}

fn connect_and_open_fleet(fleet_name: &str) -> Result<Fleet, FleetError> {
    Fleet::open(Database::connect(settings_loader::load_settings_from_environment()?)?, fleet_name)
}

/// Finds the fleet's project in this clone. Fails if the folder is missing or outside the repository.
fn find_plan_project_in_current_repository(plan: &SharedPlan) -> Result<Project, JoinError> {
    let current_folder = environment::current_dir();
    let not_in_repository_error = || JoinError::NotInRepository {
        folder: current_folder.clone(),
        repo: to_safe_single_line(&plan.remote_address),
    };
    let (repository, _) = layout::find_repository(&current_folder).ok_or_else(not_in_repository_error)?;
    let root = if plan.project_folder.is_empty() {
        repository.to_owned()
    } else {
        repository.join(&plan.project_folder)
    };
    // The path comes from the database, so it may point outside the repository.
    let is_inside_repository =
        disk::canonicalize_or_keep(&root).starts_with(disk::canonicalize_or_keep(repository));
    if disk::is_folder(&root) && is_inside_repository {
        Ok(Project::with_local_files(&root))
    } else {
        Err(JoinError::ProjectFolderMissing(root))
    }
}

/// Fails if the project uses Git LFS: the files behind its pointers are not pushed with the commits.
fn refuse_git_lfs(project: &Project) -> Result<(), JoinError> {
    let attributes = disk::read_text(&project.root().join(".gitattributes"))?.unwrap_or_default();
    if attributes.contains("filter=lfs") { Err(JoinError::UsesGitLfs) } else { Ok(()) }
}

fn launch_options_and_requested_client(
    arguments: &JoinArguments,
) -> Result<(LaunchOptions, Option<String>), JoinError> {
    let client_name = arguments.client.clone().unwrap_or_else(|| "claude".to_owned());
    let client = environment::find_program(&client_name).ok_or(JoinError::ClientNotFound(client_name))?;
    let launch_options = LaunchOptions {
        client: environment::current_dir().join(client),
        client_arguments: arguments.client_arguments.clone(),
        uses_working_memory: false,
        should_wait: !arguments.no_wait,
        exports_spans: false,
    };
    Ok((launch_options, arguments.client.clone()))
}

/// Acquires the run lock, then resumes this clone's run for the fleet or creates a new run. Fails if the clone's task differs from
/// the fleet's.
fn lock_and_resume_or_create_run(
    project: &Project,
    arguments: &JoinArguments,
    plan: &SharedPlan,
    launch_options: &LaunchOptions,
    requested_client: Option<String>,
) -> Result<(Preflight, RunState), JoinError> {
    let open_run = state_file::load_state(project, None)?
        .filter(|state| is_resumable_run_of_fleet(state, &arguments.name));
    if let Some(open_run) = open_run {
        check_task_matches_fleet(arguments, plan, &open_run.options.objective)?;
        sandbox::check_sandbox_for_resume(project, arguments.verify_sandbox)?;
        let preflight = check_client_prepare_hooks_and_lock_run(project, launch_options)?;
        let (ResumeOutcome::Open(state) | ResumeOutcome::Ended(state)) =
            lifecycle::resume_run(project, &changes_for_resume(arguments, launch_options, requested_client))?;
        return Ok((preflight, *state));
    }
    let objective = arguments.objective_file.as_deref().map(read_objective_file).transpose()?;
    check_task_matches_fleet(
        arguments,
        plan,
        &objective.clone().map_or_else(|| read_task_from_prompt(project), Ok)?,
    )?;
    if arguments.verify_sandbox {
        sandbox::check_sandbox_available(project)?;
    }
    let preflight = check_client_prepare_hooks_and_lock_run(project, launch_options)?;
    write_unticked_plan_copy_with_local_notes(project, plan)?;
    protect::unprotected_parallel_run_warning(project).iter().for_each(print_warning);
    let new_run_options =
        NewRun { objective, ..new_run_from_shared_plan(arguments, plan, launch_options, requested_client)? };
    Ok((preflight, lifecycle::create_run(project, &new_run_options)?))
}

fn changes_for_resume(
    arguments: &JoinArguments,
    launch_options: &LaunchOptions,
    requested_client: Option<String>,
) -> ResumeChanges {
    ResumeChanges {
        client: requested_client,
        client_arguments: launch_options.client_arguments.clone(),
        limits: run_limits(arguments),
        verify_sandbox: arguments.verify_sandbox,
        idle_timeout_seconds: arguments.idle_timeout,
        tool_timeout_seconds: arguments.tool_timeout,
        worker_count: Some(arguments.workers),
        resets_breaker: true,
        ..ResumeChanges::default()
    }
}

fn new_run_from_shared_plan(
    arguments: &JoinArguments,
    plan: &SharedPlan,
    launch_options: &LaunchOptions,
    requested_client: Option<String>,
) -> Result<NewRun, JoinError> {
    Ok(NewRun {
        name: Some(arguments.name.clone()),
        plan_file: Some(PLAN_COPY_PATH.to_owned()),
        max_iterations: MAX_SESSIONS,
        promise: parse_promise_word(&arguments.name, &plan.promise_word)?,
        verify_commands: plan.verify_commands.clone(),
        verify_sandbox: arguments.verify_sandbox,
        client: requested_client,
        client_arguments: launch_options.client_arguments.clone(),
        limits: run_limits(arguments),
        idle_timeout_seconds: arguments.idle_timeout,
        tool_timeout_seconds: arguments.tool_timeout,
        workers: Some(WorkerOptions {
            worker_count: arguments.workers,
            setup_command: arguments.setup.clone(),
            delivery_mode: DeliveryMode::Branch,
            fleet_name: Some(arguments.name.clone()),
            ..WorkerOptions::default()
        }),
        ..NewRun::default()
    })
}

/// Parses the promise word of a fleet's plan. Anyone who can write to the database may have changed it.
fn parse_promise_word(fleet_name: &str, promise_word: &str) -> Result<PromiseWord, JoinError> {
    promise_word
        .to_owned()
        .try_into()
        .map_err(|error| JoinError::InvalidPromiseWord { fleet: fleet_name.to_owned(), error })
}

fn run_limits(arguments: &JoinArguments) -> RunLimits {
    RunLimits {
        max_cost_per_day_usd: arguments.max_cost_per_day,
        deadline: arguments.deadline.clone(),
        stop_at_limit_percent: arguments.stop_at_limit,
        ..RunLimits::default()
    }
}

/// Returns true if the run belongs to this fleet and has no final status.
fn is_resumable_run_of_fleet(state: &RunState, fleet_name: &str) -> bool {
    let run_fleet_name = state.options.workers.as_ref().and_then(|workers| workers.fleet_name.as_deref());
    run_fleet_name == Some(fleet_name) && !state.lifecycle.status().is_final()
}

fn read_objective_file(file: &Path) -> Result<String, JoinError> {
    let path = environment::current_dir().join(file);
    disk::read_text(&path)?.ok_or(JoinError::ObjectiveFileMissing(path))
}

fn read_task_from_prompt(project: &Project) -> Result<String, JoinError> {
    let bytes = disk::read(&project.prompt_path())?.ok_or(JoinError::TaskMissing)?;
    let text = strip_prompt_block(&bytes).map_err(|_| JoinError::MissingEndMarker)?;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn check_task_matches_fleet(
    arguments: &JoinArguments,
    plan: &SharedPlan,
    task: &str,
) -> Result<(), JoinError> {
    let is_same_task = hash_objective(task) == plan.objective_hash;
    if is_same_task { Ok(()) } else { Err(JoinError::DifferentTask(arguments.name.clone())) }
}

/// Writes a copy of the fleet's plan with every item unticked. Notes and questions below an item come from the clone's plan.
fn write_unticked_plan_copy_with_local_notes(project: &Project, plan: &SharedPlan) -> Result<(), JoinError> {
    let local_plan_text = tracked_plan_path(plan)
        .map(|file| disk::read_text(&project.root().join(file)))
        .transpose()?
        .flatten();
    let local_items = TodoList::parse(&local_plan_text.unwrap_or_default()).items;
    let to_unticked_item = |text: &String| {
        let local_item = local_items.iter().find(|item| item.text == *text).cloned();
        todo::PlanItem {
            is_ticked: false,
            ..local_item.unwrap_or(todo::PlanItem { text: text.clone(), ..todo::PlanItem::default() })
        }
    };
    let items = plan.item_texts.iter().map(to_unticked_item).collect();
    let plan_copy = TodoList::from_items(items).render_markdown();
    Ok(disk::replace(&project.root().join(PLAN_COPY_PATH), plan_copy.as_bytes(), Durability::Durable)?)
}

/// Returns the path of the plan relative to the project, or `None` if git does not track it.
fn tracked_plan_path(plan: &SharedPlan) -> Option<String> {
    let folder_prefix =
        if plan.project_folder.is_empty() { String::new() } else { format!("{}/", plan.project_folder) };
    plan.is_plan_tracked
        .then(|| plan.plan_file.strip_prefix(&folder_prefix).unwrap_or(&plan.plan_file).to_owned())
}

fn describe_fleet(
    arguments: &JoinArguments,
    plan: &SharedPlan,
    member_name: String,
    member_token: MemberToken,
) -> FleetDescription {
    FleetDescription {
        fleet_name: arguments.name.clone(),
        member_name,
        member_token,
        remote_name: arguments.remote.clone(),
        item_texts: plan.item_texts.clone(),
        target_branch: plan.target_branch.to_string(),
        start_commit_id: plan.start_commit.to_string(),
        tracked_plan_path: tracked_plan_path(plan),
    }
}

/// Creates a name that no other clone has, including other clones on this computer.
fn new_member_name() -> String {
    let to_name_character = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    let random_hex = uuid::Uuid::new_v4().simple().to_string();
    format!(
        "{}-{}",
        truncate_end(&computer_name(), MAX_COMPUTER_NAME_CHARS)
            .chars()
            .map(to_name_character)
            .collect::<String>(),
        &random_hex[..8]
    )
}

/// Creates a secret that nobody can guess: two random identifiers of 122 bits each.
fn new_member_token() -> MemberToken {
    let random_hex = || uuid::Uuid::new_v4().simple().to_string();
    MemberToken::from(format!("{}{}", random_hex(), random_hex()))
}

fn computer_name() -> String {
    whoami::hostname().unwrap_or_else(|_| "computer".to_owned())
}

fn this_machine(member: Member) -> Machine {
    Machine { member, computer_name: computer_name(), pid: std::process::id() }
}

fn record_join_and_warn_about_versions(
    fleet: &mut Fleet,
    member: &Member,
    worker_count: usize,
) -> Result<(), JoinError> {
    let machines_of_other_version = fleet.describe_active_machines_of_other_versions()?;
    if !machines_of_other_version.is_empty() {
        print_warning(&format!(
            "other machines of this fleet use another version of Plimsoll than {}: {}",
            env!("CARGO_PKG_VERSION"),
            to_safe_single_line(&machines_of_other_version.join(", "))
        ));
    }
    let detail =
        format!("{}, version {}", count_with_noun(worker_count, "worker"), env!("CARGO_PKG_VERSION"));
    Ok(fleet.record_member_event(member, MemberEventKind::Joined, None, &detail)?)
}

fn print_merge_command_or_resume_hint(finished_work: &FinishedWork<'_>) {
    let FinishedWork { arguments, plan, project, exit_code, .. } = finished_work;
    let state = state_file::load_state(project, None).ok().flatten();
    let has_no_open_items = state.as_ref().is_some_and(|state| state.plan_items.todo_items.is_empty());
    if *exit_code == 0 && has_no_open_items {
        print_merge_command(arguments, plan);
    } else if state.is_some_and(|state| is_resumable_run_of_fleet(&state, &arguments.name)) {
        print_hint(&format!(
            "to continue on this machine: plimsoll fleet join {} …",
            to_safe_single_line(&arguments.name)
        ));
    }
}

fn print_merge_command(arguments: &JoinArguments, plan: &SharedPlan) {
    let (remote_name, target_branch) =
        (to_safe_single_line(&arguments.remote), to_safe_single_line(plan.target_branch.as_str()));
    print_text(format!(
        "the work is on {target_branch} of {remote_name}; to merge it: git fetch {remote_name} && git merge {remote_name}/{target_branch}"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promise_word_from_the_database_is_checked_before_the_run() {
        assert_eq!(parse_promise_word("night", "ALL_DONE").unwrap().as_str(), "ALL_DONE");
        assert!(parse_promise_word("night", "").unwrap().is_empty());
        let error = parse_promise_word("night", "COMPLETE\n## Rules of the run\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the plan of the fleet `night` cannot be used: the promise word is not one word of at most 64 letters, digits, `_` and `-`, other than BLOCKED"
        );
    }
}
