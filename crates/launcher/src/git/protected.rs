//! Reads protected files from commits. Objects are compared by their ids and modes, so neither the
//! repository's index nor replaced objects matter. Commits are read into an index, as a checkout does: a tree
//! can contain a name twice, and commands that list a tree then report another entry than a checkout uses.

use super::{AllowedPrograms, GitWriter, read_only_command_with_settings};
use crate::child::{self, ChildOptions};
use crate::git_output::{fatal_message_or_last_output_line, split_nul_terminated};
use crate::time_limit::TimeLimit;
use crate::{CommandOutcome, MAX_OUTPUT_BYTES, run_without_stdin};
use plimsoll_domain::file_names::may_be_same_or_below;
use plimsoll_domain::git_names::{BranchName, CommitId, RepoPath};
use plimsoll_domain::protected::{GitEntry, GitFailure};
use plimsoll_store::layout::shared_git_folder;
use plimsoll_store::{disk, volume};
use plimsoll_system::paths::os_str_from_bytes;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Git hashes 64 MiB in a second; a trusted filter or a disk that spins up may take longer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of attempts for a query.
const MAX_ATTEMPTS: u32 = 2;
/// Without these settings git could write files beside the index, or leave files out of it.
const FULL_INDEX_SETTINGS: [&str; 2] = ["core.splitIndex=false", "index.sparse=false"];
/// Settings that make the result of `git add` independent of the user's settings for warnings.
const ADD_SETTINGS: [&str; 3] =
    ["core.safecrlf=false", "add.ignoreErrors=false", "advice.addEmbeddedRepo=false"];

/// The command that lists the files of an index with modes and ids.
const LIST_INDEX_ARGUMENTS: [&str; 3] = ["ls-files", "--stage", "-z"];

/// The reason why git did not add files to an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("git add refuses them: {0}")]
pub struct GitAddError(String);

/// A reference and its files, or the reason why they are unknown.
pub type ReferenceEntries = (String, Result<Vec<GitEntry>, GitFailure>);

/// Returns the identity of the repository that git itself uses in a folder, including the folder's path in
/// it. A `.git` file can lead git to another repository than our own search finds, because git keeps trailing
/// spaces in the path.
pub fn git_folder_identities_with_folder_prefix(folder: &Path) -> Result<String, GitFailure> {
    let outcome = query_with_retry(folder, None, &["rev-parse", "--absolute-git-dir", "--show-prefix"])?;
    let identity = || {
        let mut lines = outcome.stdout.split(|byte| *byte == b'\n');
        let git_folder = os_str_from_bytes(lines.next()?);
        let git_folder = Path::new(&git_folder);
        let prefix = String::from_utf8_lossy(lines.next()?).into_owned();
        let common_git_folder = shared_git_folder(git_folder)?;
        Some(format!(
            "{} {} {prefix}",
            volume::folder_identity_by_inode_and_creation_time(git_folder)?,
            volume::folder_identity_by_inode_and_creation_time(&common_git_folder)?
        ))
    };
    identity().filter(|_| outcome.succeeded()).ok_or(GitFailure::Unreadable)
}

/// Returns the branch that is checked out, as `refs/heads/NAME`; `None` if HEAD is detached or has no commit.
pub fn checked_out_branch_full_ref(folder: &Path) -> Result<Option<String>, GitFailure> {
    if read_commit_or_none_if_unborn_head(folder, "HEAD")?.is_none() {
        return Ok(None);
    }
    let outcome = query_with_retry(folder, None, &["symbolic-ref", "--quiet", "HEAD"])?;
    if outcome.exit_code == Some(1) && outcome.stdout.is_empty() {
        return Ok(None);
    }
    let name = super::trimmed_stdout(&outcome);
    let name = name.strip_prefix("refs/heads/").and_then(|name| BranchName::parse(name).ok());
    name.filter(|_| outcome.succeeded()).map(|name| Some(name.full_ref_name())).ok_or(GitFailure::Unreadable)
}

/// Returns the files at and below `paths` that a checkout of each reference would have. Includes other spellings of the
/// paths, because a checkout on a volume that ignores case may write one of these in place of the path. Stops after the
/// first timeout. A HEAD without a commit has no files. A reference is `HEAD` or begins with `refs/`.
/// `temporary_index` is the path of an index that is created and then removed.
pub fn entries_of_references_until_timeout(
    folder: &Path,
    temporary_index: &Path,
    references: &[&str],
    paths: &[RepoPath],
) -> Vec<ReferenceEntries> {
    let mut last_read: Option<(CommitId, Vec<GitEntry>)> = None;
    let mut read_reference = |reference: &str| -> Result<Vec<GitEntry>, GitFailure> {
        let Some(id) = read_commit_or_none_if_unborn_head(folder, reference)? else { return Ok(Vec::new()) };
        // HEAD and its branch are the same commit and are read only once.
        if let Some((_, entries)) = last_read.as_ref().filter(|(last_id, _)| *last_id == id) {
            return Ok(entries.clone());
        }
        let entries = read_entries_of_commit(folder, temporary_index, &id, paths)?;
        last_read = Some((id, entries.clone()));
        Ok(entries)
    };
    let mut results: Vec<ReferenceEntries> = Vec::new();
    for reference in references {
        let entries = read_reference(reference);
        // The next query would probably time out, too.
        let timed_out = entries == Err(GitFailure::TimedOut);
        results.push(((*reference).to_owned(), entries));
        if timed_out {
            break;
        }
    }
    remove_index_and_lock(temporary_index);
    results
}

