//! What must be so before a run begins: arguments, client, hook programs, and the lock of the one `plimsoll run`.

use super::{ClientError, Options, RunError, SettingsFault};
use crate::install::places::{hooks_in, settings_files};
use crate::install::{command_for, is_copied, program_home, ready_programs};
use plimsoll_policy::models::{OPTION, without_option};
use plimsoll_policy::read_only::can_confine;
use plimsoll_protocol::settings::{self, HookSupport, OurHook, Parts, agent, servers};
use plimsoll_store::{Project, StoreError, disk, environment, lock, state_file};
use std::path::Path;
use std::time::Duration;

/// Arguments that would take the session out of our hands.
// Each iteration is a fresh session under an id of ours, and its output is read as stream-json.
const OURS: [&str; 10] = [
    "-p",
    "--print",
    "--output-format",
    "--session-id",
    "--resume",
    "-r",
    "--continue",
    "-c",
    "--input-format",
    "--fork-session",
];

/// A killed `run` takes a moment to let go of its lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// What must be so before a run is created or changed: a start that fails leaves no run behind.
#[derive(Debug)]
pub struct Preflight {
    /// Our hooks, with the user's own `--settings`, as `--settings` takes them.
    pub(super) hooks: String,
    /// The working memory's server and agent, as the client takes them; nothing without it.
    pub(super) memory_arguments: Vec<String>,
    /// What the user passes on to the client beside that.
    pub(super) client_arguments: Vec<String>,
    /// The model that the user passes on to it.
    pub(super) model: Option<String>,
    /// The client's era.
    pub(super) era: HookSupport,
    /// Which of our entries each session is given.
    pub(super) hook_parts: Parts,
    /// The client's version, as it says it when it is asked.
    pub(super) version: String,
    /// Held as long as the run is at work.
    pub(super) _only: lock::RunLock,
}

/// Refuses arguments that would take a session out of our hands.
pub(crate) fn check_arguments(arguments: &[String]) -> Result<(), RunError> {
    let is_ours = |argument: &&String| OURS.contains(&argument.split('=').next().unwrap_or_default());
    match arguments.iter().find(is_ours) {
        Some(argument) => Err(RunError::Argument(argument.clone())),
        None => Ok(()),
    }
}

/// The client's version as it says it; an error for another program, and for a client that is too old for our hooks.
pub(crate) fn check_client(client: &Path) -> Result<String, ClientError> {
    let version =
        plimsoll_launcher::client_version(client).ok_or_else(|| ClientError::Silent(client.to_owned()))?;
    if !version.contains("Claude Code") {
        let answer = plimsoll_domain::text::clip(&plimsoll_domain::text::one_line(&version), 80);
        return Err(ClientError::OtherProgram { program: client.to_owned(), answer });
    }
    match plimsoll_policy::client::too_old(&version) {
        Some(words) => Err(ClientError::TooOld(words)),
        None => Ok(version),
    }
}

/// Refuses a client of this version for a session that must stay inside the project.
pub(crate) fn check_can_confine(what: &'static str, client: &Path, version: &str) -> Result<(), ClientError> {
    if can_confine(version) {
        return Ok(());
    }
    let answer = plimsoll_domain::text::clip(&plimsoll_domain::text::one_line(version), 80);
    Err(ClientError::TooOldToConfine { what, program: client.to_owned(), answer })
}

impl Preflight {
    /// Refuses reviews, one after so many items (0 for none), by a client that cannot keep them inside the project.
    pub fn check_review(&self, options: &Options, review_every: u32) -> Result<(), RunError> {
        match review_every {
            0 => Ok(()),
            _ => Ok(check_can_confine("--review", &options.client, &self.version)?),
        }
    }
}

/// Looks at the arguments, the client and the hook programs, and takes the lock of the one `plimsoll run`.
pub fn prepare(project: &Project, options: &Options) -> Result<Preflight, RunError> {
    check_arguments(&options.client_arguments)?;
    let (client_arguments, users) = without_option(&options.client_arguments, SETTINGS);
    let (client_arguments, model) = without_option(&client_arguments, OPTION);
    let (parts, version) = parts(options)?;
    let installed: Vec<OurHook> = settings_files(project.root()).flat_map(|file| hooks_in(&file)).collect();
    // With the memory where it is installed: only an entry with the same words runs once.
    let memory = parts.memory || installed.iter().any(OurHook::is_memorys);
    let hook_parts = Parts { memory: memory && parts.era == HookSupport::Modern, ..parts };
    let hooks = match users {
        Some(users) => with_users(project, &users, hook_parts, &installed)
            .map_err(|fault| ClientError::Settings { given: users, fault })?,
        None => settings::hooks_only(hook_parts, &spelling(&installed)).to_string(),
    };
    let memory_arguments = if parts.memory { memory_arguments(project, options)? } else { Vec::new() };
    let _only = lock::acquire_run(project, LOCK_TIMEOUT).map_err(|error| match error {
        StoreError::Busy { .. } => RunError::Busy(named(project)),
        error => RunError::Store(error),
    })?;
    let era = parts.era;
    Ok(Preflight { hooks, memory_arguments, client_arguments, model, era, hook_parts, version, _only })
}

