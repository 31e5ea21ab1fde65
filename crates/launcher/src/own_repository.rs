//! A repository of ours beside a clone of the user's. What sessions write into the clone's `.git` (references, objects,
//! attributes, grafts, replacements) decides nothing in it: it has its own objects, and each commit that it takes from the clone is
//! checked on its way.
//!
//! It is copied from the clone before the first session, as files, because that takes a fraction of the time of a fetch. Later
//! commits come by `git fetch`, which computes each object's id anew and runs git's checks (`fsckObjects`).

mod without_files;

use crate::child::{self, Terms};
use crate::git::{self, AllowedPrograms, Changes, GitWriter, own_command};
use crate::{Outcome, git_output};
use plimsoll_domain::git_names::{CommitId, RepoPath};
use plimsoll_domain::text::{clip, one_line};
use plimsoll_store::layout::{common_folder, git_folder_of};
use plimsoll_store::{Durability, StoreError, disk};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// A large repository is copied by the disk's speed, and packed anew if it borrows objects.
const COPY_DEADLINE: Duration = Duration::from_secs(3_600);
/// How long a fetch between two repositories of this machine may take.
const FETCH_DEADLINE: Duration = Duration::from_secs(300);
/// Questions to our own repository.
const QUESTION_DEADLINE: Duration = Duration::from_secs(60);
/// How much of git's words is kept.
const MAX_REASON: usize = 500;
/// Fetches what is named behind it, and nothing beside it.
const FETCH_ALONE: [&str; 6] =
    ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--"];
/// A longer list of files says no more.
const MAX_SUMMARY: usize = 8 * 1024;
/// A larger repository is announced before it is copied.
pub const LARGE: u64 = 1 << 30;

/// The settings of a clone that say how its files and commits look, and which programs filter and sign them. They are taken from
/// the clone's own `.git/config`, which the sandbox protects, and from no file that it includes.
const COPIED_SECTIONS: &[&str] = &[
    "user.",
    "author.",
    "committer.",
    "i18n.",
    "filter.",
    "merge.",
    "diff.",
    "gpg.",
    "lfs.",
    "commit.gpgsign",
];
const COPIED_SETTINGS: &[&str] = &[
    "core.autocrlf",
    "core.checkroundtripencoding",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.safecrlf",
    "core.symlinks",
    "core.whitespace",
];

/// Why our repository does not have something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OwnRepositoryError {
    /// It could not be made.
    #[error("cannot copy the repository to {}: {why}", folder.display())]
    NotCopied {
        /// Where it would be.
        folder: PathBuf,
        /// What git said.
        why: String,
    },
    /// The disk.
    #[error("cannot write our own repository: {0}")]
    Disk(String),
    /// A commit is missing, or its objects are not what their ids say.
    #[error("the commit {commit} cannot be taken over: {why}")]
    BadCommit {
        /// The commit.
        commit: CommitId,
        /// What git said.
        why: String,
    },
    /// The clone does not take a commit.
    #[error("the clone cannot take over the commit {commit}: {why}")]
    NotGiven {
        /// The commit.
        commit: CommitId,
        /// What git said.
        why: String,
    },
    /// The clone has objects that are not what their ids say.
    #[error("the clone's git objects were damaged during the run: {0}")]
    Damaged(String),
}

impl From<StoreError> for OwnRepositoryError {
    fn from(error: StoreError) -> OwnRepositoryError {
        OwnRepositoryError::Disk(error.to_string())
    }
}

/// A repository of ours.
#[derive(Debug, Clone)]
pub struct OwnRepository {
    /// The clone's working tree.
    clone: PathBuf,
    /// The folder that all worktrees of the clone share.
    clone_git: PathBuf,
    git_folder: PathBuf,
}

impl OwnRepository {
    /// Opens the repository in `git_folder`, or copies it from the clone.
    pub fn open(clone: &Path, git_folder: &Path) -> Result<OwnRepository, OwnRepositoryError> {
        let git = git_folder_of(clone).unwrap_or_else(|| clone.join(".git"));
        let clone_git = disk::canonical(&common_folder(&git).unwrap_or(git));
        let own = OwnRepository { clone: clone.to_owned(), clone_git, git_folder: git_folder.to_owned() };
        if !disk::exists(&git_folder.join("HEAD")) {
            own.copy()?;
        }
        Ok(own)
    }

