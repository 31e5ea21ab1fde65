//! Which programs that git's settings name may run when we commit, rebase, check out or merge.
//!
//! An agent in Claude Code's sandbox can write the files of the working tree, but not `.git/config`, and what it writes must
//! not run outside of the sandbox because we make a commit. So hooks are off, and a driver (filter, merge driver, signing
//! program) runs only if its setting comes from a file that the agent cannot write, its program lies outside of the project, and
//! its command names nothing in the project. git-lfs and git-crypt are like that. The check reads the command; it does not
//! compare the contents of scripts.

use super::command::{own_reading_command, reading_command, working_tree};
use crate::Outcome;
use crate::child::{self, Terms};
use crate::search_path::search_outside;
use crate::time_limit::TimeLimit;
use plimsoll_store::layout::{common_folder, repository};
use plimsoll_store::{disk, environment};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What git may run when we write to a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllowedPrograms {
    /// Nothing that any setting names: for a repository that was created during the run.
    Nothing,
    /// No hooks, and only drivers outside of the project.
    #[default]
    TrustedDrivers,
    /// Whatever the repository is configured to run (`--commit-hooks`).
    All,
}

/// More settings of drivers than this are in no repository: git is not started.
const MAX_SETTINGS: usize = 4_000;

/// Programs that run code of the current folder although no argument names a file of it.
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

const DRIVERS_QUESTION: [&str; 6] =
    ["config", "--null", "--show-scope", "--show-origin", "--get-regexp", PROGRAM_SETTINGS];

/// The drivers that git's settings name.
#[derive(Debug, Default)]
pub(crate) struct Drivers {
    settings: Vec<DriverSetting>,
}

/// One setting of a driver.
#[derive(Debug, PartialEq, Eq)]
struct DriverSetting {
    /// The section and the name: `filter.lfs`, `merge.ours`, `hook.lint`, `gpg`.
    driver: Vec<u8>,
    /// What it runs; empty if it runs nothing.
    command: Vec<u8>,
    /// `local`, `global` and so on.
    scope: Vec<u8>,
    /// `file:.git/config`
    origin: Vec<u8>,
}

impl Drivers {
    /// Starts to read the settings that apply in a folder. Git itself is asked, because it alone knows what includes what.
    pub(super) fn begin_read(
        folder: &Path,
        root: &Path,
        limit: TimeLimit,
    ) -> Result<child::Running<'static>, Outcome> {
        child::start(reading_command(folder, root, &[], &DRIVERS_QUESTION), Terms::within(limit.left()))
    }

    /// Reads the settings that apply in a folder.
    pub(crate) fn read(folder: &Path, limit: TimeLimit) -> Result<Drivers, Outcome> {
        let root = working_tree(folder)?;
        Drivers::begin_read(folder, &root, limit).and_then(|running| Drivers::parse(running.finish()))
    }

    /// Reads the settings that apply in the working tree of a repository of ours.
    pub(super) fn read_own(
        git_folder: &Path,
        work_tree: &Path,
        limit: TimeLimit,
    ) -> Result<Drivers, Outcome> {
        let command = own_reading_command(git_folder, work_tree, &DRIVERS_QUESTION);
        Drivers::parse(child::run(command, Terms::within(limit.left())))
    }

    /// Parses git's answer. An error is an answer by which not every driver could be switched off: then git must not be started.
    pub(super) fn parse(outcome: Outcome) -> Result<Drivers, Outcome> {
        // 1: there is none.
        if outcome.timed_out || !matches!(outcome.code, Some(0 | 1)) {
            return Err(outcome);
        }
        let mut settings = Vec::new();
        let mut fields = outcome.stdout.split(|byte| *byte == 0);
        while let (Some(scope), Some(origin), Some(setting)) = (fields.next(), fields.next(), fields.next()) {
            if let Some((driver, command)) = driver_of(setting) {
                let (scope, origin) = (scope.to_vec(), origin.to_vec());
                settings.push(DriverSetting { driver, command: command.to_vec(), scope, origin });
            }
        }
        // `-c` takes the name to end at its first `=`.
        if settings.len() > MAX_SETTINGS || settings.iter().any(|setting| setting.driver.contains(&b'=')) {
            let trouble = "git's settings name a driver that cannot be switched off".to_owned();
            return Err(Outcome { trouble: Some(trouble), ..Outcome::default() });
        }
        Ok(Drivers { settings })
    }

    /// Whether any filter is named: if not, no file is under one.
    pub(crate) fn has_filters(&self) -> bool {
        self.settings.iter().any(|setting| setting.driver.starts_with(b"filter."))
    }

    /// The drivers that may not run in these places.
    pub(super) fn forbidden(&self, places: &ProjectPlaces, allowed: AllowedPrograms) -> BTreeSet<Vec<u8>> {
        let is_forbidden = |setting: &&DriverSetting| match allowed {
            AllowedPrograms::Nothing => true,
            AllowedPrograms::TrustedDrivers => !places.is_trusted(setting),
            AllowedPrograms::All => false,
        };
        self.settings.iter().filter(is_forbidden).map(|setting| setting.driver.clone()).collect()
    }

    /// What git is told on its command line so that it runs none of them.
    pub(super) fn all_off(&self) -> Vec<OsString> {
        let drivers: BTreeSet<&Vec<u8>> = self.settings.iter().map(|setting| &setting.driver).collect();
        drivers.into_iter().flat_map(|driver| settings_without(driver)).collect()
    }
}

