//! Decides which programs in git's settings may run when we commit, rebase, check out or merge.
//!
//! An agent in Claude Code's sandbox can write the files of the working tree, but not `.git/config`. Files
//! that it writes must not run outside of the sandbox because we make a commit. Hooks are therefore disabled.
//! A driver (filter, merge driver, signing program) runs only if its setting comes from a file that the agent
//! cannot write, its program lies outside of the project, and its command names nothing in the project. This
//! is true of git-lfs and git-crypt. The check reads the command; it does not compare the contents of
//! scripts.

use super::command::{
    build_read_only_git_command, find_working_tree_root, plimsoll_repository_read_only_command,
};
use crate::CommandOutcome;
use crate::child::{self, ChildOptions};
use crate::search_path::restrict_path_to_entries_outside;
use crate::time_limit::TimeLimit;
use plimsoll_store::disk::ResolvedFolders;
use plimsoll_store::layout::{find_repository, shared_git_folder};
use plimsoll_store::{disk, environment};
use plimsoll_system::paths::os_str_from_bytes;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that git may run when we write to a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllowedPrograms {
    /// No program from any setting: for a repository that was created during the run.
    NoPrograms,
    /// No hooks, and only drivers outside of the project.
    #[default]
    TrustedDrivers,
    /// Everything that the repository is configured to run (`--commit-hooks`).
    AllPrograms,
}

/// Maximum number of driver settings, more than any real repository has. With more, git is not started.
const MAX_DRIVER_SETTINGS: usize = 4_000;

/// Programs that run code of the current folder although no argument names a file in it.
const PROJECT_RUNNERS: &[&str] = &[
    "bun",
    "bundle",
    "bunx",
    "cargo",
    "composer",
    "deno",
    "direnv",
    "gmake",
    "go",
    "gradle",
    "gradlew",
    "hatch",
    "husky",
    "just",
    "lefthook",
    "make",
    "mise",
    "mvn",
    "nix",
    "nix-shell",
    "nox",
    "npm",
    "npx",
    "pipenv",
    "pnpm",
    "poetry",
    "pre-commit",
    "rake",
    "task",
    "tox",
    "uv",
    "uvx",
    "yarn",
];

/// The settings that name programs, in the form of `git config --get-regexp`.
const PROGRAM_SETTINGS: &str = r"^(filter|merge|hook)\..*\.|^gpg\..*program$|^gpg\.ssh\.defaultkeycommand$";

const DRIVER_QUERY: [&str; 6] =
    ["config", "--null", "--show-scope", "--show-origin", "--get-regexp", PROGRAM_SETTINGS];

/// The drivers in git's settings.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredDrivers {
    settings: Vec<DriverSetting>,
}

#[derive(Debug, PartialEq, Eq)]
struct DriverSetting {
    /// The section and the name: `filter.lfs`, `merge.ours`, `hook.lint`, `gpg`.
    driver: Vec<u8>,
    /// The command that git runs; empty if it runs nothing.
    command: Vec<u8>,
    /// `local`, `global` and so on.
    scope: Vec<u8>,
    /// `file:.git/config`
    origin: Vec<u8>,
}