/// The client uses only the last one, and a user's own would switch our hooks off.
const SETTINGS: &str = "--settings";

/// The user's settings (JSON, or a file with it) with our hooks in them.
fn with_users(
    project: &Project,
    users: &str,
    parts: Parts,
    installed: &[OurHook],
) -> Result<String, SettingsFault> {
    let text = if users.trim_start().starts_with('{') {
        users.to_owned()
    } else {
        disk::read_text(&project.root().join(users))?.ok_or(SettingsFault::Missing)?
    };
    Ok(settings::install(&text, parts, &spelling(installed))?.text)
}

/// The run that another `plimsoll run` works for, as far as the state shows.
fn named(project: &Project) -> String {
    let state = state_file::load(project, None).ok().flatten();
    state.map_or(String::new(), |state| {
        format!(
            ": the run \"{}\" ({}), iteration {}",
            plimsoll_domain::text::one_line(&state.options.task_name),
            state.run_id,
            state.iteration
        )
    })
}

/// Which of our hooks the client's version knows. They are passed along always: identical entries of the project's
/// settings run once, and an agent's `git clean` cannot take these away.
fn parts(options: &Options) -> Result<(Parts, String), RunError> {
    let client = &options.client;
    let version = check_client(client)?;
    let answer = || plimsoll_domain::text::one_line(&version);
    let era = HookSupport::of_client(&version);
    if options.memory && era != HookSupport::Modern {
        return Err(ClientError::TooOldForMemory { program: client.clone(), answer: answer() }.into());
    }
    let parts = if options.memory { era.with_memory() } else { era.into() };
    let server = options.memory.then(|| servers::PROGRAM.to_owned());
    let named: Vec<String> = settings::programs_of(parts).into_iter().chain(server).collect();
    if is_copied() || missing(&named).is_some() {
        ready_programs()?;
    }
    let missing = missing(&named).cloned();
    let version = version.split_whitespace().next().unwrap_or_default().to_owned();
    missing.map_or(Ok((parts, version)), |program| Err(RunError::NoHooks(program)))
}

/// The first of these programs that is neither beside this one nor on the PATH.
fn missing(programs: &[String]) -> Option<&String> {
    programs.iter().find(|program| {
        let beside = program_home().map(|folder| folder.join(program));
        !beside.is_some_and(|path| disk::exists(&path)) && environment::find_program(program).is_none()
    })
}

/// The server and the agent, where the project has not its own of our names. The client uses one of each flag, so
/// a user's own beside ours would switch one of them off.
fn memory_arguments(project: &Project, options: &Options) -> Result<Vec<String>, RunError> {
    let listed = disk::read_text(&project.root().join(".mcp.json"))?.unwrap_or_default();
    let has_server = servers::entry(&listed).ok().flatten().is_some();
    let has_agent = disk::exists(&project.root().join(".claude/agents").join(format!("{}.md", agent::NAME)));
    let ours =
        [("--mcp-config", has_server, servers::config(&command_for)), ("--agents", has_agent, agent::flag())];
    let mut arguments = Vec::new();
    for (flag, is_installed, value) in ours {
        let is_users = |argument: &String| argument.split('=').next() == Some(flag);
        if is_installed {
            continue;
        }
        if options.client_arguments.iter().any(is_users) {
            return Err(ClientError::FlagInUse(flag).into());
        }
        arguments.extend([flag.to_owned(), value.to_string()]);
    }
    Ok(arguments)
}

/// How a hook program is named: as the settings that the client reads here name it, for only an identical entry
/// runs once; else where it is. (A guarded entry is never identical; it yields to what a run gives.)
fn spelling(installed: &[OurHook]) -> impl Fn(&str) -> String + '_ {
    move |program| {
        let same = installed.iter().find(|hook| hook.program == program && !hook.guarded);
        let works = same.filter(|hook| environment::find_program(&hook.command).is_some());
        works.map_or_else(|| command_for(program), |hook| hook.command.clone())
    }
}
