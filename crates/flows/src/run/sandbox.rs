//! The sandbox of `--verify-sandbox`: the verify commands and the one that prepares worktrees run in it.

use crate::optional_program::{self, IgnoredPrograms};
use crate::run::permissions::client_settings_texts;
use plimsoll_domain::state::RunOptions;
use plimsoll_domain::text::{clip, one_line};
use plimsoll_domain::{RunId, RunState};
use plimsoll_launcher::{Outcome, Sandbox};
use plimsoll_policy::sandbox::{self, HIDDEN, HIDDEN_BY_VARIABLE, Layout, PROTECTED, ReadablePath};
use plimsoll_protocol::client_settings::is_sandbox_enabled;
use plimsoll_store::{Project, StoreError, disk, environment, layout, ledger, state_file};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program that makes the sandbox.
const BUBBLEWRAP: &str = "bwrap";

/// How long an empty command may take: it takes 20 ms.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The system has no user namespaces.
    #[error("--verify-sandbox works only on Linux: leave it out, and run Plimsoll in a container instead")]
    OtherSystem,
    /// It is not installed, or only in the project.
    #[error("--verify-sandbox needs bubblewrap (bwrap), which is not on your PATH{0}")]
    NoProgram(IgnoredPrograms),
    /// There is no home to hide.
    #[error("--verify-sandbox cannot hide your home: HOME is not set")]
    NoHome,
    /// Hiding the home would hide the whole system.
    #[error("--verify-sandbox cannot hide your home: it is the root of the file system")]
    HomeIsRoot,
    /// Hiding the home would hide a part of the project.
    #[error("--verify-sandbox cannot hide your home: the project {} is or contains it", .0.display())]
    HomeInProject(PathBuf),
    /// The system does not let it work.
    #[error("--verify-sandbox: bubblewrap cannot make a sandbox here: {0}")]
    Refused(String),
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SandboxError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            SandboxError::NoProgram(_) => {
                Some("install it (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)")
            }
            SandboxError::Refused(_) => Some(
                "it needs user namespaces: in a container allow them, on Ubuntu give bwrap an AppArmor profile that has `userns`",
            ),
            SandboxError::HomeInProject(_) => Some("move the project into a folder of its own"),
            SandboxError::HomeIsRoot
            | SandboxError::OtherSystem
            | SandboxError::NoHome
            | SandboxError::Store(_) => None,
        }
    }
}

/// What the sandbox depends on of a run.
#[derive(Debug, Clone)]
pub(crate) struct CommandScope {
    run_id: RunId,
    is_sandboxed: bool,
    repository_at_start: Option<String>,
}

impl CommandScope {
    /// The scope of a run's commands.
    pub(crate) fn of_run(run: &RunState) -> CommandScope {
        CommandScope {
            run_id: run.run_id.clone(),
            is_sandboxed: run.options.verify_sandbox,
            repository_at_start: run.at_start.repository_at_start.clone(),
        }
    }

    /// True if commands run in the sandbox.
    pub(crate) fn is_sandboxed(&self) -> bool {
        self.is_sandboxed
    }
}

/// Runs a command line of the user's in the project's folder: in the sandbox if the run has one. Without one that was asked for,
/// the command is not started.
pub(crate) fn run_command(
    project: &Project,
    scope: &CommandScope,
    command: &str,
    environment: &[(&str, String)],
    deadline: Duration,
    give_up: &dyn Fn() -> bool,
) -> Outcome {
    if !scope.is_sandboxed {
        return plimsoll_launcher::shell_with(command, project.root(), environment, deadline, give_up);
    }
    let not_started =
        |error: SandboxError| Outcome { trouble: Some(error.to_string()), ..Outcome::default() };
    let sandbox = match prepare(project, Some(scope)) {
        Ok(sandbox) => sandbox,
        Err(error) => return not_started(error),
    };
    let outcome = plimsoll_launcher::shell_in_sandbox(command, &sandbox, environment, deadline, give_up);
    // The command did not fail if it was never started.
    let may_be_bubblewraps = outcome.code == Some(1) && outcome.stderr.starts_with(b"bwrap: ");
    match may_be_bubblewraps.then(|| try_out(&sandbox)) {
        Some(Err(error)) => not_started(error),
        _ => outcome,
    }
}

/// Refuses `--verify-sandbox` where there can be no sandbox. Called before a run begins or continues.
pub fn check(project: &Project) -> Result<(), SandboxError> {
    try_out(&prepare(project, None)?)
}

/// Refuses to continue a run whose commands run in a sandbox, by this command line or by an earlier one, where there can be none.
pub fn check_for_resume(project: &Project, is_given: bool) -> Result<(), SandboxError> {
    let known = state_file::load(project, None)?;
    let was_given = known.is_some_and(|known| known.options.verify_sandbox);
    if is_given || was_given { check(project) } else { Ok(()) }
}

/// Makes the sandbox once, for a command that does nothing.
fn try_out(sandbox: &Sandbox) -> Result<(), SandboxError> {
    let outcome = plimsoll_launcher::shell_in_sandbox(":", sandbox, &[], TRIAL_TIMEOUT, &|| false);
    if outcome.succeeded() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&outcome.stderr).trim().to_owned();
    let printed = if printed.is_empty() { "it printed nothing".to_owned() } else { printed };
    Err(SandboxError::Refused(clip(&one_line(&outcome.trouble.unwrap_or(printed)), 300)))
}

