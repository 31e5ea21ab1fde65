//! What a working tree holds that its HEAD does not, as git sees it; every name as the bytes it has on the disk.

use crate::child::{self, Terms};
use crate::git::question::{
    Filtered, MOST_LIST, answer, as_answer, parse_filters, run_question, zero_terminated,
};
use crate::git::{self, GitWriter};
use crate::git_error::GitError;
use crate::git_output::names;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use plimsoll_store::disk;
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path that differs from HEAD, from the project folder on. An untracked repository ends with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: Vec<u8>,
    /// The mode git would commit; none if there is nothing on the disk or git does not follow the file.
    pub(crate) mode: Option<String>,
    pub(crate) is_tracked: bool,
}

impl Change {
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// Where a folder is in its working tree.
#[derive(Debug)]
pub(crate) struct FolderInTree {
    pub(crate) root: PathBuf,
    /// From the root to the folder, with a slash at its end; empty at the root.
    pub(crate) prefix: Vec<u8>,
}

impl FolderInTree {
    /// None outside a working tree.
    pub(crate) fn of(folder: &Path, limit: TimeLimit) -> Result<Option<FolderInTree>, GitError> {
        let question = ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--show-prefix"];
        let command = git::asking(folder, &question, limit);
        let outcome = command.map_or_else(|outcome| outcome, |command| crate::run(command, limit.left()));
        if outcome.timed_out {
            return Err(GitError::TookTooLong);
        }
        Ok(if outcome.succeeded() { FolderInTree::parse(folder, &outcome.stdout) } else { None })
    }

    fn parse(folder: &Path, answer: &[u8]) -> Option<FolderInTree> {
        let rest = answer.strip_prefix(b"true\n")?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let prefix = rest.get(end + 1..)?.strip_suffix(b"\n")?;
        Some(FolderInTree { root: folder.join(OsStr::from_bytes(&rest[..end])), prefix: prefix.to_owned() })
    }
}

/// Which of some paths are under a filter.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// By the attributes that a commit of the changed files will have.
    pub(crate) future: Vec<Filtered>,
    /// By the attributes of HEAD.
    pub(crate) former: Vec<Filtered>,
}

/// Returns which of these paths are under a filter now, and by the attributes of HEAD. Nothing is run to find out. An error means that
/// it is not known.
///
/// `git check-attr --source` exists since 2.40 only, so HEAD is read into an index of its own, which any git can ask. For a file with
/// attributes that is missing in the working tree git takes that of the index. If it is among the changed files, the commit
/// removes it.
pub(crate) fn filters_since(
    folder: &Path,
    head: &CommitId,
    changed: &[Vec<u8>],
    paths: &[Vec<u8>],
    limit: TimeLimit,
) -> Result<Filters, GitError> {
    let input = zero_terminated(&mut paths.iter().map(Vec::as_slice));
    if input.is_empty() {
        return Ok(Filters::default());
    }
    let index = TemporaryIndex::of_commit(folder, head, limit)?;
    index.check_attribute_files(limit)?;
    let question = ["check-attr", "--cached", "-z", "--stdin", "filter"];
    let former = index.answer_without_info(&question, input.clone(), limit)?;
    let is_attributes = |path: &&[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes");
    let changed = zero_terminated(&mut changed.iter().map(Vec::as_slice).filter(is_attributes));
    index.answer(&["update-index", "--force-remove", "-z", "--stdin"], Some(changed), limit)?;
    let future = index.answer(&["check-attr", "-z", "--stdin", "filter"], Some(input), limit)?;
    Ok(Filters { future: parse_filters(&future), former: parse_filters(&former) })
}

/// An index of a commit beside the repository's own, until it is dropped.
struct TemporaryIndex<'a> {
    folder: &'a Path,
    file: PathBuf,
}

/// What could make git read other files than those of the commit, or write other files than this index.
const WHOLE_INDEX: [&str; 3] = ["core.sparseCheckout=false", "index.sparse=false", "core.splitIndex=false"];

impl<'a> TemporaryIndex<'a> {
    fn of_commit(
        folder: &'a Path,
        commit: &CommitId,
        limit: TimeLimit,
    ) -> Result<TemporaryIndex<'a>, GitError> {
        // Git would follow a link of that name, so nobody may guess it.
        let number = RandomState::new().hash_one(0);
        let name = format!("plimsoll-{}-{number:016x}.index", std::process::id());
        let index = TemporaryIndex { folder, file: git_path(folder, &name, limit)? };
        index.answer(&["read-tree", commit.as_str()], None, limit)?;
        Ok(index)
    }

    fn answer(
        &self,
        arguments: &[&str],
        input: Option<Vec<u8>>,
        limit: TimeLimit,
    ) -> Result<Vec<u8>, GitError> {
        let command = git::asking_with(self.folder, &WHOLE_INDEX, arguments).map(|mut command| {
            command.env("GIT_INDEX_FILE", &self.file);
            command
        });
        run_question(command, input, limit)
    }

    /// Answers as [`TemporaryIndex::answer`] does, without the attributes in `.git/info/attributes`, which a session can write and which
    /// count more than those of any commit. No setting switches them off, so git is given a folder without them in place of the
    /// repository's common one.
    fn answer_without_info(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
        limit: TimeLimit,
    ) -> Result<Vec<u8>, GitError> {
        let [config, objects] = ["config", "objects"].map(|name| git_path(self.folder, name, limit));
        let (config, objects, common) = (config?, objects?, self.common_folder());
        let made = disk::create_folder(&common.join("refs"))
            .and_then(|()| disk::read(&config))
            .and_then(|config| disk::create_new(&common.join("config"), &config.unwrap_or_default()));
        made.map_err(|error| GitError::Failed(error.to_string()))?;
        let command = git::asking_with(self.folder, &WHOLE_INDEX, arguments).map(|mut command| {
            command.env("GIT_INDEX_FILE", &self.file);
            command.env("GIT_COMMON_DIR", common).env("GIT_OBJECT_DIRECTORY", objects);
            command
        });
        run_question(command, Some(input), limit)
    }

    fn common_folder(&self) -> PathBuf {
        self.file.with_extension("common")
    }

    /// Fails unless git can read all files with attributes: it takes one whose object is missing for an empty one.
    fn check_attribute_files(&self, limit: TimeLimit) -> Result<(), GitError> {
        let question = ["ls-files", "--stage", "-z", "--", ":(top,glob)**/.gitattributes"];
        let listed = self.answer(&question, None, limit)?;
        let id = |entry: &[u8]| entry.split(|byte| *byte == b' ').nth(1).map(<[u8]>::to_vec);
        let ids: Vec<Vec<u8>> = names(&listed).filter_map(id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut rest = &answer(self.folder, &["cat-file", "--batch"], Some(ids.join(&b'\n')), limit)?[..];
        for _ in &ids {
            rest = skip_object(rest).ok_or_else(|| {
                GitError::Failed("git cannot read all files with attributes of HEAD".to_owned())
            })?;
        }
        Ok(())
    }
}