impl ConfiguredDrivers {
    /// Starts a query for the driver settings that apply in a folder. Git itself reads them, because only git
    /// knows which files are included.
    pub(super) fn start_driver_settings_query(
        folder: &Path,
        root: &Path,
        limit: TimeLimit,
    ) -> Result<child::RunningChild<'static>, CommandOutcome> {
        child::start_in_new_process_group(
            build_read_only_git_command(folder, root, &[], &DRIVER_QUERY),
            ChildOptions::with_timeout(limit.remaining()),
        )
    }

    /// Reads the driver settings that apply in a folder.
    pub(crate) fn read(folder: &Path, limit: TimeLimit) -> Result<ConfiguredDrivers, CommandOutcome> {
        let root = find_working_tree_root(folder)?;
        ConfiguredDrivers::start_driver_settings_query(folder, &root, limit).and_then(|running_query| {
            ConfiguredDrivers::parse_if_all_can_be_disabled(running_query.wait_with_output())
        })
    }

    /// Reads the driver settings that apply in the working tree of Plimsoll's own repository.
    pub(super) fn read_in_plimsoll_repository(
        git_folder: &Path,
        work_tree: &Path,
        limit: TimeLimit,
    ) -> Result<ConfiguredDrivers, CommandOutcome> {
        let command = plimsoll_repository_read_only_command(git_folder, work_tree, &DRIVER_QUERY);
        ConfiguredDrivers::parse_if_all_can_be_disabled(child::run(
            command,
            ChildOptions::with_timeout(limit.remaining()),
        ))
    }

    /// Parses git's output. Returns an error if the query failed or not every driver could be disabled; git must
    /// not be started then.
    pub(super) fn parse_if_all_can_be_disabled(
        outcome: CommandOutcome,
    ) -> Result<ConfiguredDrivers, CommandOutcome> {
        // Exit code 1 means that there are no such settings.
        if outcome.timed_out || !matches!(outcome.exit_code, Some(0 | 1)) {
            return Err(outcome);
        }
        let mut settings = Vec::new();
        let mut fields = outcome.stdout.split(|byte| *byte == 0);
        while let (Some(scope), Some(origin), Some(setting)) = (fields.next(), fields.next(), fields.next()) {
            if let Some((driver, command)) = parse_driver_and_command(setting) {
                let (scope, origin) = (scope.to_vec(), origin.to_vec());
                settings.push(DriverSetting { driver, command: command.to_vec(), scope, origin });
            }
        }
        // `-c` ends the name at its first `=`.
        if settings.len() > MAX_DRIVER_SETTINGS
            || settings.iter().any(|setting| setting.driver.contains(&b'='))
        {
            let message = "git's settings name a driver that cannot be switched off".to_owned();
            return Err(CommandOutcome { start_error: Some(message), ..CommandOutcome::default() });
        }
        Ok(ConfiguredDrivers { settings })
    }

    /// Returns whether any filter is configured. If not, no file is under one.
    pub(crate) fn has_filters(&self) -> bool {
        self.settings.iter().any(|setting| setting.driver.starts_with(b"filter."))
    }

    /// Returns the names of the drivers that must not run in these folders.
    pub(super) fn forbidden_drivers(
        &self,
        project_folders: &ProjectFolders,
        allowed_programs: AllowedPrograms,
    ) -> BTreeSet<Vec<u8>> {
        let is_forbidden = |setting: &&DriverSetting| match allowed_programs {
            AllowedPrograms::NoPrograms => true,
            AllowedPrograms::TrustedDrivers => !project_folders.is_trusted_setting(setting),
            AllowedPrograms::AllPrograms => false,
        };
        self.settings.iter().filter(is_forbidden).map(|setting| setting.driver.clone()).collect()
    }

    /// Returns the settings for git's command line that disable all drivers.
    pub(super) fn settings_disabling_all(&self) -> Vec<OsString> {
        let drivers: BTreeSet<&Vec<u8>> = self.settings.iter().map(|setting| &setting.driver).collect();
        drivers.into_iter().flat_map(|driver| settings_disabling_driver(driver)).collect()
    }
}

/// Returns the settings that disable one driver.
pub(super) fn settings_disabling_driver(driver: &[u8]) -> Vec<OsString> {
    let setting_with_suffix =
        |suffix: &str| os_str_from_bytes(&[driver, suffix.as_bytes()].concat()).into_owned();
    match driver.split(|byte| *byte == b'.').next() {
        // A required filter without a command is an error in git.
        Some(b"filter") => {
            [".clean=", ".smudge=", ".process=", ".required=false"].map(setting_with_suffix).into()
        }
        // With an empty command git silently takes one side; a command that fails makes a conflict.
        Some(b"merge") => vec![setting_with_suffix(".driver=false")],
        Some(b"gpg") => vec!["commit.gpgSign=false".into()],
        _ => vec![setting_with_suffix(".enabled=false")],
    }
}

/// Parses `filter.lfs.clean
/// git-lfs clean -- %f` into the driver's name and the command. The command is empty if the setting runs
/// nothing. Returns `None` if the setting belongs to no driver.
fn parse_driver_and_command(setting: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let end = setting.iter().position(|byte| *byte == b'\n').unwrap_or(setting.len());
    let (key, value) = (&setting[..end], setting.get(end + 1..).unwrap_or_default());
    if key.starts_with(b"gpg.") {
        return Some((b"gpg".to_vec(), value));
    }
    let last_dot = key.iter().rposition(|byte| *byte == b'.')?;
    let (driver, variable_name) = (&key[..last_dot], &key[last_dot + 1..]);
    let has_driver_name = driver.contains(&b'.');
    let is_command = match driver.split(|byte| *byte == b'.').next()? {
        b"filter" => [&b"clean"[..], b"smudge", b"process"].contains(&variable_name),
        b"merge" => variable_name == b"driver",
        b"hook" => true,
        _ => return None,
    };
    // `filter.NAME.required` alone must still be disabled with its filter.
    (has_driver_name && (is_command || driver.starts_with(b"filter.")))
        .then(|| (driver.to_vec(), if is_command { value } else { b"" }))
}

