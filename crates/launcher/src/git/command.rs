//! The one place that makes a git command. What a repository brings may name programs in many places; a git that only reads
//! runs none of them: see [`SWITCHED_OFF`], [`PLAIN_DIFF`] and [`ENVIRONMENT`], and [`super::asking`] for filters.

use crate::Outcome;
use crate::search_path::new_command;
use plimsoll_store::layout::repository;
use plimsoll_store::{disk, environment};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// What could start a program, or lead git into another repository, and what it is set to when we look. A setting on
/// the command line counts more than every file.
pub(super) const SWITCHED_OFF: &[(&str, &str)] = &[
    // A folder that looks like a repository, committed inside another one, has a configuration of its own.
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    // `post-index-change`, `reference-transaction`: no program is below a file.
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
    // `log` and `diff` of a submodule are asked of a git inside it, and so is its state.
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    // A list of objects beside the packs, in which an agent could give an object another one's content.
    ("core.multiPackIndex", "false"),
];

/// What makes its answers the same everywhere. The index is not written: `diff` renews it unless it is told not to.
const ANSWERS_PLAINLY: &[(&str, &str)] =
    &[("core.quotePath", "false"), ("color.ui", "false"), ("diff.autoRefreshIndex", "false")];

/// For every command that can show a difference: no `diff.external`, no `diff.NAME.command`, no `diff.NAME.textconv`.
const PLAIN_DIFF: &[&str] = &["--no-ext-diff", "--no-textconv", "--submodule=short"];

/// Set for every git that looks.
const ENVIRONMENT: &[(&str, &str)] = &[
    // `status` would renew the index, and an agent's `git commit` would find it locked.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // What a clone would have, whatever an agent replaced.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // A partial clone would fetch what it lacks, with the programs that its remote names.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    // `fatal: ` is looked for in what it says.
    ("LC_ALL", "C"),
];

/// The variables of git that are the user's own and lead to no program and no other repository: where the user's own
/// settings are, and where the search for a repository ends. Every other `GIT_…` is taken away.
const KEPT: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// The root of the working tree that a folder is in. Outside a repository git has no answer, and is not started to say so: its
/// variables that could lead it into another one are taken away.
pub(super) fn working_tree(folder: &Path) -> Result<PathBuf, Outcome> {
    let trouble = || Outcome { trouble: Some("there is no git repository".to_owned()), ..Outcome::default() };
    let root = |folder: &Path| repository(folder).map(|(root, _)| root.to_owned());
    // Through a link the folders above are others.
    root(folder).or_else(|| root(&disk::canonical(folder))).ok_or_else(trouble)
}

/// git itself, by an absolute entry of the PATH: the command starts in a folder of the project, where a relative entry would
/// find a program of the project's. Without one it is missing.
pub(super) fn git() -> Command {
    static GIT: LazyLock<PathBuf> =
        LazyLock::new(|| environment::find_program("git").unwrap_or_else(|| "/no/git/on/the/PATH".into()));
    new_command(GIT.as_path())
}

pub(super) fn reading_command(folder: &Path, root: &Path, off: &[OsString], arguments: &[&str]) -> Command {
    let mut command = git();
    command.arg("--no-pager");
    for (name, value) in SWITCHED_OFF.iter().chain(ANSWERS_PLAINLY) {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    for setting in off {
        command.arg("-c").arg(setting);
    }
    command.args(arguments.first());
    // What is given by the caller comes later and is stronger.
    if arguments.first().is_some_and(|name| ["diff", "log", "diff-tree"].contains(name)) {
        command.args(PLAIN_DIFF);
    }
    command.args(arguments.get(1..).unwrap_or_default()).current_dir(folder);
    take_away_variables(&mut command, &[]);
    command.envs(ENVIRONMENT.iter().copied());
    // `core.worktree`, in a file that an agent may write (`config.worktree`), would have git read any folder.
    command.env("GIT_WORK_TREE", root);
    command
}

/// For a git that speaks to a remote. It works in a repository of ours ([`crate::own_repository`]), so that no setting of the clone
/// counts: what is left are the user's own settings and variables, by which credentials are found. Of those, hooks are off, for
/// they expect a working tree; and nothing is done beside what was asked.
const TALKS_PLAINLY: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // No cleaning in the background works on after us.
    "gc.auto=0",
    "maintenance.auto=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
];