/// Returns the files at and below `paths` that a commit of the files on disk would have, including ignored
/// files, and including tracked files in other spellings of the paths. The error contains git's reason. `temporary_index` is the path of an index that is created and then
/// removed. `head_entries` are the files in HEAD. Objects and a tree are written to the repository, but nothing
/// refers to them.
pub fn entries_git_would_commit(
    folder: &Path,
    temporary_index: &Path,
    paths: &[RepoPath],
    head_entries: &[GitEntry],
    allowed_programs: AllowedPrograms,
) -> Result<Vec<GitEntry>, GitAddError> {
    let mut writer = GitWriter::new(folder, allowed_programs).map_err(|outcome| git_add_error(&outcome))?;
    writer.add_settings(ADD_SETTINGS.into_iter().chain(FULL_INDEX_SETTINGS).map(Into::into));
    let limit = TimeLimit::from_now(QUERY_TIMEOUT);
    let run_writer = |arguments: &[&str]| {
        let mut command = writer.command(arguments);
        command.env("GIT_INDEX_FILE", temporary_index);
        let outcome = child::run(command, ChildOptions::with_timeout(limit.remaining()));
        if outcome.succeeded() { Ok(outcome) } else { Err(git_add_error(&outcome)) }
    };
    let pathspecs: Vec<String> = paths.iter().map(RepoPath::to_literal_pathspec).collect();
    let head = read_commit_or_none_if_unborn_head(folder, "HEAD")
        .map_err(|_| GitAddError("git cannot read HEAD".to_owned()))?;
    let add_and_list_entries = || {
        if let Some(head) = &head {
            run_writer(&["read-tree", head.as_str()])?;
        }
        run_writer(&append_pathspecs(&["add", "--force"], &pathspecs))?;
        let tree = run_writer(&["write-tree", "--missing-ok"])?;
        let outcome =
            run_writer(&append_pathspecs(&LIST_INDEX_ARGUMENTS, &pathspecs_of_all_spellings(paths)))?;
        parse_index_entries_if_complete(&outcome, &super::trimmed_stdout(&tree), paths)
            .ok_or_else(|| GitAddError("its list of files is too long".to_owned()))
    };
    let entries = add_and_list_entries();
    remove_index_and_lock(temporary_index);
    let prefer_committed = |entry: GitEntry| {
        let is_same_file = |committed_entry: &&GitEntry| {
            committed_entry.path == entry.path && committed_entry.object == entry.object
        };
        head_entries.iter().find(is_same_file).cloned().unwrap_or(entry)
    };
    Ok(entries?.into_iter().map(prefer_committed).collect())
}

fn git_add_error(outcome: &CommandOutcome) -> GitAddError {
    let timeout_message = || "git does not answer in time".to_owned();
    GitAddError(if outcome.timed_out {
        timeout_message()
    } else {
        fatal_message_or_last_output_line(outcome)
    })
}

/// Returns the commit of a reference; `None` for a HEAD without a commit.
fn read_commit_or_none_if_unborn_head(
    folder: &Path,
    reference: &str,
) -> Result<Option<CommitId>, GitFailure> {
    let outcome = query_with_retry(folder, None, &["rev-parse", "--verify", "--quiet", reference])?;
    if outcome.succeeded() {
        return CommitId::parse(&super::trimmed_stdout(&outcome))
            .map(Some)
            .map_err(|_| GitFailure::Unreadable);
    }
    // For a missing branch git's output is the same as for a HEAD without a commit.
    let is_unborn = reference == "HEAD" && outcome.exit_code == Some(1) && outcome.stdout.is_empty();
    if is_unborn { Ok(None) } else { Err(GitFailure::Unreadable) }
}

fn read_entries_of_commit(
    folder: &Path,
    temporary_index: &Path,
    commit: &CommitId,
    paths: &[RepoPath],
) -> Result<Vec<GitEntry>, GitFailure> {
    if !query_with_retry(folder, Some(temporary_index), &["read-tree", commit.as_str()])?.succeeded() {
        return Err(GitFailure::Unreadable);
    }
    let outcome = query_with_retry(
        folder,
        Some(temporary_index),
        &append_pathspecs(&LIST_INDEX_ARGUMENTS, &pathspecs_of_all_spellings(paths)),
    )?;
    parse_index_entries_if_complete(&outcome, commit.as_str(), paths).ok_or(GitFailure::Unreadable)
}

