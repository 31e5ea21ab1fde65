//! Git commands that write: commits, checkouts, rebases, references. They run no hook, and no driver of the project, unless the
//! user allows it.

use super::command::{SWITCHED_OFF, git, take_away_variables};
use super::folder_guard;
use super::programs::{AllowedPrograms, Drivers, ProjectPlaces, settings_without};
use crate::child::{self, Terms};
use crate::search_path::{search_as_callers_shell, search_outside};
use crate::time_limit::TimeLimit;
use crate::{Outcome, git_output};
use plimsoll_store::layout::repository;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long git may take to read its settings.
const SETTINGS_DEADLINE: Duration = Duration::from_secs(20);

/// Signing stays as the user configured it, if its program is trusted.
const SIGNING: [&str; 3] = ["gpg.program", "gpg.ssh.program", "gpg.x509.program"];

/// Off also where the user allows the repository's own programs: these would lead git into another repository.
const OFF_WITH_HOOKS: &[&str] = &[
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "diff.submodule=short",
    "diff.ignoreSubmodules=dirty",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
];

/// What a commit, a checkout and a rebase must do whatever the settings say.
const WRITES_PLAINLY: &[&str] = &[
    // A cleaning in the background would work on after us.
    "gc.auto=0",
    "maintenance.auto=false",
    // It would move branches of the user's along.
    "rebase.updateRefs=false",
    // Said because of the variable that we set.
    "advice.graftFileDeprecated=false",
    // Conflicts are resolved by sessions only, never by what some session recorded.
    "rerere.enabled=false",
];

/// The names that a commit has, and where git's own programs are.
const KEPT_VARIABLES: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_EXEC_PATH",
];

/// Makes git commands that write in one folder.
#[derive(Debug, Clone)]
pub(crate) struct GitWriter<'a> {
    folder: &'a Path,
    /// The git folder of a repository of ours; for any other git finds it.
    own_git_folder: Option<&'a Path>,
    /// The git folder that all worktrees share, as it was checked.
    common: Option<PathBuf>,
    /// The folders that an agent may write: git searches no program there. None if it may run everything.
    places: Option<ProjectPlaces>,
    /// `name=value`, for `-c`.
    settings: Vec<OsString>,
    /// The drivers that are switched off.
    forbidden: BTreeSet<Vec<u8>>,
}

impl<'a> GitWriter<'a> {
    /// Reads the settings that apply in the folder. An error is an answer by which not every driver could be switched off.
    pub(crate) fn new(folder: &'a Path, allowed: AllowedPrograms) -> Result<GitWriter<'a>, Outcome> {
        if allowed == AllowedPrograms::All {
            let settings = WRITES_PLAINLY.iter().chain(OFF_WITH_HOOKS).map(OsString::from).collect();
            return Ok(GitWriter {
                folder,
                own_git_folder: None,
                common: None,
                places: None,
                settings,
                forbidden: BTreeSet::new(),
            });
        }
        let common = folder_guard::check(folder);
        let common =
            common.map_err(|error| Outcome { trouble: Some(error.to_string()), ..Outcome::default() })?;
        let drivers = Drivers::read(folder, TimeLimit::within(SETTINGS_DEADLINE))?;
        let places = ProjectPlaces::of(folder);
        let forbidden = drivers.forbidden(&places, allowed);
        let writer = GitWriter::without(folder, None, places, allowed, forbidden);
        Ok(GitWriter { common, ..writer })
    }

    /// The same for the working tree of a repository of ours, where no hook is in any case. `written` are the folders that a
    /// session or a verify command may write.
    pub(crate) fn for_own_repository(
        git_folder: &'a Path,
        work_tree: &'a Path,
        written: &[&Path],
        allowed: AllowedPrograms,
    ) -> Result<GitWriter<'a>, Outcome> {
        let drivers = Drivers::read_own(git_folder, work_tree, TimeLimit::within(SETTINGS_DEADLINE))?;
        let places = ProjectPlaces::of_own_repository(git_folder, work_tree, written);
        let forbidden = drivers.forbidden(&places, allowed);
        let allowed = AllowedPrograms::TrustedDrivers;
        Ok(GitWriter::without(work_tree, Some(git_folder), places, allowed, forbidden))
    }