/// The transports by which a remote is reached, as git names them. The user's `url.….insteadOf` may lead to an address that
/// `remote_repository` has not checked: no `git-remote-NAME` is started but these.
const TRANSPORTS: [&str; 5] = ["https", "http", "ssh", "git", "file"];

/// The variable that says so, stronger than every `protocol.….allow` of the user's, which could permit more. What it names
/// already is not made more.
const ALLOWED_TRANSPORTS: &str = "GIT_ALLOW_PROTOCOL";

/// By what else the user's credentials are found, and the way to the remote.
const KEPT_WHEN_TALKING: &[&str] =
    &["GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH"];
/// Beginnings of such names: certificates, proxies, and settings that the environment names one by one.
const KEPT_BEGINNINGS: &[&str] =
    &["GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_COUNT"];

/// A git that speaks to a remote for a repository of ours. It works in the clone's folder, from where a remote's relative path
/// leads on. Nobody is asked for a password: there may be nobody.
pub(crate) fn talking(git_folder: &Path, clone: &Path, arguments: &[&str]) -> Command {
    let mut command = git();
    command.arg("--no-pager");
    for setting in TALKS_PLAINLY {
        command.args(["-c", setting]);
    }
    command.args(arguments).current_dir(clone);
    for (name, _) in environment::all() {
        let is_kept = KEPT.iter().chain(KEPT_WHEN_TALKING).any(|kept| *kept == name)
            || KEPT_BEGINNINGS.iter().any(|begin| name.starts_with(begin));
        if name.starts_with("GIT_") && !is_kept {
            command.env_remove(name);
        }
    }
    command.env("GIT_DIR", git_folder);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1").env("LC_ALL", "C");
    let users = environment::variable(ALLOWED_TRANSPORTS);
    let is_allowed =
        |one: &&str| users.as_ref().is_none_or(|users| users.split(':').any(|allowed| allowed == *one));
    let allowed: Vec<&str> = TRANSPORTS.into_iter().filter(is_allowed).collect();
    command.env(ALLOWED_TRANSPORTS, allowed.join(":"));
    if environment::variable("SSH_ASKPASS").is_none() {
        command.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
    }
    command
}

/// A git for a repository of ours that runs no program and reaches no further than this machine's disk; without a git folder one
/// that makes such a repository.
pub(crate) fn own_command(git_folder: Option<&Path>, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = git();
    command.arg("--no-pager");
    for (name, value) in SWITCHED_OFF.iter().filter(|(name, _)| *name != "safe.bareRepository") {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    for setting in ["protocol.file.allow=always", "protocol.version=2", "gc.auto=0", "maintenance.auto=false"]
    {
        command.args(["-c", setting]);
    }
    command.args(arguments).current_dir(folder);
    take_away_variables(&mut command, &[]);
    command.envs([
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_ALLOW_PROTOCOL", "file"),
        ("LC_ALL", "C"),
    ]);
    if let Some(git_folder) = git_folder {
        command.env("GIT_DIR", git_folder);
    }
    command
}

/// A git that only reads, in the working tree of a repository of ours. The file there that leads git to a repository is not read:
/// what is verified could have written it.
pub(crate) fn own_reading_command(git_folder: &Path, work_tree: &Path, arguments: &[&str]) -> Command {
    let mut command = reading_command(work_tree, work_tree, &[], arguments);
    command.env("GIT_DIR", git_folder);
    command
}

/// Removes git's variables from the environment, except for the user's own and these.
pub(super) fn take_away_variables(command: &mut Command, also_kept: &[&str]) {
    for (name, _) in environment::all() {
        if name.starts_with("GIT_") && !KEPT.iter().chain(also_kept).any(|kept| *kept == name) {
            command.env_remove(name);
        }
    }
}
