//! Git commands that write: commits, checkouts, rebases, references. They run no hook and no driver of the
//! project, unless the user allows it.

use super::command::{DISABLING_SETTINGS, git_command, remove_git_variables_except_user_settings};
use super::folder_guard;
use super::programs::{AllowedPrograms, ConfiguredDrivers, ProjectFolders, settings_disabling_driver};
use crate::child::{self, ChildOptions};
use crate::search_path::{restrict_path_to_entries_outside, use_callers_path_unchanged};
use crate::time_limit::TimeLimit;
use crate::{CommandOutcome, git_output};
use plimsoll_store::layout::find_repository;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The timeout for reading git's settings.
const SETTINGS_TIMEOUT: Duration = Duration::from_secs(20);

/// Settings of signing programs. Signing stays as the user configured it if its program is trusted.
const SIGNING_PROGRAM_SETTINGS: [&str; 3] = ["gpg.program", "gpg.ssh.program", "gpg.x509.program"];

/// Settings that apply even if the user allows the repository's own programs: without them git could be led
/// into another repository.
const ALWAYS_DISABLING_SETTINGS: &[&str] = &[
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "diff.submodule=short",
    "diff.ignoreSubmodules=dirty",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
];

/// Settings that commits, checkouts and rebases always use.
const WRITE_SETTINGS: &[&str] = &[
    // Background maintenance would continue after this command.
    "gc.auto=0",
    "maintenance.auto=false",
    // A rebase would also move the user's other branches.
    "rebase.updateRefs=false",
    // Git would print this advice because we set `GIT_GRAFT_FILE`.
    "advice.graftFileDeprecated=false",
    // Only sessions resolve conflicts; a resolution recorded by an earlier session is not reused.
    "rerere.enabled=false",
];

/// Variables with the names and dates of a commit, and the location of git's own programs.
const KEPT_COMMIT_VARIABLES: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_EXEC_PATH",
];

/// Creates git commands that write in one folder.
#[derive(Debug, Clone)]
pub(crate) struct GitWriter<'a> {
    folder: &'a Path,
    /// The git folder of Plimsoll's own repository; `None` if git finds the git folder itself.
    plimsoll_repository_git_folder: Option<&'a Path>,
    /// The checked git folder that all worktrees share.
    common_git_folder: Option<PathBuf>,
    /// The folders that an agent may write, where git must not search programs. `None` if git may run
    /// everything.
    project_folders: Option<ProjectFolders>,
    /// `name=value`, for `-c`.
    settings: Vec<OsString>,
    /// The names of the drivers that are disabled.
    forbidden_drivers: BTreeSet<Vec<u8>>,
}