    fn without(
        folder: &'a Path,
        own_git_folder: Option<&'a Path>,
        places: ProjectPlaces,
        allowed: AllowedPrograms,
        forbidden: BTreeSet<Vec<u8>>,
    ) -> GitWriter<'a> {
        let may_sign = allowed == AllowedPrograms::TrustedDrivers;
        let is_off = |name: &str| !(may_sign && SIGNING.contains(&name));
        let fixed = SWITCHED_OFF.iter().filter(|(name, _)| is_off(name));
        let fixed = fixed.map(|(name, value)| format!("{name}={value}").into());
        let unsigned = (!may_sign).then(|| "commit.gpgSign=false".into());
        let off = forbidden.iter().flat_map(|driver| settings_without(driver));
        let plainly = WRITES_PLAINLY.iter().map(OsString::from);
        let settings = plainly.chain(fixed).chain(unsigned).chain(off).collect();
        GitWriter { folder, own_git_folder, common: None, places: Some(places), settings, forbidden }
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &'a Path {
        self.folder
    }

    /// Also sets this, `name=value`.
    pub(crate) fn set(&mut self, settings: impl IntoIterator<Item = OsString>) {
        self.settings.extend(settings);
    }

    /// Whether a filter of this name may run.
    pub(crate) fn allows_filter(&self, name: &[u8]) -> bool {
        !self.forbidden.contains(&[b"filter.", name].concat())
    }

    /// A git command in the folder. It speaks the user's language and asks nobody.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_in(self.folder, arguments)
    }

    /// A git command in another folder of the same working tree.
    pub(crate) fn command_in(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = git();
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        if self.own_git_folder.is_some() {
            command.args(["-c", "core.attributesFile=/dev/null"]);
        }
        command.args(arguments).current_dir(folder);
        take_away_variables(&mut command, KEPT_VARIABLES);
        command.env("GIT_EDITOR", "true").env("GIT_SEQUENCE_EDITOR", "true").env("GIT_TERMINAL_PROMPT", "0");
        match &self.places {
            Some(places) => self.confine(&mut command, places),
            None => search_as_callers_shell(&mut command),
        }
        command
    }

    /// Keeps what an agent may have written in the git folder from leading git out of the working tree, or from showing it
    /// other objects than a clone would have.
    fn confine(&self, command: &mut Command, places: &ProjectPlaces) {
        search_outside(command, |folder| places.contains(folder));
        command
            // Stronger than each `protocol.NAME.allow` of the repository: `url.X.insteadOf` may lead a local path to a program.
            .env("GIT_ALLOW_PROTOCOL", "file")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_NO_LAZY_FETCH", "1");
        if let Some(git_folder) = self.own_git_folder {
            // Attributes come from the commit alone, as in any clone.
            command
                .env("GIT_DIR", git_folder)
                .env("GIT_WORK_TREE", self.folder)
                .env("GIT_ATTR_NOSYSTEM", "1");
        } else if let Some((root, _)) = repository(self.folder) {
            // `core.worktree` in `config.worktree` would have git read and write any folder.
            command.env("GIT_WORK_TREE", root);
            if let Some(common) = &self.common {
                command.env("GIT_COMMON_DIR", common);
            }
        }
    }

    /// Runs a git command within a deadline.
    pub(crate) fn run(&self, arguments: &[&str], deadline: Duration) -> Outcome {
        child::run(self.command(arguments), Terms::within(deadline))
    }
}

/// What git is told on its command line so that it runs no driver at all in the working tree of a repository of ours.
pub(crate) fn settings_without_drivers(
    git_folder: &Path,
    work_tree: &Path,
) -> Result<Vec<OsString>, Outcome> {
    Ok(Drivers::read_own(git_folder, work_tree, TimeLimit::within(SETTINGS_DEADLINE))?.all_off())
}

/// Runs a git command that writes; the outcome of one that must not be started says why.
pub(crate) fn write(
    folder: &Path,
    allowed: AllowedPrograms,
    arguments: &[&str],
    deadline: Duration,
) -> Outcome {
    match GitWriter::new(folder, allowed) {
        Ok(writer) => writer.run(arguments, deadline),
        Err(outcome) => not_started(&outcome),
    }
}

/// The outcome of a git that was not started, because [`GitWriter`] could not be made.
pub(crate) fn not_started(refusal: &Outcome) -> Outcome {
    let trouble = format!("git is not started: {}", git_output::last_words(refusal));
    Outcome { trouble: Some(trouble), ..Outcome::default() }
}