impl Drop for TemporaryIndex<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
        let _ = std::fs::remove_dir_all(self.common_folder());
    }
}

/// Where git keeps a file of the repository.
fn git_path(folder: &Path, name: &str, limit: TimeLimit) -> Result<PathBuf, GitError> {
    let path = answer(folder, &["rev-parse", "--git-path", name], None, limit)?;
    let path = path.strip_suffix(b"\n").unwrap_or(&path);
    Ok(disk::canonical(folder).join(OsStr::from_bytes(path)))
}

/// Returns what stands behind the first object that `git cat-file --batch` printed; none if it could not read that.
fn skip_object(printed: &[u8]) -> Option<&[u8]> {
    let end = printed.iter().position(|byte| *byte == b'\n')?;
    // `ID blob SIZE`, or `ID missing`.
    let size = std::str::from_utf8(&printed[..end]).ok()?.split(' ').nth(2)?.parse::<usize>().ok()?;
    printed.get(end + 1..)?.get(size..)?.strip_prefix(b"\n")
}

/// Everything below the folder that differs from HEAD: first what git follows, then what it does not and does
/// not ignore. Whether it is staged makes no difference. A repository inside counts by its commit alone: what is in
/// it only a git inside it could tell, and that would do as its settings say.
///
/// A writer runs the filters that the commit will run, and renews the index. Without one a file that was only touched is
/// listed as well, and one under a filter that has been.
pub(crate) fn since_head(
    folder: &Path,
    head: Option<&CommitId>,
    writer: Option<&GitWriter<'_>>,
    limit: TimeLimit,
) -> Result<Vec<Change>, GitError> {
    let mut changes = match head {
        Some(head) => parse_diff(&differences(folder, head, writer, limit)?),
        None => parse_stage(&answer(folder, &["ls-files", "--stage", "-z", "--", "."], None, limit)?),
    };
    let question = ["ls-files", "--others", "--exclude-standard", "-z", "--", "."];
    let untracked = answer(folder, &question, None, limit)?;
    changes.extend(names(&untracked).map(|path| Change {
        path: path.to_owned(),
        mode: None,
        is_tracked: false,
    }));
    Ok(changes)
}

fn differences(
    folder: &Path,
    head: &CommitId,
    writer: Option<&GitWriter<'_>>,
    limit: TimeLimit,
) -> Result<Vec<u8>, GitError> {
    let how =
        ["--raw", "-z", "--no-renames", "--relative", "--ignore-submodules=dirty", head.as_str(), "--", "."];
    if let Some(writer) = writer {
        let terms = Terms { most_output: MOST_LIST, ..Terms::within(limit.left()) };
        let plain = ["diff", "--no-ext-diff", "--no-textconv"];
        let command = writer.command_in(folder, &[&plain[..], &how[..]].concat());
        let filtered = as_answer(child::run(command, terms));
        if filtered.is_ok() || limit.is_over() {
            return filtered;
        }
        // A filter that has to work does not: then without.
    }
    answer(folder, &[&["diff"], &how[..]].concat(), None, limit)
}

/// Git reads a name a line; one in quotes may hold every byte.
pub(crate) fn quoted(path: &[u8]) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            0..b' ' => line.extend(format!("\\{byte:03o}").into_bytes()),
            _ => line.push(*byte),
        }
    }
    line.extend(*b"\"\n");
    line
}

/// `:100644 100755 <id> <id> M`, then the path.
fn parse_diff(output: &[u8]) -> Vec<Change> {
    let mut entries = names(output);
    let mut changes = Vec::new();
    while let (Some(what), Some(path)) = (entries.next(), entries.next()) {
        let mode = String::from_utf8_lossy(what).split(' ').nth(1).map(str::to_owned);
        let mode = mode.filter(|mode| mode != "000000");
        changes.push(Change { path: path.to_owned(), mode, is_tracked: true });
    }
    changes
}

/// `100644 <id> 0`, a tabulator, the path.
fn parse_stage(output: &[u8]) -> Vec<Change> {
    let entries = names(output).filter_map(|entry| {
        let tabulator = entry.iter().position(|byte| *byte == b'\t')?;
        let mode = String::from_utf8_lossy(entry.get(..6)?).into_owned();
        Some(Change { path: entry[tabulator + 1..].to_owned(), mode: Some(mode), is_tracked: true })
    });
    entries.collect()
}