/// The settings that keep git from running one driver.
pub(super) fn settings_without(key: &[u8]) -> Vec<OsString> {
    let set = |what: &str| OsStr::from_bytes(&[key, what.as_bytes()].concat()).to_owned();
    match key.split(|byte| *byte == b'.').next() {
        // A required filter without a command is an error of git.
        Some(b"filter") => [".clean=", ".smudge=", ".process=", ".required=false"].map(set).into(),
        // With an empty command git takes one side without a word; a command that fails makes a conflict.
        Some(b"merge") => vec![set(".driver=false")],
        Some(b"gpg") => vec!["commit.gpgSign=false".into()],
        _ => vec![set(".enabled=false")],
    }
}

/// `filter.lfs.clean\ngit-lfs clean -- %f`: the driver, and the whole setting's value. A setting that runs nothing has no driver.
fn driver_of(setting: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let end = setting.iter().position(|byte| *byte == b'\n').unwrap_or(setting.len());
    let (key, value) = (&setting[..end], setting.get(end + 1..).unwrap_or_default());
    if key.starts_with(b"gpg.") {
        return Some((b"gpg".to_vec(), value));
    }
    let last = key.iter().rposition(|byte| *byte == b'.')?;
    let (driver, name) = (&key[..last], &key[last + 1..]);
    let is_named = driver.contains(&b'.');
    let runs = match driver.split(|byte| *byte == b'.').next()? {
        b"filter" => [&b"clean"[..], b"smudge", b"process"].contains(&name),
        b"merge" => name == b"driver",
        b"hook" => true,
        _ => return None,
    };
    // `filter.NAME.required` alone still has to be switched off with its filter.
    (is_named && (runs || driver.starts_with(b"filter.")))
        .then(|| (driver.to_vec(), if runs { value } else { b"" }))
}

/// The folders that an agent may write.
#[derive(Debug, Clone)]
pub(super) struct ProjectPlaces {
    /// Working trees and git folders, without links.
    folders: Vec<PathBuf>,
    /// The root of the working tree, where git starts drivers.
    root: PathBuf,
    /// The file with the repository's own settings, which the sandbox protects.
    own_settings: Option<PathBuf>,
}

impl ProjectPlaces {
    pub(super) fn of(folder: &Path) -> ProjectPlaces {
        let folder = disk::canonical(folder);
        let Some((root, git)) = repository(&folder).map(|(root, git)| (root.to_owned(), git)) else {
            return ProjectPlaces { folders: vec![folder.clone()], root: folder, own_settings: None };
        };
        let common = disk::canonical(&common_folder(&git).unwrap_or_else(|| git.clone()));
        // The main working tree of a linked one.
        let main = common.file_name().filter(|name| *name == ".git").and_then(|_| common.parent());
        let own_settings = Some(common.join("config"));
        let folders =
            [Some(root.clone()), main.map(Path::to_owned), Some(disk::canonical(&git)), Some(common.clone())];
        ProjectPlaces { folders: folders.into_iter().flatten().collect(), root, own_settings }
    }

