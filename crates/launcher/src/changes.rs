//! The differences between a working tree and its HEAD, and the filters that apply to paths. Paths are raw bytes as git
//! reports them, because a file name need not be UTF-8.

use crate::child::{self, ChildOptions};
use crate::git::list_query::{
    MAX_LIST_BYTES, PathAndFilterName, complete_stdout_or_error, join_nul_terminated,
    parse_check_attr_filters, run_command_for_complete_output, run_query_for_complete_output,
};
use crate::git::{self, GitWriter};
use crate::git_error::GitError;
use crate::git_output::split_nul_terminated;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use plimsoll_store::disk;
use plimsoll_system::paths::os_str_from_bytes;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

/// A path that differs from HEAD, relative to the project folder. The path of an untracked repository ends
/// with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedPath {
    pub(crate) path: Vec<u8>,
    /// The mode that git would commit; `None` if the file is missing on disk or untracked.
    pub(crate) mode: Option<String>,
    pub(crate) is_tracked: bool,
}

impl ChangedPath {
    pub(crate) fn path_text(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// The position of a folder in its working tree.
#[derive(Debug)]
pub(crate) struct FolderInWorkingTree {
    pub(crate) root: PathBuf,
    /// The path from the root to the folder, with a slash at its end; empty at the root.
    pub(crate) prefix: Vec<u8>,
}

impl FolderInWorkingTree {
    /// Finds the working tree of `folder`. Returns `None` outside a working tree.
    pub(crate) fn locate(folder: &Path, limit: TimeLimit) -> Result<Option<FolderInWorkingTree>, GitError> {
        let arguments = ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--show-prefix"];
        let command = git::read_only_command(folder, &arguments, limit);
        let outcome = command
            .map_or_else(|outcome| outcome, |command| crate::run_without_stdin(command, limit.remaining()));
        if outcome.timed_out {
            return Err(GitError::TimedOut);
        }
        Ok(if outcome.succeeded() { FolderInWorkingTree::parse(folder, &outcome.stdout) } else { None })
    }

    fn parse(folder: &Path, output: &[u8]) -> Option<FolderInWorkingTree> {
        let remaining_output = output.strip_prefix(b"true\n")?;
        let end = remaining_output.iter().position(|byte| *byte == b'\n')?;
        let prefix = remaining_output.get(end + 1..)?.strip_suffix(b"\n")?;
        Some(FolderInWorkingTree {
            root: folder.join(os_str_from_bytes(&remaining_output[..end])),
            prefix: prefix.to_owned(),
        })
    }
}

/// The paths that are under a filter, with its name.
#[derive(Debug, Default)]
pub(crate) struct PathFilters {
    /// According to the attributes that a commit of the changed files will have.
    pub(crate) after_commit: Vec<PathAndFilterName>,
    /// According to the attributes of HEAD.
    pub(crate) at_head: Vec<PathAndFilterName>,
}

/// Returns which of `queried_paths` are under a filter according to the current attributes and to those of
/// HEAD. Runs no filter. Returns an error if git cannot determine this.
///
/// `git check-attr --source` exists only since git 2.40, so HEAD is read into a temporary index, which works
/// with any git. If an attributes file is missing in the working tree, git reads it from the index. Attributes
/// files among the changed files are therefore removed from that index: the commit deletes the missing ones.
pub(crate) fn filters_after_commit_and_at_head(
    folder: &Path,
    head: &CommitId,
    changed_paths: &[Vec<u8>],
    queried_paths: &[Vec<u8>],
    limit: TimeLimit,
) -> Result<PathFilters, GitError> {
    let input = join_nul_terminated(&mut queried_paths.iter().map(Vec::as_slice));
    if input.is_empty() {
        return Ok(PathFilters::default());
    }
    let index = TemporaryIndex::from_commit(folder, head, limit)?;
    index.check_attributes_files_are_readable(limit)?;
    let arguments = ["check-attr", "--cached", "-z", "--stdin", "filter"];
    let output_at_head = index.run_git_without_info_attributes(&arguments, input.clone(), limit)?;
    let is_attributes_file =
        |path: &&[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes");
    let changed_attributes_files =
        join_nul_terminated(&mut changed_paths.iter().map(Vec::as_slice).filter(is_attributes_file));
    index.run_git(
        &["update-index", "--force-remove", "-z", "--stdin"],
        Some(changed_attributes_files),
        limit,
    )?;
    let output_after_commit =
        index.run_git(&["check-attr", "-z", "--stdin", "filter"], Some(input), limit)?;
    Ok(PathFilters {
        after_commit: parse_check_attr_filters(&output_after_commit),
        at_head: parse_check_attr_filters(&output_at_head),
    })
}

/// A temporary index of a commit, in a file beside the repository's index. Deleted when dropped.
struct TemporaryIndex<'a> {
    folder: &'a Path,
    index_path: PathBuf,
}

/// Settings without which git could read files other than the commit's, or write files other than this index.
const FULL_INDEX_SETTINGS: [&str; 3] =
    ["core.sparseCheckout=false", "index.sparse=false", "core.splitIndex=false"];

impl<'a> TemporaryIndex<'a> {
    fn from_commit(
        folder: &'a Path,
        commit: &CommitId,
        limit: TimeLimit,
    ) -> Result<TemporaryIndex<'a>, GitError> {
        // Git would follow a symbolic link of this name, so the name must not be guessable.
        let random_number = RandomState::new().hash_one(0);
        let name = format!("plimsoll-{}-{random_number:016x}.index", std::process::id());
        let index = TemporaryIndex { folder, index_path: path_in_git_folder(folder, &name, limit)? };
        index.run_git(&["read-tree", commit.as_str()], None, limit)?;
        Ok(index)
    }

    fn run_git(
        &self,
        arguments: &[&str],
        input: Option<Vec<u8>>,
        limit: TimeLimit,
    ) -> Result<Vec<u8>, GitError> {
        let command = git::read_only_command_with_settings(self.folder, &FULL_INDEX_SETTINGS, arguments).map(
            |mut command| {
                command.env("GIT_INDEX_FILE", &self.index_path);
                command
            },
        );
        run_command_for_complete_output(command, input, limit)
    }

    /// Runs git as [`TemporaryIndex::run_git`] does, but without the attributes in `.git/info/attributes`. A
    /// session can write that file, and it takes precedence over the attributes of any commit. No setting
    /// disables it, so git gets a temporary common folder, which lacks the file.
    fn run_git_without_info_attributes(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
        limit: TimeLimit,
    ) -> Result<Vec<u8>, GitError> {
        let [config, objects] =
            ["config", "objects"].map(|name| path_in_git_folder(self.folder, name, limit));
        let (config, objects, common_folder) = (config?, objects?, self.temporary_common_folder());
        let create_result = disk::create_folder(&common_folder.join("refs"))
            .and_then(|()| disk::read(&config))
            .and_then(|config| disk::create_new(&common_folder.join("config"), &config.unwrap_or_default()));
        create_result.map_err(|error| GitError::Failed(error.to_string()))?;
        let command = git::read_only_command_with_settings(self.folder, &FULL_INDEX_SETTINGS, arguments).map(
            |mut command| {
                command.env("GIT_INDEX_FILE", &self.index_path);
                command.env("GIT_COMMON_DIR", common_folder).env("GIT_OBJECT_DIRECTORY", objects);
                command
            },
        );
        run_command_for_complete_output(command, Some(input), limit)
    }

    fn temporary_common_folder(&self) -> PathBuf {
        self.index_path.with_extension("common")
    }

    /// Returns an error unless git can read the objects of all attributes files: git treats an attributes file
    /// whose object is missing as empty.
    fn check_attributes_files_are_readable(&self, limit: TimeLimit) -> Result<(), GitError> {
        let arguments = ["ls-files", "--stage", "-z", "--", ":(top,glob)**/.gitattributes"];
        let entries = self.run_git(&arguments, None, limit)?;
        let parse_object_id = |entry: &[u8]| entry.split(|byte| *byte == b' ').nth(1).map(<[u8]>::to_vec);
        let object_ids: Vec<Vec<u8>> = split_nul_terminated(&entries).filter_map(parse_object_id).collect();
        if object_ids.is_empty() {
            return Ok(());
        }
        let mut remaining = &run_query_for_complete_output(
            self.folder,
            &["cat-file", "--batch"],
            Some(object_ids.join(&b'\n')),
            limit,
        )?[..];
        for _ in &object_ids {
            remaining = skip_first_object(remaining).ok_or_else(|| {
                GitError::Failed("git cannot read all files with attributes of HEAD".to_owned())
            })?;
        }
        Ok(())
    }
}

impl Drop for TemporaryIndex<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.index_path);
        let _ = std::fs::remove_dir_all(self.temporary_common_folder());
    }
}