/// The folders of the project, which an agent may write.
#[derive(Debug, Clone)]
pub(super) struct ProjectFolders {
    /// Working trees and git folders.
    folders: ResolvedFolders,
    /// The root of the working tree; git starts drivers there.
    root: PathBuf,
    /// The repository's own settings file, which the sandbox protects.
    repository_config: Option<PathBuf>,
}

impl ProjectFolders {
    pub(super) fn for_folder(folder: &Path) -> ProjectFolders {
        let folder = disk::canonicalize_or_keep(folder);
        let Some((root, git_folder)) = find_repository(&folder).map(|(root, git)| (root.to_owned(), git))
        else {
            let folders = ResolvedFolders::resolve([folder.clone()]);
            return ProjectFolders { folders, root: folder, repository_config: None };
        };
        let common_git_folder =
            disk::canonicalize_or_keep(&shared_git_folder(&git_folder).unwrap_or_else(|| git_folder.clone()));
        // The main working tree, if the folder is in a linked one.
        let main_working_tree = common_git_folder
            .file_name()
            .filter(|name| *name == ".git")
            .and_then(|_| common_git_folder.parent());
        let repository_config = Some(common_git_folder.join("config"));
        let folders = [
            Some(root.clone()),
            main_working_tree.map(Path::to_owned),
            Some(disk::canonicalize_or_keep(&git_folder)),
            Some(common_git_folder.clone()),
        ];
        let folders = ResolvedFolders::resolve(folders.into_iter().flatten());
        ProjectFolders { folders, root, repository_config }
    }

    /// Creates the value for the working tree of Plimsoll's own repository.
    pub(super) fn for_plimsoll_repository(
        git_folder: &Path,
        work_tree: &Path,
        writable_folders: &[&Path],
    ) -> ProjectFolders {
        let root = disk::canonicalize_or_keep(work_tree);
        let mut folders: Vec<PathBuf> =
            writable_folders.iter().map(|folder| disk::canonicalize_or_keep(folder)).collect();
        // The working tree to which a clone's `.git` folder belongs.
        let working_trees: Vec<PathBuf> = folders
            .iter()
            .filter(|folder| folder.ends_with(".git"))
            .filter_map(|git_path| git_path.parent())
            .map(Path::to_owned)
            .collect();
        folders.extend(working_trees);
        let folders = ResolvedFolders::resolve(folders);
        ProjectFolders { folders, root, repository_config: Some(git_folder.join("config")) }
    }

    /// Returns true if a path is in the project, in any spelling, or leads through it. It may not exist yet: a session can
    /// create a program between our check and its start.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.folders.contain(path)
    }

    /// Returns true if an agent in the sandbox cannot have written the file that contains a setting. It can write
    /// `config.worktree` and included files of the working tree.
    fn is_in_repository_config_or_outside_project(&self, scope: &[u8], origin: &[u8]) -> bool {
        if scope == b"command" {
            return true;
        }
        if scope == b"worktree" {
            return false;
        }
        let Some(file) = origin.strip_prefix(b"file:") else { return false };
        // Git lists files of the repository relative to its working folder.
        let file = self.root.join(os_str_from_bytes(file));
        let is_repository_config = self.repository_config.as_ref().is_some_and(|repository_config| {
            disk::canonicalize_or_keep(&file) == disk::canonicalize_or_keep(repository_config)
        });
        is_repository_config || !self.contains(&file)
    }

    fn is_trusted_setting(&self, setting: &DriverSetting) -> bool {
        let command = std::str::from_utf8(&setting.command);
        // Hooks can also be configured by settings.
        !setting.driver.starts_with(b"hook.")
            && self.is_in_repository_config_or_outside_project(&setting.scope, &setting.origin)
            && command.is_ok_and(|command| self.is_trusted_command(command))
    }

    /// Returns true if a command certainly runs nothing of the project, judging by its tokens. A command that
    /// only a shell could expand is not trusted.
    fn is_trusted_command(&self, command: &str) -> bool {
        const EXPANSION_CHARS: &[char] = &['$', '`', '*', '?', '[', '{', '~', '\\', '\n'];
        const SEPARATORS: &[char] = &['\'', '"', ';', '|', '&', '(', ')', '<', '>', '=', ','];
        if command.contains(EXPANSION_CHARS) {
            return false;
        }
        let is_separator = |character: char| character.is_whitespace() || SEPARATORS.contains(&character);
        let mut tokens = command.split(is_separator).filter(|token| !token.is_empty());
        // A setting without a value runs nothing.
        let Some(program) = tokens.next() else { return true };
        self.is_program_outside_project_and_no_runner(program)
            && tokens.clone().all(|token| self.token_names_nothing_in_project(token))
            && !interpreter_runs_modules_or_inline_code(command)
    }

    /// Returns true if a program exists, lies outside of the project, and is not one of [`PROJECT_RUNNERS`].
    fn is_program_outside_project_and_no_runner(&self, program: &str) -> bool {
        if is_project_runner(program) {
            return false;
        }
        let executable = if program.contains('/') {
            Some(PathBuf::from(program)).filter(|path| environment::is_executable(path))
        } else {
            // The search matches that of git: `GitWriter` removes relative entries and those inside the
            // project from git's PATH.
            environment::find_program(program)
        };
        executable.is_some_and(|path| path.is_absolute() && !self.contains(&path))
    }

    /// Returns true if a token of a command names no file of the project and none of [`PROJECT_RUNNERS`].
    fn token_names_nothing_in_project(&self, token: &str) -> bool {
        let path = Path::new(token);
        if path.is_absolute() {
            return !self.contains(path);
        }
        // Such a file could be created between our check and git's start of the command.
        let is_relative_path = token.contains('/') || token == "." || token == "..";
        !is_relative_path && !disk::exists(&self.root.join(path)) && !is_project_runner(token)
    }
}