    /// Where it is.
    pub fn git_folder(&self) -> &Path {
        &self.git_folder
    }

    /// The clone's working tree.
    pub(crate) fn clone_root(&self) -> &Path {
        &self.clone
    }

    /// The folder that all worktrees of the clone share.
    pub(crate) fn clone_git(&self) -> &Path {
        &self.clone_git
    }

    /// Copies the clone's objects and branches. A kill in the middle leaves a folder that the next copy removes.
    fn copy(&self) -> Result<(), OwnRepositoryError> {
        let draft = self.git_folder.with_extension("draft");
        disk::remove_folder(&draft)?;
        if let Some(above) = self.git_folder.parent() {
            disk::create_folder(above)?;
        }
        let (from, to) = (self.clone_git.to_string_lossy(), draft.to_string_lossy());
        // Neither hard links nor alternates: whoever writes into the clone's objects must not write into ours.
        let arguments = [
            "clone",
            "--quiet",
            "--bare",
            "--no-hardlinks",
            "--dissociate",
            "--no-tags",
            "--template=",
            "--",
            &*from,
            &*to,
        ];
        let above = draft.parent().unwrap_or(&self.clone);
        let copied = child::run(own_command(None, above, &arguments), Terms::within(COPY_DEADLINE));
        if !copied.succeeded() {
            return Err(self.not_copied(&copied));
        }
        let copy = OwnRepository { git_folder: draft.clone(), ..self.clone() };
        // Both say again what the objects say, and a session of an earlier run may have written them.
        for name in ["pack/multi-pack-index", "info/commit-graph"] {
            disk::remove(&draft.join("objects").join(name))?;
        }
        for name in ["pack/multi-pack-index.d", "info/commit-graphs"] {
            disk::remove_folder(&draft.join("objects").join(name))?;
        }
        copy.copy_settings()?;
        copy.copy_keys()?;
        Ok(disk::rename(&draft, &self.git_folder)?)
    }

    fn not_copied(&self, outcome: &Outcome) -> OwnRepositoryError {
        OwnRepositoryError::NotCopied { folder: self.git_folder.clone(), why: last_words(outcome) }
    }

    fn copy_settings(&self) -> Result<(), OwnRepositoryError> {
        let file = self.clone_git.join("config");
        let file = file.to_string_lossy();
        let listed = self.ask(&["config", "--file", &file, "--null", "--list"]);
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let is_copied = |key: &str| {
            COPIED_SETTINGS.contains(&key) || COPIED_SECTIONS.iter().any(|section| key.starts_with(section))
        };
        let settings =
            listed.split_terminator('\0').map(|entry| entry.split_once('\n').unwrap_or((entry, "true")));
        for (key, value) in settings.filter(|(key, _)| is_copied(key)) {
            self.set(key, value)?;
        }
        // The clone may name a folder of its own for these.
        self.set("lfs.storage", "lfs")?;
        // A pointer whose content is nowhere stays a pointer.
        self.set("lfs.skipdownloaderrors", "true")
    }

    /// Sets a setting of this repository.
    pub(crate) fn set(&self, key: &str, value: &str) -> Result<(), OwnRepositoryError> {
        let outcome = self.ask(&["config", "--local", "--replace-all", key, value]);
        if outcome.succeeded() { Ok(()) } else { Err(self.not_copied(&outcome)) }
    }

    /// The keys by which git-crypt reads the files: they lie in the git folder.
    fn copy_keys(&self) -> Result<(), StoreError> {
        let keys = self.clone_git.join("git-crypt/keys");
        for name in disk::names(&keys) {
            for file in disk::names(&keys.join(&name)) {
                let below = Path::new("git-crypt/keys").join(&name).join(&file);
                if let Some(bytes) = disk::read(&self.clone_git.join(&below))? {
                    disk::replace(&self.git_folder.join(&below), &bytes, Durability::Lazy)?;
                }
            }
            // An older git-crypt has one key, in a file.
            if let Some(bytes) = disk::read(&keys.join(&name)).ok().flatten() {
                disk::replace(&self.git_folder.join("git-crypt/keys").join(&name), &bytes, Durability::Lazy)?;
            }
        }
        Ok(())
    }