/// The sandbox for commands of a run; without a run it has no cache folder.
fn prepare(project: &Project, scope: Option<&CommandScope>) -> Result<Sandbox, SandboxError> {
    if !cfg!(target_os = "linux") {
        return Err(SandboxError::OtherSystem);
    }
    let program = optional_program::find_on_path(project, BUBBLEWRAP).map_err(SandboxError::NoProgram)?;
    let layout = look(project, scope)?;
    let kept =
        environment::all().filter(|(name, value)| sandbox::is_kept_variable(name, value, &layout.project));
    let own = [("HOME", layout.home.clone()), ("XDG_CACHE_HOME", layout.home.join(".cache"))];
    let own = own.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
    Ok(Sandbox { program, arguments: layout.bwrap_arguments(), environment: kept.chain(own).collect() })
}

/// Looks at what the sandbox is made of.
fn look(project: &Project, scope: Option<&CommandScope>) -> Result<Layout, SandboxError> {
    let root = disk::canonical(project.root());
    let spelled_home = environment::home().ok_or(SandboxError::NoHome)?;
    let home = disk::canonical(spelled_home);
    if home.parent().is_none() {
        return Err(SandboxError::HomeIsRoot);
    }
    if home.starts_with(&root) {
        return Err(SandboxError::HomeInProject(root));
    }
    let by_variable = HIDDEN_BY_VARIABLE.into_iter().filter_map(environment::variable).map(PathBuf::from);
    let records = ledger::all_records(project).and_then(|records| Some(records.parent()?.to_owned()));
    let hidden = HIDDEN.into_iter().map(PathBuf::from).chain(by_variable).chain(records);
    let hidden = hidden.filter(|folder| folder.is_absolute() && disk::is_folder(folder));
    let path = environment::variable("PATH").unwrap_or_default();
    let tools = sandbox::tool_paths(&path, spelled_home, environment::variable);
    let sockets = disk::read_text(Path::new("/proc/net/unix")).ok().flatten().unwrap_or_default();
    let repository = scope.map(|scope| repository_folders(&root, &home, scope)).unwrap_or_default();
    Ok(Layout {
        spelled: Some(project.root().to_owned()).filter(|spelled| *spelled != root && spelled.is_absolute()),
        hidden: hidden.map(|folder| disk::canonical(&folder)).collect(),
        readable: tools.into_iter().filter(|path| disk::exists(path)).flat_map(readable).collect(),
        repository,
        protected: protected(&root)?,
        sockets: sandbox::socket_paths(&sockets).into_iter().filter(|path| disk::exists(path)).collect(),
        cache: scope.map(|scope| cache_folder(project, scope)).transpose()?.flatten(),
        project: root,
        home,
    })
}

/// A path where it is, and where the user's links lead to it.
fn readable(place: PathBuf) -> Vec<ReadablePath> {
    let source = disk::canonical(&place);
    let by_link = (source != place).then(|| ReadablePath { source: source.clone(), place });
    by_link.into_iter().chain([ReadablePath { place: source.clone(), source }]).collect()
}

/// The run's cache folder, made if it is missing. `prune` removes it with the other records of the run.
fn cache_folder(project: &Project, scope: &CommandScope) -> Result<Option<PathBuf>, StoreError> {
    let Some(cache) = ledger::command_cache(project, &scope.run_id) else { return Ok(None) };
    disk::create_folder(&cache)?;
    Ok(Some(disk::canonical(&cache)))
}

/// What of the project a command must not write, without links.
fn protected(root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    // An empty mount point would be left behind; git does not list an empty folder.
    disk::create_folder(&root.join(".claude"))?;
    let there = PROTECTED.map(|name| root.join(name)).into_iter().filter(|path| disk::exists(path));
    Ok(there.map(|path| disk::canonical(&path)).filter(|path| path.starts_with(root)).collect())
}

/// The folders of the project's repository outside the project: the working tree that it is a part of, and the git folder of a
/// worktree. An agent can write the `.git` file that names the latter, so only the run's own repository counts, or one whose own
/// files say that the project is a worktree of it.
fn repository_folders(root: &Path, home: &Path, scope: &CommandScope) -> Vec<PathBuf> {
    let Some((tree, git)) = layout::repository(root) else { return Vec::new() };
    let mut folders = Vec::new();
    // A home that is a repository stays hidden.
    if tree != root && !home.starts_with(tree) {
        folders.push(tree.to_owned());
    }
    let git = disk::canonical(&git);
    let Some(common) = layout::common_folder(&git).map(|common| disk::canonical(&common)) else {
        return folders;
    };
    let identity = layout::repository_identity(root);
    let is_runs_own = !identity.is_empty() && scope.repository_at_start.as_ref() == Some(&identity);
    let back = disk::read_text(&git.join("gitdir")).ok().flatten().unwrap_or_default();
    let is_worktree = !git.starts_with(root)
        && git.starts_with(&common)
        && disk::canonical(Path::new(back.trim())) == disk::canonical(&tree.join(".git"));
    if !common.starts_with(tree) && (is_runs_own || is_worktree) {
        folders.push(common);
    }
    folders
}

/// A line for a user whose sessions are in the client's sandbox, and whose verify commands are not.
pub fn recommendation(project: &Project, options: &RunOptions) -> Option<&'static str> {
    let has_setup = options.workers.as_ref().is_some_and(|workers| workers.setup.is_some());
    let has_commands = !options.commands().is_empty() || has_setup;
    if options.verify_sandbox || !has_commands || !cfg!(target_os = "linux") {
        return None;
    }
    let mut texts = client_settings_texts(project, &options.client_arguments);
    let is_enabled = texts.find_map(|text| is_sandbox_enabled(&text))?;
    is_enabled.then_some(
        "hint: Claude Code's sandbox is on, but --verify and --setup commands run outside it; --verify-sandbox confines them",
    )
}