    /// For the working tree of a repository of ours.
    pub(super) fn of_own_repository(git_folder: &Path, work_tree: &Path, written: &[&Path]) -> ProjectPlaces {
        let root = disk::canonical(work_tree);
        let mut folders: Vec<PathBuf> = written.iter().map(|folder| disk::canonical(folder)).collect();
        // The working tree of a clone's git folder.
        let trees: Vec<PathBuf> = folders
            .iter()
            .filter(|folder| folder.ends_with(".git"))
            .filter_map(|git| git.parent())
            .map(Path::to_owned)
            .collect();
        folders.extend(trees);
        ProjectPlaces { folders, root, own_settings: Some(git_folder.join("config")) }
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        let real = disk::canonical(path);
        self.folders.iter().any(|folder| path.starts_with(folder) || real.starts_with(folder))
    }

    /// Whether an agent in the sandbox cannot have written the file that a setting comes from. `config.worktree` and files of the
    /// working tree that are included it can.
    fn is_trusted_origin(&self, scope: &[u8], origin: &[u8]) -> bool {
        if scope == b"command" {
            return true;
        }
        if scope == b"worktree" {
            return false;
        }
        let Some(file) = origin.strip_prefix(b"file:") else { return false };
        // Git names files of the repository from the folder on in which it works.
        let file = self.root.join(OsStr::from_bytes(file));
        let is_own =
            self.own_settings.as_ref().is_some_and(|own| disk::canonical(&file) == disk::canonical(own));
        is_own || !self.contains(&file)
    }

    fn is_trusted(&self, setting: &DriverSetting) -> bool {
        let command = std::str::from_utf8(&setting.command);
        // Hooks that settings name are hooks.
        !setting.driver.starts_with(b"hook.")
            && self.is_trusted_origin(&setting.scope, &setting.origin)
            && command.is_ok_and(|command| self.is_trusted_command(command))
    }

    /// Whether a command runs nothing of the project, as far as its words tell. What only a shell could tell is not trusted.
    fn is_trusted_command(&self, command: &str) -> bool {
        const EXPANDED: &[char] = &['$', '`', '*', '?', '[', '{', '~', '\\', '\n'];
        const SEPARATORS: &[char] = &['\'', '"', ';', '|', '&', '(', ')', '<', '>', '=', ','];
        if command.contains(EXPANDED) {
            return false;
        }
        let is_separator = |letter: char| letter.is_whitespace() || SEPARATORS.contains(&letter);
        let mut words = command.split(is_separator).filter(|word| !word.is_empty());
        // A setting without a value runs nothing.
        let Some(program) = words.next() else { return true };
        self.is_outside_program(program)
            && words.clone().all(|word| self.is_harmless_word(word))
            && !runs_modules(command)
    }

    /// Whether a program is found, and outside of the project.
    fn is_outside_program(&self, program: &str) -> bool {
        if is_project_runner(program) {
            return false;
        }
        let found = if program.contains('/') {
            Some(PathBuf::from(program)).filter(|path| environment::is_executable(path))
        } else {
            // As git finds it: `GitWriter` takes relative entries and those inside of the project from its PATH.
            environment::find_program(program)
        };
        found.is_some_and(|path| path.is_absolute() && !self.contains(&path))
    }

    /// Whether a word of a command names nothing in the project.
    fn is_harmless_word(&self, word: &str) -> bool {
        let path = Path::new(word);
        if path.is_absolute() {
            return !self.contains(path);
        }
        // Such a file may be created between our check and git's start of the command.
        let is_relative_path = word.contains('/') || word == "." || word == "..";
        !is_relative_path && !disk::exists(&self.root.join(path)) && !is_project_runner(word)
    }
}

/// Lets a command find no program of the project that a folder is in.
pub(crate) fn search_outside_project(command: &mut Command, folder: &Path) {
    let places = ProjectPlaces::of(folder);
    search_outside(command, |entry| places.contains(entry));
}

