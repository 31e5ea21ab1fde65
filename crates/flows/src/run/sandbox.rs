//! The sandbox of `--verify-sandbox`, in which the verify commands and the command that prepares worktrees
//! run.

use crate::optional_program::{self, IgnoredPrograms};
use crate::run::permissions::client_settings_texts;
use plimsoll_domain::state::RunOptions;
use plimsoll_domain::text::{to_safe_single_line, truncate_end};
use plimsoll_domain::{RunId, RunState};
use plimsoll_launcher::{CommandOutcome, Sandbox};
use plimsoll_policy::sandbox::{
    self, HIDDEN_FOLDER_VARIABLES, HIDDEN_FOLDERS, READ_ONLY_PROJECT_PATHS, ReadablePath, SandboxLayout,
};
use plimsoll_protocol::client_settings::is_sandbox_enabled;
use plimsoll_store::{Project, StoreError, disk, environment, layout, ledger, state_file};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program that creates the sandbox.
const BUBBLEWRAP_PROGRAM: &str = "bwrap";

/// How long the command that tests the sandbox may take; it normally takes 20 ms.
const SANDBOX_TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Why no sandbox can be created.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The system has no user namespaces.
    #[error("--verify-sandbox works only on Linux: leave it out, and run Plimsoll in a container instead")]
    UnsupportedSystem,
    /// Bubblewrap is not installed, or only in the project.
    #[error("--verify-sandbox needs bubblewrap (bwrap), which is not on your PATH{0}")]
    BubblewrapMissing(IgnoredPrograms),
    #[error("--verify-sandbox cannot hide your home: HOME is not set")]
    NoHome,
    /// Hiding the home folder would hide the whole system.
    #[error("--verify-sandbox cannot hide your home: it is the root of the file system")]
    HomeIsRoot,
    /// Hiding the home folder would hide a part of the project.
    #[error("--verify-sandbox cannot hide your home: the project {} is or contains it", .0.display())]
    HomeInProject(PathBuf),
    /// The system does not allow bubblewrap to work.
    #[error("--verify-sandbox: bubblewrap cannot make a sandbox here: {0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SandboxError {
    /// Returns how the user can fix the problem, if that is possible.
    pub fn fix_hint(&self) -> Option<&'static str> {
        match self {
            SandboxError::BubblewrapMissing(_) => {
                Some("install it (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)")
            }
            SandboxError::Refused(_) => Some(
                "it needs user namespaces: in a container allow them, on Ubuntu give bwrap an AppArmor profile that has `userns`",
            ),
            SandboxError::HomeInProject(_) => Some("move the project into a folder of its own"),
            SandboxError::HomeIsRoot
            | SandboxError::UnsupportedSystem
            | SandboxError::NoHome
            | SandboxError::Store(_) => None,
        }
    }
}

/// The properties of a run on which the sandbox of its commands depends.
#[derive(Debug, Clone)]
pub(crate) struct CommandScope {
    run_id: RunId,
    is_sandboxed: bool,
    repository_id_at_start: Option<String>,
}

impl CommandScope {
    pub(crate) fn for_run(run: &RunState) -> CommandScope {
        CommandScope {
            run_id: run.run_id.clone(),
            is_sandboxed: run.options.verify_sandbox,
            repository_id_at_start: run.project_at_start.git_folder_id_at_start.clone(),
        }
    }

    pub(crate) fn is_sandboxed(&self) -> bool {
        self.is_sandboxed
    }
}

/// Runs a command line of the user in the project's folder, in a sandbox if the run uses `--verify-sandbox`. If
/// the sandbox cannot be created, the command is not started.
pub(crate) fn run_user_command_sandboxed_if_enabled(
    project: &Project,
    scope: &CommandScope,
    command: &str,
    environment: &[(&str, String)],
    timeout: Duration,
    should_abort: &dyn Fn() -> bool,
) -> CommandOutcome {
    if !scope.is_sandboxed {
        return plimsoll_launcher::run_project_shell_command_with_added_env(
            command,
            project.root(),
            environment,
            timeout,
            should_abort,
        );
    }
    let not_started_outcome = |error: SandboxError| CommandOutcome {
        start_error: Some(error.to_string()),
        ..CommandOutcome::default()
    };
    let sandbox = match configure_sandbox(project, Some(scope)) {
        Ok(sandbox) => sandbox,
        Err(error) => return not_started_outcome(error),
    };
    let outcome = plimsoll_launcher::run_shell_command_in_sandbox(
        command,
        &sandbox,
        environment,
        timeout,
        should_abort,
    );
    // An error of bubblewrap itself means that the command was never started, and so did not fail.
    let may_be_bubblewrap_error = outcome.exit_code == Some(1) && outcome.stderr.starts_with(b"bwrap: ");
    match may_be_bubblewrap_error.then(|| test_sandbox(&sandbox)) {
        Some(Err(error)) => not_started_outcome(error),
        _ => outcome,
    }
}

