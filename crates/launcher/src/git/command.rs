//! Creates all git commands. A repository can name programs in many places; a read-only command runs none of
//! them: see [`DISABLING_SETTINGS`], [`PLAIN_DIFF_OPTIONS`] and [`READ_ONLY_ENVIRONMENT`], and
//! [`super::read_only`] for filters.

use crate::CommandOutcome;
use crate::search_path::command_with_only_absolute_path_entries;
use plimsoll_store::layout::find_repository;
use plimsoll_store::{disk, environment};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Settings that could start a program or lead git into another repository, with the values that prevent it.
/// A setting on the command line takes precedence over every file.
pub(super) const DISABLING_SETTINGS: &[(&str, &str)] = &[
    // A committed folder that looks like a repository, inside another one, has a configuration of its own.
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    // `post-index-change`, `reference-transaction`: no program can exist below a file.
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.alternateRefsCommand", "false"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("uploadpack.packObjectsHook", "false"),
    // For `log` and `diff` of a submodule, and for its state, git would start another git inside it.
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    // An index of objects beside the packs, in which an agent could give one object the content of another.
    ("core.multiPackIndex", "false"),
];

/// Settings that make the output the same everywhere. `diff` refreshes the index unless told not to.
const STABLE_OUTPUT_SETTINGS: &[(&str, &str)] =
    &[("core.quotePath", "false"), ("color.ui", "false"), ("diff.autoRefreshIndex", "false")];

/// Options for every command that can show a difference: no `diff.external`, no `diff.NAME.command`, no
/// `diff.NAME.textconv`.
const PLAIN_DIFF_OPTIONS: &[&str] = &["--no-ext-diff", "--no-textconv", "--submodule=short"];

/// The environment of every read-only git command.
const READ_ONLY_ENVIRONMENT: &[(&str, &str)] = &[
    // `status` would refresh the index, and an agent's `git commit` would find it locked.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Use the objects that a clone would have, without an agent's replacements.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // A partial clone would fetch missing objects, with the programs that its remote names.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    // The messages are searched for `fatal: `.
    ("LC_ALL", "C"),
];

/// The user's git variables that name neither a program nor another repository: the locations of the user's
/// settings, and the limits of repository discovery. Every other `GIT_…` variable is removed.
const KEPT_USER_VARIABLES: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// Returns the root of the working tree that contains `folder`, or an error outside a repository. Git is not started for
/// that error: it would fail as well, because the variables that could lead it into another repository are removed.
pub(super) fn find_working_tree_root(folder: &Path) -> Result<PathBuf, CommandOutcome> {
    let no_repository_outcome = || CommandOutcome {
        start_error: Some("there is no git repository".to_owned()),
        ..CommandOutcome::default()
    };
    let find_root = |folder: &Path| find_repository(folder).map(|(root, _)| root.to_owned());
    // The parents of a symbolic link differ from those of the folder it leads to.
    find_root(folder)
        .or_else(|| find_root(&disk::canonicalize_or_keep(folder)))
        .ok_or_else(no_repository_outcome)
}

/// Returns the path of git, found through an absolute entry of the PATH. Commands start in a folder of the
/// project, where a relative entry would find a program of the project. Without an absolute entry for git,
/// starting it fails.
pub(crate) fn git_path() -> &'static Path {
    static GIT: LazyLock<PathBuf> =
        LazyLock::new(|| environment::find_program("git").unwrap_or_else(|| "/no/git/on/the/PATH".into()));
    GIT.as_path()
}

pub(super) fn git_command() -> Command {
    command_with_only_absolute_path_entries(git_path())
}

pub(super) fn build_read_only_git_command(
    folder: &Path,
    root: &Path,
    additional_settings: &[OsString],
    arguments: &[&str],
) -> Command {
    let mut command = git_command();
    command.arg("--no-pager");
    for (name, value) in DISABLING_SETTINGS.iter().chain(STABLE_OUTPUT_SETTINGS) {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    for setting in additional_settings {
        command.arg("-c").arg(setting);
    }
    command.args(arguments.first());
    // Options of the caller come later and take precedence.
    if arguments.first().is_some_and(|name| ["diff", "log", "diff-tree"].contains(name)) {
        command.args(PLAIN_DIFF_OPTIONS);
    }
    command.args(arguments.get(1..).unwrap_or_default()).current_dir(folder);
    remove_git_variables_except_user_settings(&mut command, &[]);
    command.envs(READ_ONLY_ENVIRONMENT.iter().copied());
    // `core.worktree`, in a file that an agent may write (`config.worktree`), could make git read any folder.
    command.env("GIT_WORK_TREE", root);
    command
}

/// Settings for git commands that connect to a remote. They work in Plimsoll's own repository
/// ([`crate::plimsoll_repository`]), so no setting of the clone applies. The user's settings and variables still
/// apply, because credentials depend on them. Hooks are disabled, because they expect a working tree, and so is
/// everything beyond the requested operation.
const REMOTE_COMMAND_SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // Background maintenance would continue after this command.
    "gc.auto=0",
    "maintenance.auto=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
];