fn is_project_runner(program: &str) -> bool {
    PROJECT_RUNNERS.contains(&program.rsplit('/').next().unwrap_or(program))
}

/// Whether an interpreter is told to look for modules, which it does in the current folder, too.
fn runs_modules(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['\'', '"'])).collect();
    let is_interpreter = words.iter().any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        name.starts_with("python") || name.starts_with("node") || name == "pypy3"
    });
    is_interpreter
        && words
            .iter()
            .any(|word| ["-m", "-c", "-e", "-r", "-p", "--eval", "--require", "--import"].contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wip::tests::{repository, run};

    #[test]
    fn a_command_is_trusted_only_if_it_runs_nothing_of_the_project() {
        let folder = repository();
        let at = disk::canonical(folder.path());
        run(
            &at,
            "mkdir tools; printf '#!/bin/sh\\n' > tools/clean.sh; chmod +x tools/clean.sh; touch clean2",
        );
        let outside = tempfile::tempdir().unwrap();
        run(outside.path(), "printf '#!/bin/sh\\n' > clean.sh; chmod +x clean.sh");
        run(outside.path(), &format!("ln -s {}/tools/clean.sh linked.sh", at.display()));
        let places = ProjectPlaces::of(&at.join("tools"));
        let is_trusted = |command: &str| {
            let command = command.replace("OUTSIDE", &outside.path().to_string_lossy());
            places.is_trusted_command(&command.replace("PROJECT", &at.to_string_lossy()))
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
    fn a_setting_is_trusted_only_where_the_sandbox_keeps_an_agent_from_writing_it() {
        let folder = repository();
        let at = folder.path();
        let read = || Drivers::read(at, TimeLimit::within(std::time::Duration::from_secs(20))).unwrap();
        let forbidden = |drivers: &Drivers, allowed| -> Vec<String> {
            let names = drivers.forbidden(&ProjectPlaces::of(at), allowed).into_iter();
            names.map(|name| String::from_utf8_lossy(&name).into_owned()).collect()
        };
        run(
            at,
            "git config filter.own.clean cat; git config filter.own.required true; git config filter.script.smudge 'sh a.txt'",
        );
        run(at, "git config include.path ../included; git config -f included filter.included.clean cat");
        run(
            at,
            "git config -f included filter.own.smudge cat; git config merge.bad.driver 'sh a.txt %A'; git config merge.bad.name Bad",
        );
        run(at, "git config extensions.worktreeConfig true; git config --worktree filter.worktree.clean cat");
        run(
            at,
            "git config hook.lint.command cat; git config hook.lint.event pre-commit; git config gpg.ssh.program ./a.txt",
        );
        // A file of the tree sets a part of `filter.own`.
        let all = [
            "filter.included",
            "filter.own",
            "filter.script",
            "filter.worktree",
            "gpg",
            "hook.lint",
            "merge.bad",
        ];
        assert_eq!(forbidden(&read(), AllowedPrograms::TrustedDrivers), all);
        run(at, "rm included");
        let drivers = read();
        let without_included = ["filter.script", "filter.worktree", "gpg", "hook.lint", "merge.bad"];
        assert_eq!(forbidden(&drivers, AllowedPrograms::TrustedDrivers), without_included);
        assert_eq!(forbidden(&drivers, AllowedPrograms::Nothing).len(), 6);
        assert!(forbidden(&drivers, AllowedPrograms::All).is_empty() && drivers.has_filters());
    }

    #[test]
    fn each_driver_is_switched_off_by_its_name_whatever_the_name_is() {
        let off = |setting: &str| driver_of(setting.as_bytes()).map(|(driver, _)| settings_without(&driver));
        assert_eq!((off("filter.clean\ncat"), off("1 .M N... a")), (None, None));
        assert_eq!(off("filter.a.b c.clean\ncat").unwrap()[0], "filter.a.b c.clean=");
        assert_eq!(off("filter.lfs.required\ntrue").unwrap()[3], "filter.lfs.required=false");
        assert_eq!(off("hook.lint.event\npre-commit").unwrap(), ["hook.lint.enabled=false"]);
        assert_eq!(off("merge.ours.driver\ntrue").unwrap(), ["merge.ours.driver=false"]);
    }
}