/// Runs a git query. It is repeated if it times out, cannot be started, or is ended by a signal: in these
/// cases nothing is wrong with the repository.
fn query_with_retry(
    folder: &Path,
    index: Option<&Path>,
    arguments: &[&str],
) -> Result<CommandOutcome, GitFailure> {
    for _ in 0..MAX_ATTEMPTS {
        let mut command = read_only_command_with_settings(folder, &FULL_INDEX_SETTINGS, arguments)
            .map_err(|_| GitFailure::Unreadable)?;
        if let Some(index) = index {
            // A git that was killed may have left its lock.
            let _ = disk::remove_if_exists(&index_lock_path(index));
            command.env("GIT_INDEX_FILE", index);
        }
        let outcome = run_without_stdin(command, QUERY_TIMEOUT);
        if !outcome.timed_out && outcome.exit_code.is_some() {
            return Ok(outcome);
        }
    }
    Err(GitFailure::TimedOut)
}

fn remove_index_and_lock(index: &Path) {
    for file in [index, &index_lock_path(index)] {
        let _ = disk::remove_if_exists(file);
    }
}

/// Returns the lock file that git creates while it writes an index.
fn index_lock_path(index: &Path) -> PathBuf {
    let mut lock = index.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

fn pathspecs_of_all_spellings(paths: &[RepoPath]) -> Vec<String> {
    paths.iter().flat_map(RepoPath::to_pathspecs_of_all_spellings).collect()
}

fn append_pathspecs<'a>(arguments: &[&'a str], pathspecs: &'a [String]) -> Vec<&'a str> {
    arguments.iter().copied().chain(["--"]).chain(pathspecs.iter().map(String::as_str)).collect()
}

/// Parses lines of the form `MODE ID STAGE<tab>PATH`, and keeps those at and below the paths in any spelling. Returns
/// `None` if git failed or the output was cut off.
fn parse_index_entries_if_complete(
    outcome: &CommandOutcome,
    source: &str,
    paths: &[RepoPath],
) -> Option<Vec<GitEntry>> {
    // Output of this size was cut off, so files may be missing.
    if !outcome.succeeded() || outcome.stdout.len() >= MAX_OUTPUT_BYTES {
        return None;
    }
    let parse_line = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let (object_info, path) = line.split_once('\t')?;
        let mut fields = object_info.split(' ');
        let (mode, id) = (fields.next()?, fields.next()?);
        Some(GitEntry { path: path.to_owned(), object: format!("{mode} {id}"), source: source.to_owned() })
    };
    let mut entries: Vec<GitEntry> =
        split_nul_terminated(&outcome.stdout).map(parse_line).collect::<Option<_>>()?;
    entries.retain(|entry| paths.iter().any(|path| may_be_same_or_below(&entry.path, path.as_str())));
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wip::tests::{create_repository, run_shell};

    #[test]
    fn a_commit_lists_the_paths_in_every_spelling() {
        let folder = create_repository();
        let root = folder.path();
        run_shell(root, "mkdir -p tests docs; for f in Makefile tests/a docs/Makefile; do echo 1 > $f; done");
        run_shell(root, "git add -A; git commit -qm Files");
        // A volume that ignores case cannot have these files beside the others, but a commit can.
        let other_spellings =
            ["makefile", "Ma\u{212a}efile", "Tests/b", "te\u{17f}ts/c", "te/sts/d", "Makexfile", "tests2/e"];
        for path in other_spellings {
            run_shell(
                root,
                &format!("git update-index --add --cacheinfo 100644,$(git hash-object -w a.txt),'{path}'"),
            );
        }
        run_shell(root, "git commit -qm Spellings");
        let paths = ["Makefile", "tests"].map(|path| RepoPath::parse(path).unwrap());
        for ignores_case in [false, true] {
            run_shell(root, &format!("git config core.ignorecase {ignores_case}"));
            let index = root.join("index");
            let mut expected =
                vec!["Makefile", "Ma\u{212a}efile", "Tests/b", "makefile", "te\u{17f}ts/c", "tests/a"];
            expected.sort_unstable();
            let listed_paths = |entries: &[GitEntry]| {
                let mut paths: Vec<String> = entries.iter().map(|entry| entry.path.clone()).collect();
                paths.sort();
                paths
            };
            let results = entries_of_references_until_timeout(root, &index, &["HEAD"], &paths);
            let head_entries = results[0].1.as_ref().unwrap();
            assert_eq!(listed_paths(head_entries), expected, "{ignores_case}");
            let committable =
                entries_git_would_commit(root, &index, &paths, head_entries, AllowedPrograms::TrustedDrivers);
            assert!(
                committable.as_ref().is_ok_and(|entries| !entries.is_empty()),
                "{ignores_case}: {committable:?}"
            );
            assert!(listed_paths(&committable.unwrap()).contains(&"makefile".to_owned()), "{ignores_case}");
        }
    }
}