/// Removes the folders of the project that contains `folder` from a command's PATH.
pub(crate) fn remove_project_folders_from_search_path(command: &mut Command, folder: &Path) {
    let project_folders = ProjectFolders::for_folder(folder);
    restrict_path_to_entries_outside(command, |entry| project_folders.contains(entry));
}

fn is_project_runner(program: &str) -> bool {
    PROJECT_RUNNERS.contains(&program.rsplit('/').next().unwrap_or(program))
}

/// Returns true if a command runs an interpreter with an option that loads modules or inline code: the
/// interpreter also searches the current folder for modules.
fn interpreter_runs_modules_or_inline_code(command: &str) -> bool {
    let tokens: Vec<&str> = command.split_whitespace().map(|token| token.trim_matches(['\'', '"'])).collect();
    let is_interpreter = tokens.iter().any(|token| {
        let name = token.rsplit('/').next().unwrap_or(token);
        name.starts_with("python") || name.starts_with("node") || name == "pypy3"
    });
    is_interpreter
        && tokens
            .iter()
            .any(|token| ["-m", "-c", "-e", "-r", "-p", "--eval", "--require", "--import"].contains(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wip::tests::{create_repository, run_shell};

    #[test]
    fn a_command_is_trusted_only_if_it_runs_nothing_of_the_project() {
        let folder = create_repository();
        let project = disk::canonicalize_or_keep(folder.path());
        run_shell(
            &project,
            "mkdir tools; printf '#!/bin/sh\\n' > tools/clean.sh; chmod +x tools/clean.sh; touch clean2",
        );
        let outside = tempfile::tempdir().unwrap();
        run_shell(outside.path(), "printf '#!/bin/sh\\n' > clean.sh; chmod +x clean.sh");
        run_shell(outside.path(), &format!("ln -s {}/tools/clean.sh linked.sh", project.display()));
        let project_folders = ProjectFolders::for_folder(&project.join("tools"));
        let is_trusted = |command: &str| {
            let command = command.replace("OUTSIDE", &outside.path().to_string_lossy());
            project_folders.is_trusted_command(&command.replace("PROJECT", &project.to_string_lossy()))
        };
        for command in [
            "",
            "tr a-z A-Z",
            "cat",
            "sed s,a,b,",
            "git cat-file -- %f",
            "'tr' a b",
            "OUTSIDE/clean.sh %f",
            "sh OUTSIDE/clean.sh",
            "sh -c 'tr a b'",
        ] {
            assert!(is_trusted(command), "{command}");
        }
        for command in [
            "tools/clean.sh",
            "./tools/clean.sh %f",
            "sh tools/clean.sh",
            "sh 'tools/clean.sh'",
            "sh -c 'sh tools/clean.sh'",
            "sh -c 'tr a b; tools/clean.sh'",
            "PROJECT/tools/clean.sh",
            "sh PROJECT/tools/clean.sh",
            "OUTSIDE/linked.sh",
            "sh OUTSIDE/linked.sh",
            "sh clean2",
            "sh tools/not-there-yet.sh",
            "sh ../project/clean.sh",
            "$PWD/tools/clean.sh",
            "sh -c '$(git rev-parse --show-toplevel)/tools/clean.sh'",
            "sh tools/*.sh",
            "sh -c 'cd tools && sh clean.sh'",
            "awk -f=tools/clean.awk",
            "no-such-program-at-all",
            "OUTSIDE/no-such-program",
            "python3 -m clean",
            "'/usr/bin/python3' -m 'nbstripout'",
            "node -e 1",
            "make clean",
            "env make clean",
            "npx clean",
            "pre-commit run",
        ] {
            assert!(!is_trusted(command), "{command}");
        }
    }

    #[test]
    fn the_project_contains_a_path_in_every_spelling() {
        let folder = create_repository();
        let project = disk::canonicalize_or_keep(folder.path());
        let outside = tempfile::tempdir().unwrap();
        let outside = disk::canonicalize_or_keep(outside.path());
        run_shell(
            &outside,
            &format!(
                "mkdir bin; ln -s {0} alias; ln -s {0}/new-bin soon; ln -s {0}/.git git",
                project.display()
            ),
        );
        run_shell(&project, &format!("mkdir sub; ln -s {}/bin linked-bin", outside.display()));
        let project_folders = ProjectFolders::for_folder(&project.join("sub"));
        for (path, expected) in [
            (project.join("bin"), true),
            (project.join("linked-bin"), true),
            (outside.join("alias"), true),
            (outside.join("alias/node_modules/.bin"), true),
            (outside.join("alias/linked-bin"), true),
            (outside.join("soon"), true),
            (outside.join("git/tools"), true),
            (outside.join("bin/../alias/new"), true),
            (outside.join("bin"), false),
            (outside.join("new/bin"), false),
            (PathBuf::from("/usr/bin"), false),
        ] {
            assert_eq!(project_folders.contains(&path), expected, "{path:?}");
        }
    }

    #[test]
    fn a_setting_is_trusted_only_if_the_sandbox_protects_its_file() {
        let folder = create_repository();
        let path = folder.path();
        let read = || {
            ConfiguredDrivers::read(path, TimeLimit::from_now(std::time::Duration::from_secs(20))).unwrap()
        };
        let forbidden = |drivers: &ConfiguredDrivers, allowed| -> Vec<String> {
            let names = drivers.forbidden_drivers(&ProjectFolders::for_folder(path), allowed).into_iter();
            names.map(|name| String::from_utf8_lossy(&name).into_owned()).collect()
        };
        run_shell(
            path,
            "git config filter.own.clean cat; git config filter.own.required true; git config filter.script.smudge 'sh a.txt'",
        );
        run_shell(
            path,
            "git config include.path ../included; git config -f included filter.included.clean cat",
        );
        run_shell(
            path,
            "git config -f included filter.own.smudge cat; git config merge.bad.driver 'sh a.txt %A'; git config merge.bad.name Bad",
        );
        run_shell(
            path,
            "git config extensions.worktreeConfig true; git config --worktree filter.worktree.clean cat",
        );
        run_shell(
            path,
            "git config hook.lint.command cat; git config hook.lint.event pre-commit; git config gpg.ssh.program ./a.txt",
        );
        // An included file of the working tree sets a part of `filter.own`.
        let all_drivers = [
            "filter.included",
            "filter.own",
            "filter.script",
            "filter.worktree",
            "gpg",
            "hook.lint",
            "merge.bad",
        ];
        assert_eq!(forbidden(&read(), AllowedPrograms::TrustedDrivers), all_drivers);
        run_shell(path, "rm included");
        let drivers = read();
        let without_included = ["filter.script", "filter.worktree", "gpg", "hook.lint", "merge.bad"];
        assert_eq!(forbidden(&drivers, AllowedPrograms::TrustedDrivers), without_included);
        assert_eq!(forbidden(&drivers, AllowedPrograms::NoPrograms).len(), 6);
        assert!(forbidden(&drivers, AllowedPrograms::AllPrograms).is_empty() && drivers.has_filters());
    }

    #[test]
    fn every_driver_can_be_disabled_whatever_its_name_is() {
        let disabling_settings = |setting: &str| {
            parse_driver_and_command(setting.as_bytes()).map(|(driver, _)| settings_disabling_driver(&driver))
        };
        assert_eq!(
            (disabling_settings("filter.clean\ncat"), disabling_settings("1 .M N... a")),
            (None, None)
        );
        assert_eq!(disabling_settings("filter.a.b c.clean\ncat").unwrap()[0], "filter.a.b c.clean=");
        assert_eq!(disabling_settings("filter.lfs.required\ntrue").unwrap()[3], "filter.lfs.required=false");
        assert_eq!(disabling_settings("hook.lint.event\npre-commit").unwrap(), ["hook.lint.enabled=false"]);
        assert_eq!(disabling_settings("merge.ours.driver\ntrue").unwrap(), ["merge.ours.driver=false"]);
    }
}