    /// Whether it has a commit.
    pub fn has(&self, commit: &CommitId) -> bool {
        self.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).succeeded()
    }

    /// Whether a commit is another one, or among those before it. A commit that is not there is not.
    pub fn contains(&self, end: &CommitId, commit: &CommitId) -> bool {
        self.ask(&["merge-base", "--is-ancestor", commit.as_str(), end.as_str()]).succeeded()
    }

    /// Whether every change of a commit is on the target too, apart from these files: by its commits, or by others that change the
    /// same.
    pub fn is_all_on(&self, target: &CommitId, commit: &CommitId, files: &[RepoPath]) -> bool {
        let base = self.ask(&["merge-base", target.as_str(), commit.as_str()]);
        let base = CommitId::parse(&git::text(&base)).ok();
        // A commit of the target may have a tick of the plan beside its work, so both sides are compared without these files.
        let without = |end: &CommitId| self.without_files(base.as_ref()?, end, files).ok();
        let Some((target, commit)) = without(target).zip(without(commit)) else {
            return false;
        };
        let answer = self.ask(&["cherry", target.as_str(), commit.as_str()]);
        answer.succeeded()
            && !String::from_utf8_lossy(&answer.stdout).lines().any(|line| line.starts_with('+'))
    }

    /// Takes a commit over from the clone, with everything that it needs. Each object's id is computed anew.
    pub fn take(&self, commit: &CommitId) -> Result<(), OwnRepositoryError> {
        let reference = format!("refs/plimsoll/taken/{commit}");
        if self.is_commit(&reference, commit) {
            return Ok(());
        }
        let from = self.clone_git.to_string_lossy();
        let refspec = format!("+{commit}:{reference}");
        let arguments = ["-c", "fetch.fsckObjects=true"];
        let arguments = [&arguments[..], &FETCH_ALONE, &[&*from, &refspec]].concat();
        let command = own_command(Some(&self.git_folder), &self.git_folder, &arguments);
        let outcome = child::run(command, Terms::within(FETCH_DEADLINE));
        if outcome.succeeded() && self.is_commit(&reference, commit) {
            return Ok(());
        }
        Err(OwnRepositoryError::BadCommit { commit: commit.clone(), why: last_words(&outcome) })
    }

    fn is_commit(&self, reference: &str, commit: &CommitId) -> bool {
        let outcome = self.ask(&["rev-parse", "--verify", "--quiet", &format!("{reference}^{{commit}}")]);
        outcome.succeeded() && git::text(&outcome) == commit.as_str()
    }

    /// Writes the files of a commit into a folder of ours, which is emptied before. No filter runs: a file under one is as it is
    /// stored.
    pub fn export(&self, commit: &CommitId, folder: &Path) -> Result<(), OwnRepositoryError> {
        let failed = |why: String| OwnRepositoryError::BadCommit { commit: commit.clone(), why };
        let emptied = disk::remove_folder(folder).and_then(|()| disk::create_folder(folder));
        emptied.map_err(|error| failed(error.to_string()))?;
        let off = git::settings_without_drivers(&self.git_folder, folder);
        let off = off.map_err(|outcome| failed(last_words(&outcome)))?;
        let off = off.iter().flat_map(|setting| ["-c".to_owned(), setting.to_string_lossy().into_owned()]);
        let write = ["read-tree", "--reset", "-u", commit.as_str()].map(str::to_owned);
        let arguments: Vec<String> = off.chain(write).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = own_command(Some(&self.git_folder), folder, &arguments);
        let index = folder.with_extension("index");
        command.env("GIT_WORK_TREE", folder).env("GIT_INDEX_FILE", &index).env("GIT_ATTR_NOSYSTEM", "1");
        let outcome = child::run(command, Terms::within(FETCH_DEADLINE));
        let _ = disk::remove(&index);
        if outcome.succeeded() { Ok(()) } else { Err(failed(last_words(&outcome))) }
    }

    /// What has changed between two commits below a folder of the repository, without paths that match a pattern of `left_out`;
    /// `None` as base is before the first commit. At most so many bytes of the diff. None if git cannot say.
    pub fn changes_between(
        &self,
        base: Option<&CommitId>,
        commit: &CommitId,
        below: &Path,
        left_out: &[&str],
        most: usize,
    ) -> Option<Changes> {
        let base = match base {
            Some(base) => base.to_string(),
            None => git::text(&self.ask_with(&["hash-object", "-t", "tree", "--stdin"], Some(Vec::new()))),
        };
        let below = below.to_string_lossy();
        let relative =
            if below.is_empty() { "--no-relative".to_owned() } else { format!("--relative={below}/") };
        let inside = if below.is_empty() { String::new() } else { format!("{below}/") };
        let except: Vec<String> =
            left_out.iter().map(|pattern| format!(":(exclude){inside}{pattern}")).collect();
        let printed = |option: &str, most: usize| {
            let start = [
                "diff",
                "--no-ext-diff",
                "--no-textconv",
                &relative,
                option,
                &base,
                commit.as_str(),
                "--",
                ".",
            ];
            let arguments: Vec<&str> = start.into_iter().chain(except.iter().map(String::as_str)).collect();
            let command = own_command(Some(&self.git_folder), &self.git_folder, &arguments);
            // One byte more, to know whether there is more.
            let outcome =
                child::run(command, Terms { most_output: most + 1, ..Terms::within(QUESTION_DEADLINE) });
            outcome.succeeded().then(|| git::whole_lines(outcome.stdout, most))
        };
        let (summary, _) = printed("--stat=100", MAX_SUMMARY)?;
        let (diff, is_cut) = printed("--patch", most)?;
        Some(Changes { summary, diff, is_cut, new_files: Vec::new() })
    }

    /// Gives a commit to the clone, where no reference names it yet.
    pub fn give(&self, commit: &CommitId) -> Result<(), OwnRepositoryError> {
        let from = self.git_folder.to_string_lossy();
        let arguments = ["-c", "protocol.file.allow=always", "-c", "protocol.version=2"];
        let arguments = [&arguments[..], &FETCH_ALONE, &[&*from, commit.as_str()]].concat();
        let outcome = git::write(&self.clone, AllowedPrograms::TrustedDrivers, &arguments, FETCH_DEADLINE);
        if outcome.succeeded() {
            return Ok(());
        }
        Err(OwnRepositoryError::NotGiven { commit: commit.clone(), why: last_words(&outcome) })
    }

    /// Makes a reference of the clone, which begins with `refs/`, name a commit of ours, so that `git gc` keeps it and the user finds it.
    pub fn show_in_clone(&self, reference: &str, commit: &CommitId) -> Result<(), OwnRepositoryError> {
        if git::commit(&self.clone, reference).as_ref() == Some(commit) {
            return Ok(());
        }
        self.give(commit)?;
        let arguments = ["update-ref", "--no-deref", reference, commit.as_str()];
        let outcome = git::write(&self.clone, AllowedPrograms::TrustedDrivers, &arguments, QUESTION_DEADLINE);
        if outcome.succeeded() {
            return Ok(());
        }
        Err(OwnRepositoryError::NotGiven { commit: commit.clone(), why: last_words(&outcome) })
    }

    /// Compares the objects that were written into the clone since a moment with their ids. A session can replace an object by
    /// another's content: git reads it without a word, and a clone of the clone fails.
    ///
    /// The objects are packed, and the pack's ids computed anew: git offers nothing else that looks at some objects only. A
    /// file's ctime tells when it was written, and no session can set it.
    pub fn check_clone_since(&self, since: SystemTime) -> Result<(), OwnRepositoryError> {
        let objects = self.clone_git.join("objects");
        let is_new = |path: &Path| disk::touched(path).is_some_and(|touched| touched >= since);
        let mut loose = Vec::new();
        for folder in disk::names(&objects).into_iter().filter(|name| name.len() == 2) {
            let names = disk::names(&objects.join(&folder)).into_iter();
            let new = names.filter(|name| is_new(&objects.join(&folder).join(name)));
            loose.extend(new.map(|name| format!("{folder}{name}")).filter(|id| CommitId::parse(id).is_ok()));
        }
        self.check_loose(&loose)?;
        let packs = objects.join("pack");
        for name in disk::names(&packs).into_iter().filter(|name| name.ends_with(".idx")) {
            if is_new(&packs.join(&name)) || is_new(&packs.join(name.replace(".idx", ".pack"))) {
                self.verify_pack(&packs.join(&name))?;
            }
        }
        let index = packs.join("multi-pack-index");
        if is_new(&index) || is_new(&packs.join("multi-pack-index.d")) {
            let verify = ["-c", "core.multiPackIndex=true", "multi-pack-index", "verify"];
            let outcome = git::write(&self.clone, AllowedPrograms::TrustedDrivers, &verify, FETCH_DEADLINE);
            if !outcome.succeeded() {
                return Err(OwnRepositoryError::Damaged(last_words(&outcome)));
            }
        }
        Ok(())
    }

    fn check_loose(&self, ids: &[String]) -> Result<(), OwnRepositoryError> {
        if ids.is_empty() {
            return Ok(());
        }
        let scratch = self.git_folder.join("plimsoll-check");
        let _ = disk::remove_folder(&scratch);
        disk::create_folder(&scratch).map_err(|error| OwnRepositoryError::Damaged(error.to_string()))?;
        let place = scratch.join("pack");
        let writer = GitWriter::new(&self.clone, AllowedPrograms::TrustedDrivers);
        let packed = match &writer {
            Ok(writer) => {
                let place = place.to_string_lossy();
                let command = writer.command(&["pack-objects", "--quiet", "--window=0", &place]);
                let input = Some((ids.join("\n") + "\n").into_bytes());
                child::run(command, Terms { input, ..Terms::within(FETCH_DEADLINE) })
            }
            Err(outcome) => outcome.clone(),
        };
        let checked = if packed.succeeded() {
            let mut indexes = disk::names(&scratch).into_iter().filter(|name| name.ends_with(".idx"));
            indexes.try_for_each(|name| self.verify_pack(&scratch.join(name)))
        } else {
            Err(OwnRepositoryError::Damaged(last_words(&packed)))
        };
        let _ = disk::remove_folder(&scratch);
        checked
    }

    fn verify_pack(&self, index: &Path) -> Result<(), OwnRepositoryError> {
        let outcome = self.ask(&["verify-pack", &index.to_string_lossy()]);
        if outcome.succeeded() { Ok(()) } else { Err(OwnRepositoryError::Damaged(last_words(&outcome))) }
    }

    /// Runs a git command in this repository that needs no working tree and no network.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Outcome {
        self.ask_with(arguments, None)
    }

    pub(crate) fn ask_with(&self, arguments: &[&str], input: Option<Vec<u8>>) -> Outcome {
        let command = own_command(Some(&self.git_folder), &self.git_folder, arguments);
        child::run(command, Terms { input, ..Terms::within(QUESTION_DEADLINE) })
    }
}

/// The size of a clone's objects, in bytes; none if git does not say.
pub fn size_of_objects(clone: &Path) -> Option<u64> {
    let outcome = git::git(clone, &["count-objects", "-v"]);
    let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let value =
        |name: &str| printed.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some((value("size:")? + value("size-pack:")?) * 1_024)
}

/// Whether a clone lacks objects that it would fetch when they are needed.
pub fn is_partial(clone: &Path) -> bool {
    let question =
        ["config", "--get-regexp", r"^extensions\.partialclone$|^remote\..*\.(promisor|partialclonefilter)$"];
    git::git(clone, &question).succeeded()
}

pub(crate) fn last_words(outcome: &Outcome) -> String {
    let errors = String::from_utf8_lossy(&outcome.stderr);
    let words = if errors.trim().is_empty() { git_output::last_words(outcome) } else { errors.into_owned() };
    clip(&one_line(words.trim()), MAX_REASON)
}