/// Returns the path of a file in the git folder.
fn path_in_git_folder(folder: &Path, name: &str, limit: TimeLimit) -> Result<PathBuf, GitError> {
    let path = run_query_for_complete_output(folder, &["rev-parse", "--git-path", name], None, limit)?;
    let path = path.strip_suffix(b"\n").unwrap_or(&path);
    Ok(disk::canonicalize_or_keep(folder).join(os_str_from_bytes(path)))
}

/// Returns the remaining output of `git cat-file --batch` after its first object; `None` if git could not read
/// that object.
fn skip_first_object(output: &[u8]) -> Option<&[u8]> {
    let end = output.iter().position(|byte| *byte == b'\n')?;
    // `ID blob SIZE`, or `ID missing`.
    let size = std::str::from_utf8(&output[..end]).ok()?.split(' ').nth(2)?.parse::<usize>().ok()?;
    output.get(end + 1..)?.get(size..)?.strip_prefix(b"\n")
}

/// Lists all changes below `folder` compared with HEAD: first tracked files, then untracked files that are
/// not ignored. Staged and unstaged changes are treated alike. A nested repository counts only by its commit.
/// Its own changes could be read only by a git running inside it, which would follow that repository's
/// settings.
///
/// With a writer, the filters that the commit will run are applied and the index is refreshed. Without one,
/// files that were only touched are listed as well, and touched files under a filter.
pub(crate) fn changes_since_head_with_untracked(
    folder: &Path,
    head: Option<&CommitId>,
    writer: Option<&GitWriter<'_>>,
    limit: TimeLimit,
) -> Result<Vec<ChangedPath>, GitError> {
    let mut changes = match head {
        Some(head) => parse_raw_diff(&raw_diff_from_head_filtered_if_possible(folder, head, writer, limit)?),
        None => parse_staged_files_as_changes(&run_query_for_complete_output(
            folder,
            &["ls-files", "--stage", "-z", "--", "."],
            None,
            limit,
        )?),
    };
    let arguments = ["ls-files", "--others", "--exclude-standard", "-z", "--", "."];
    let untracked = run_query_for_complete_output(folder, &arguments, None, limit)?;
    changes.extend(split_nul_terminated(&untracked).map(|path| ChangedPath {
        path: path.to_owned(),
        mode: None,
        is_tracked: false,
    }));
    Ok(changes)
}