impl<'a> GitWriter<'a> {
    /// Checks the git folder and reads the settings that apply in `folder`, unless all programs are allowed.
    /// Returns an error if the git folder is unsafe, or if not every forbidden driver can be disabled.
    pub(crate) fn new(
        folder: &'a Path,
        allowed_programs: AllowedPrograms,
    ) -> Result<GitWriter<'a>, CommandOutcome> {
        if allowed_programs == AllowedPrograms::AllPrograms {
            let settings =
                WRITE_SETTINGS.iter().chain(ALWAYS_DISABLING_SETTINGS).map(OsString::from).collect();
            return Ok(GitWriter {
                folder,
                plimsoll_repository_git_folder: None,
                common_git_folder: None,
                project_folders: None,
                settings,
                forbidden_drivers: BTreeSet::new(),
            });
        }
        let common_git_folder = folder_guard::checked_common_git_folder(folder);
        let common_git_folder = common_git_folder.map_err(|error| CommandOutcome {
            start_error: Some(error.to_string()),
            ..CommandOutcome::default()
        })?;
        let drivers = ConfiguredDrivers::read(folder, TimeLimit::from_now(SETTINGS_TIMEOUT))?;
        let project_folders = ProjectFolders::for_folder(folder);
        let forbidden_drivers = drivers.forbidden_drivers(&project_folders, allowed_programs);
        let writer = GitWriter::with_forbidden_drivers_disabled(
            folder,
            None,
            project_folders,
            allowed_programs,
            forbidden_drivers,
        );
        Ok(GitWriter { common_git_folder, ..writer })
    }

    /// Creates a writer for the working tree of Plimsoll's own repository; hooks are always disabled there.
    /// `writable_folders` are the folders that a session or a verify command may write.
    pub(crate) fn for_plimsoll_repository(
        git_folder: &'a Path,
        work_tree: &'a Path,
        writable_folders: &[&Path],
        allowed_programs: AllowedPrograms,
    ) -> Result<GitWriter<'a>, CommandOutcome> {
        let drivers = ConfiguredDrivers::read_in_plimsoll_repository(
            git_folder,
            work_tree,
            TimeLimit::from_now(SETTINGS_TIMEOUT),
        )?;
        let project_folders =
            ProjectFolders::for_plimsoll_repository(git_folder, work_tree, writable_folders);
        let forbidden_drivers = drivers.forbidden_drivers(&project_folders, allowed_programs);
        let allowed_signing_programs = AllowedPrograms::TrustedDrivers;
        Ok(GitWriter::with_forbidden_drivers_disabled(
            work_tree,
            Some(git_folder),
            project_folders,
            allowed_signing_programs,
            forbidden_drivers,
        ))
    }

    fn with_forbidden_drivers_disabled(
        folder: &'a Path,
        plimsoll_repository_git_folder: Option<&'a Path>,
        project_folders: ProjectFolders,
        allowed_signing_programs: AllowedPrograms,
        forbidden_drivers: BTreeSet<Vec<u8>>,
    ) -> GitWriter<'a> {
        let may_sign = allowed_signing_programs == AllowedPrograms::TrustedDrivers;
        let is_disabled = |name: &str| !(may_sign && SIGNING_PROGRAM_SETTINGS.contains(&name));
        let disabling_settings = DISABLING_SETTINGS.iter().filter(|(name, _)| is_disabled(name));
        let disabling_settings = disabling_settings.map(|(name, value)| format!("{name}={value}").into());
        let unsigned_setting = (!may_sign).then(|| "commit.gpgSign=false".into());
        let driver_settings = forbidden_drivers.iter().flat_map(|driver| settings_disabling_driver(driver));
        let write_settings = WRITE_SETTINGS.iter().map(OsString::from);
        let settings =
            write_settings.chain(disabling_settings).chain(unsigned_setting).chain(driver_settings).collect();
        GitWriter {
            folder,
            plimsoll_repository_git_folder,
            common_git_folder: None,
            project_folders: Some(project_folders),
            settings,
            forbidden_drivers,
        }
    }

    pub(crate) fn folder(&self) -> &'a Path {
        self.folder
    }

    /// Adds further settings, each as `name=value`.
    pub(crate) fn add_settings(&mut self, settings: impl IntoIterator<Item = OsString>) {
        self.settings.extend(settings);
    }

    /// Returns whether the filter with this name may run.
    pub(crate) fn allows_filter(&self, name: &[u8]) -> bool {
        !self.forbidden_drivers.contains(&[b"filter.", name].concat())
    }

    /// Returns a git command for the folder. It uses the user's language and never prompts.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_in(self.folder, arguments)
    }

    /// Returns a git command for another folder of the same working tree.
    pub(crate) fn command_in(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = git_command();
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        if self.plimsoll_repository_git_folder.is_some() {
            command.args(["-c", "core.attributesFile=/dev/null"]);
        }
        command.args(arguments).current_dir(folder);
        remove_git_variables_except_user_settings(&mut command, KEPT_COMMIT_VARIABLES);
        command.env("GIT_EDITOR", "true").env("GIT_SEQUENCE_EDITOR", "true").env("GIT_TERMINAL_PROMPT", "0");
        match &self.project_folders {
            Some(project_folders) => {
                self.restrict_search_path_and_git_environment(&mut command, project_folders);
            }
            None => use_callers_path_unchanged(&mut command),
        }
        command
    }

    /// Prevents files in the git folder that an agent may have written from leading git out of the working
    /// tree, or from showing it other objects than a clone would have.
    fn restrict_search_path_and_git_environment(
        &self,
        command: &mut Command,
        project_folders: &ProjectFolders,
    ) {
        restrict_path_to_entries_outside(command, |folder| project_folders.contains(folder));
        command
            // Takes precedence over each `protocol.NAME.allow` of the repository: `url.X.insteadOf` may lead
            // a local path to a program.
            .env("GIT_ALLOW_PROTOCOL", "file")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_NO_LAZY_FETCH", "1");
        if let Some(git_folder) = self.plimsoll_repository_git_folder {
            // Attributes come only from the commit, as in any clone.
            command
                .env("GIT_DIR", git_folder)
                .env("GIT_WORK_TREE", self.folder)
                .env("GIT_ATTR_NOSYSTEM", "1");
        } else if let Some((root, _)) = find_repository(self.folder) {
            // `core.worktree` in `config.worktree` could make git read and write any folder.
            command.env("GIT_WORK_TREE", root);
            if let Some(common_git_folder) = &self.common_git_folder {
                command.env("GIT_COMMON_DIR", common_git_folder);
            }
        }
    }

    /// Runs a git command with a timeout.
    pub(crate) fn run(&self, arguments: &[&str], timeout: Duration) -> CommandOutcome {
        child::run(self.command(arguments), ChildOptions::with_timeout(timeout))
    }
}

/// Reads the drivers of Plimsoll's own repository and returns the settings that disable all of them.
pub(crate) fn read_settings_disabling_all_drivers(
    git_folder: &Path,
    work_tree: &Path,
) -> Result<Vec<OsString>, CommandOutcome> {
    Ok(ConfiguredDrivers::read_in_plimsoll_repository(
        git_folder,
        work_tree,
        TimeLimit::from_now(SETTINGS_TIMEOUT),
    )?
    .settings_disabling_all())
}

/// Runs a git command that writes. If it must not be started, the outcome contains the reason.
pub(crate) fn run_write_command(
    folder: &Path,
    allowed_programs: AllowedPrograms,
    arguments: &[&str],
    timeout: Duration,
) -> CommandOutcome {
    match GitWriter::new(folder, allowed_programs) {
        Ok(writer) => writer.run(arguments, timeout),
        Err(outcome) => not_started_outcome(&outcome),
    }
}

/// Returns the outcome of a git command that was not started because no [`GitWriter`] could be created.
pub(crate) fn not_started_outcome(cause: &CommandOutcome) -> CommandOutcome {
    let start_error = format!("git is not started: {}", git_output::fatal_message_or_last_output_line(cause));
    CommandOutcome { start_error: Some(start_error), ..CommandOutcome::default() }
}