/// The allowed transports, by git's names. The user's `url.….insteadOf` may lead to an address that
/// `remote_repository` has not checked, so no other `git-remote-NAME` may be started.
const TRANSPORTS: [&str; 5] = ["https", "http", "ssh", "git", "file"];

/// The variable that restricts the transports. It takes precedence over the user's `protocol.….allow` settings,
/// which could permit more. If the user has set it, only the transports in both lists are allowed.
const ALLOWED_TRANSPORTS_VARIABLE: &str = "GIT_ALLOW_PROTOCOL";

/// Further variables on which the user's credentials and the connection to the remote depend.
const KEPT_REMOTE_VARIABLES: &[&str] =
    &["GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH"];
/// Prefixes of such variables: certificates, proxies, and settings that the environment lists one by one.
const KEPT_REMOTE_PREFIXES: &[&str] =
    &["GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_COUNT"];

/// Returns a git command that connects to a remote for Plimsoll's own repository. It works in the clone's
/// folder, because a remote's relative path starts there. It never prompts for a password: there may be no user.
pub(crate) fn build_remote_git_command(
    git_folder: &Path,
    clone_folder: &Path,
    arguments: &[&str],
) -> Command {
    let mut command = git_command();
    command.arg("--no-pager");
    for setting in REMOTE_COMMAND_SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(arguments).current_dir(clone_folder);
    for (name, _) in environment::all_variables() {
        let is_kept =
            KEPT_USER_VARIABLES.iter().chain(KEPT_REMOTE_VARIABLES).any(|kept_name| *kept_name == name)
                || KEPT_REMOTE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if name.starts_with("GIT_") && !is_kept {
            command.env_remove(name);
        }
    }
    command.env("GIT_DIR", git_folder);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1").env("LC_ALL", "C");
    let user_transports = environment::variable(ALLOWED_TRANSPORTS_VARIABLE);
    let is_allowed = |transport: &&str| {
        user_transports
            .as_ref()
            .is_none_or(|user_list| user_list.split(':').any(|user_transport| user_transport == *transport))
    };
    let allowed_transports: Vec<&str> = TRANSPORTS.into_iter().filter(is_allowed).collect();
    command.env(ALLOWED_TRANSPORTS_VARIABLE, allowed_transports.join(":"));
    if environment::variable("SSH_ASKPASS").is_none() {
        command.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
    }
    command
}

/// Returns a git command for Plimsoll's own repository that runs no other program and uses no network. Without
/// `existing_git_folder`, the command can create such a repository.
pub(crate) fn offline_plimsoll_repository_command(
    existing_git_folder: Option<&Path>,
    folder: &Path,
    arguments: &[&str],
) -> Command {
    let mut command = git_command();
    command.arg("--no-pager");
    for (name, value) in DISABLING_SETTINGS.iter().filter(|(name, _)| *name != "safe.bareRepository") {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    for setting in ["protocol.file.allow=always", "protocol.version=2", "gc.auto=0", "maintenance.auto=false"]
    {
        command.args(["-c", setting]);
    }
    command.args(arguments).current_dir(folder);
    remove_git_variables_except_user_settings(&mut command, &[]);
    command.envs([
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_ALLOW_PROTOCOL", "file"),
        ("LC_ALL", "C"),
    ]);
    if let Some(git_folder) = existing_git_folder {
        command.env("GIT_DIR", git_folder);
    }
    command
}

/// Returns a read-only git command for the working tree of Plimsoll's own repository. The `.git` file there is
/// ignored, because the verified code could have written it.
pub(crate) fn plimsoll_repository_read_only_command(
    git_folder: &Path,
    work_tree: &Path,
    arguments: &[&str],
) -> Command {
    let mut command = build_read_only_git_command(work_tree, work_tree, &[], arguments);
    command.env("GIT_DIR", git_folder);
    command
}

/// Removes git's variables from the environment, except [`KEPT_USER_VARIABLES`] and `additional_kept_names`.
pub(super) fn remove_git_variables_except_user_settings(
    command: &mut Command,
    additional_kept_names: &[&str],
) {
    for (name, _) in environment::all_variables() {
        if name.starts_with("GIT_")
            && !KEPT_USER_VARIABLES.iter().chain(additional_kept_names).any(|kept_name| *kept_name == name)
        {
            command.env_remove(name);
        }
    }
}