fn raw_diff_from_head_filtered_if_possible(
    folder: &Path,
    head: &CommitId,
    writer: Option<&GitWriter<'_>>,
    limit: TimeLimit,
) -> Result<Vec<u8>, GitError> {
    let options =
        ["--raw", "-z", "--no-renames", "--relative", "--ignore-submodules=dirty", head.as_str(), "--", "."];
    if let Some(writer) = writer {
        let run_options = ChildOptions {
            max_output_bytes: MAX_LIST_BYTES,
            ..ChildOptions::with_timeout(limit.remaining())
        };
        let diff_arguments = ["diff", "--no-ext-diff", "--no-textconv"];
        let command = writer.command_in(folder, &[&diff_arguments[..], &options[..]].concat());
        let output = complete_stdout_or_error(child::run(command, run_options));
        if output.is_ok() || limit.has_passed() {
            return output;
        }
        // A required filter may have failed: compare without filters.
    }
    run_query_for_complete_output(folder, &[&["diff"], &options[..]].concat(), None, limit)
}

/// Returns a path in quotes as one input line for git: git reads one path a line, and a quoted one may
/// contain every byte.
pub(crate) fn quote_path_as_input_line(path: &[u8]) -> Vec<u8> {
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

/// Parses the output of `diff --raw -z`: `:100644 100755 <id> <id> M`, then the path.
fn parse_raw_diff(output: &[u8]) -> Vec<ChangedPath> {
    let mut entries = split_nul_terminated(output);
    let mut changes = Vec::new();
    while let (Some(entry), Some(path)) = (entries.next(), entries.next()) {
        let mode = String::from_utf8_lossy(entry).split(' ').nth(1).map(str::to_owned);
        let mode = mode.filter(|mode| mode != "000000");
        changes.push(ChangedPath { path: path.to_owned(), mode, is_tracked: true });
    }
    changes
}

/// Parses the output of `ls-files --stage -z`: `100644 <id> 0`, a tab, the path.
fn parse_staged_files_as_changes(output: &[u8]) -> Vec<ChangedPath> {
    let entries = split_nul_terminated(output).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let mode = String::from_utf8_lossy(entry.get(..6)?).into_owned();
        Some(ChangedPath { path: entry[tab + 1..].to_owned(), mode: Some(mode), is_tracked: true })
    });
    entries.collect()
}