/// Fails if `--verify-sandbox` cannot work here. Called before a run begins or continues.
pub fn check_sandbox_available(project: &Project) -> Result<(), SandboxError> {
    test_sandbox(&configure_sandbox(project, None)?)
}

/// Fails if the run must use a sandbox, because of this command line or an earlier one, and none can be created
/// here.
pub fn check_sandbox_for_resume(project: &Project, is_requested: bool) -> Result<(), SandboxError> {
    let state = state_file::load_state(project, None)?;
    let was_requested = state.is_some_and(|run_state| run_state.options.verify_sandbox);
    if is_requested || was_requested { check_sandbox_available(project) } else { Ok(()) }
}

/// Runs a command that does nothing in the sandbox, and fails if that fails.
fn test_sandbox(sandbox: &Sandbox) -> Result<(), SandboxError> {
    let outcome =
        plimsoll_launcher::run_shell_command_in_sandbox(":", sandbox, &[], SANDBOX_TEST_TIMEOUT, &|| false);
    if outcome.succeeded() {
        return Ok(());
    }
    let error_text = String::from_utf8_lossy(&outcome.stderr).trim().to_owned();
    let error_text = if error_text.is_empty() { "it printed nothing".to_owned() } else { error_text };
    Err(SandboxError::Refused(truncate_end(
        &to_safe_single_line(&outcome.start_error.unwrap_or(error_text)),
        300,
    )))
}

/// Determines the program, arguments and environment of the sandbox; without a run it has no cache folder.
fn configure_sandbox(project: &Project, scope: Option<&CommandScope>) -> Result<Sandbox, SandboxError> {
    if !cfg!(target_os = "linux") {
        return Err(SandboxError::UnsupportedSystem);
    }
    let program = optional_program::find_trusted_program_on_path(project, BUBBLEWRAP_PROGRAM)
        .map_err(SandboxError::BubblewrapMissing)?;
    let layout = create_folders_and_collect_sandbox_layout(project, scope)?;
    let kept_variables = environment::all_variables()
        .filter(|(name, value)| sandbox::is_variable_allowlisted_for_sandbox(name, value, &layout.project));
    let home_variables = [("HOME", layout.home.clone()), ("XDG_CACHE_HOME", layout.home.join(".cache"))];
    let home_variables =
        home_variables.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()));
    Ok(Sandbox {
        program,
        arguments: layout.bubblewrap_arguments(),
        environment: kept_variables.chain(home_variables).collect(),
    })
}

/// Collects the paths that the sandbox hides, shows or makes read-only.
fn create_folders_and_collect_sandbox_layout(
    project: &Project,
    scope: Option<&CommandScope>,
) -> Result<SandboxLayout, SandboxError> {
    let root = disk::canonicalize_or_keep(project.root());
    let unresolved_home = environment::home_folder().ok_or(SandboxError::NoHome)?;
    let home = disk::canonicalize_or_keep(unresolved_home);
    if home.parent().is_none() {
        return Err(SandboxError::HomeIsRoot);
    }
    if home.starts_with(&root) {
        return Err(SandboxError::HomeInProject(root));
    }
    let folders_from_variables =
        HIDDEN_FOLDER_VARIABLES.into_iter().filter_map(environment::variable).map(PathBuf::from);
    let records_folder =
        ledger::records_folder(project).and_then(|records| Some(records.parent()?.to_owned()));
    let hidden_folders =
        HIDDEN_FOLDERS.into_iter().map(PathBuf::from).chain(folders_from_variables).chain(records_folder);
    let hidden_folders = hidden_folders.filter(|folder| folder.is_absolute() && disk::is_folder(folder));
    let path_variable = environment::variable("PATH").unwrap_or_default();
    let tool_paths = sandbox::paths_needed_by_programs_and_toolchains(
        &path_variable,
        unresolved_home,
        environment::variable,
    );
    let socket_table = disk::read_text(Path::new("/proc/net/unix")).ok().flatten().unwrap_or_default();
    let repository_folders = scope
        .map(|scope| trusted_repository_folders_outside_project(&root, &home, scope))
        .unwrap_or_default();
    Ok(SandboxLayout {
        project_link: Some(project.root().to_owned())
            .filter(|unresolved_root| *unresolved_root != root && unresolved_root.is_absolute()),
        hidden_folders: hidden_folders.map(|folder| disk::canonicalize_or_keep(&folder)).collect(),
        readable_paths: tool_paths
            .into_iter()
            .filter(|path| disk::exists(path))
            .flat_map(readable_paths)
            .collect(),
        repository_folders,
        read_only_paths: create_claude_folder_and_list_read_only_paths(&root)?,
        socket_paths: sandbox::parse_sorted_socket_paths(&socket_table)
            .into_iter()
            .filter(|path| disk::exists(path))
            .collect(),
        cache_folder: scope
            .map(|scope| create_cache_folder_of_worktree_or_run(project, scope))
            .transpose()?
            .flatten(),
        project: root,
        home,
    })
}

/// Returns a path at its real location, and also at its original location if that is a link.
fn readable_paths(path: PathBuf) -> Vec<ReadablePath> {
    let source = disk::canonicalize_or_keep(&path);
    let linked_path = (source != path).then(|| ReadablePath { source: source.clone(), target: path });
    linked_path.into_iter().chain([ReadablePath { target: source.clone(), source }]).collect()
}

/// Returns the run's cache folder, and creates it if it is missing. `prune` removes it with the other records
/// of the run.
fn create_cache_folder_of_worktree_or_run(
    project: &Project,
    scope: &CommandScope,
) -> Result<Option<PathBuf>, StoreError> {
    let Some(cache) = ledger::cache_folder_of_worktree_or_run(project, &scope.run_id) else {
        return Ok(None);
    };
    disk::create_folder(&cache)?;
    Ok(Some(disk::canonicalize_or_keep(&cache)))
}

/// Creates the `.claude` folder, and returns the existing paths of the project that a command must not write,
/// with links resolved.
fn create_claude_folder_and_list_read_only_paths(root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    // Without the folder bubblewrap would leave an empty mount point behind. git does not list an empty folder.
    disk::create_folder(&root.join(".claude"))?;
    let existing_paths =
        READ_ONLY_PROJECT_PATHS.map(|name| root.join(name)).into_iter().filter(|path| disk::exists(path));
    Ok(existing_paths
        .map(|path| disk::canonicalize_or_keep(&path))
        .filter(|path| path.starts_with(root))
        .collect())
}

/// Returns the folders of the project's repository outside the project: the working tree that contains it,
/// and the git folder of a worktree. An agent can write the `.git` file that names the git folder, so that must
/// belong to the repository in which the run began, or must itself name the project as its worktree.
fn trusted_repository_folders_outside_project(
    root: &Path,
    home: &Path,
    scope: &CommandScope,
) -> Vec<PathBuf> {
    let Some((working_tree, git_folder)) = layout::find_repository(root) else { return Vec::new() };
    let mut folders = Vec::new();
    // A home that is a repository stays hidden.
    if working_tree != root && !home.starts_with(working_tree) {
        folders.push(working_tree.to_owned());
    }
    let git_folder = disk::canonicalize_or_keep(&git_folder);
    let Some(common_folder) =
        layout::shared_git_folder(&git_folder).map(|folder| disk::canonicalize_or_keep(&folder))
    else {
        return folders;
    };
    let identity = layout::repository_identity(root);
    let is_repository_of_run_start =
        !identity.is_empty() && scope.repository_id_at_start.as_ref() == Some(&identity);
    let gitdir_text = disk::read_text(&git_folder.join("gitdir")).ok().flatten().unwrap_or_default();
    let is_worktree = !git_folder.starts_with(root)
        && git_folder.starts_with(&common_folder)
        && disk::canonicalize_or_keep(Path::new(gitdir_text.trim()))
            == disk::canonicalize_or_keep(&working_tree.join(".git"));
    if !common_folder.starts_with(working_tree) && (is_repository_of_run_start || is_worktree) {
        folders.push(common_folder);
    }
    folders
}

/// Returns a hint if sessions run in the client's sandbox, but the verify and setup commands run outside it.
pub fn hint_if_verify_runs_outside_client_sandbox(
    project: &Project,
    options: &RunOptions,
) -> Option<&'static str> {
    let has_setup = options.workers.as_ref().is_some_and(|workers| workers.setup_command.is_some());
    let has_commands = !options.unique_verify_and_check_commands().is_empty() || has_setup;
    if options.verify_sandbox || !has_commands || !cfg!(target_os = "linux") {
        return None;
    }
    let mut settings_texts = client_settings_texts(project, &options.client_arguments);
    let is_enabled = settings_texts.find_map(|text| is_sandbox_enabled(&text))?;
    is_enabled.then_some(
        "Claude Code's sandbox is on, but --verify and --setup commands run outside it; --verify-sandbox confines them",
    )
}
