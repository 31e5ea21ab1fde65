//! Summarizes the changes since a commit, limited in size and without excluded files.

use super::read_only_command;
use crate::child::{self, ChildOptions};
use crate::git_output::split_nul_terminated;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use std::path::Path;
use std::time::Duration;

/// The timeout for all queries: a large diff takes git several seconds.
const DIFF_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of the diffstat; a longer one is not useful.
const MAX_DIFF_STAT_BYTES: usize = 8 * 1024;
const MAX_UNTRACKED_LIST_BYTES: usize = 256 * 1024;

/// Committed and uncommitted changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeSummary {
    /// The files with their numbers of changed lines.
    pub diff_stat: String,
    pub diff: String,
    /// True if the diff was cut off.
    pub is_truncated: bool,
    /// Untracked files that are not ignored, relative to the folder.
    pub untracked_files: Vec<String>,
}

/// Returns the committed and uncommitted changes below `folder` since a commit; a `base` of `None` means before
/// the first commit. The diff has at most `max_diff_bytes` bytes. Paths that match a pattern in
/// `excluded_patterns` are excluded. Returns `None` if git fails.
pub fn summarize_changes_since(
    folder: &Path,
    base: Option<&CommitId>,
    excluded_patterns: &[&str],
    max_diff_bytes: usize,
) -> Option<ChangeSummary> {
    let limit = TimeLimit::from_now(DIFF_TIMEOUT);
    let base = match base {
        Some(base) => base.to_string(),
        None => empty_tree_id(folder, limit)?,
    };
    let excluded_pathspecs: Vec<String> =
        excluded_patterns.iter().map(|pattern| format!(":(exclude){pattern}")).collect();
    let path_arguments: Vec<&str> =
        ["--", "."].into_iter().chain(excluded_pathspecs.iter().map(String::as_str)).collect();
    let run_git = |arguments: &[&str], max_bytes: usize| {
        run_git_with_truncated_output(folder, &[arguments, &path_arguments[..]].concat(), max_bytes, limit)
    };
    let (diff_stat, _) = run_git(&["diff", "--relative", "--stat=100", &base], MAX_DIFF_STAT_BYTES)?;
    let (diff, is_truncated) = run_git(&["diff", "--relative", &base], max_diff_bytes)?;
    let (untracked_output, _) =
        run_git(&["ls-files", "--others", "--exclude-standard", "-z"], MAX_UNTRACKED_LIST_BYTES)?;
    let untracked_files = split_nul_terminated(untracked_output.as_bytes())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    Some(ChangeSummary { diff_stat, diff, is_truncated, untracked_files })
}

/// Returns the id of the empty tree in the hash algorithm of the repository.
fn empty_tree_id(folder: &Path, limit: TimeLimit) -> Option<String> {
    let (id, _) =
        run_git_with_truncated_output(folder, &["hash-object", "-t", "tree", "--stdin"], 1024, limit)?;
    Some(id.trim().to_owned())
}

/// Runs git and returns its output, cut at the end of a line if it is longer than `max_bytes` bytes, and
/// whether it was cut.
fn run_git_with_truncated_output(
    folder: &Path,
    arguments: &[&str],
    max_bytes: usize,
    limit: TimeLimit,
) -> Option<(String, bool)> {
    let command = read_only_command(folder, arguments, limit).ok()?;
    // One byte more shows whether the output is longer.
    let outcome = child::run(
        command,
        ChildOptions { max_output_bytes: max_bytes + 1, ..ChildOptions::with_timeout(limit.remaining()) },
    );
    if !outcome.succeeded() {
        return None;
    }
    Some(truncate_to_whole_lines(outcome.stdout, max_bytes))
}

/// Returns the text of at most `max_bytes` bytes, cut at the end of a line, and whether it was cut.
pub(crate) fn truncate_to_whole_lines(mut bytes: Vec<u8>, max_bytes: usize) -> (String, bool) {
    let is_truncated = bytes.len() > max_bytes;
    if is_truncated {
        bytes.truncate(max_bytes);
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1);
        bytes.truncate(end);
    }
    (String::from_utf8_lossy(&bytes).into_owned(), is_truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(folder: &Path, command_line: &str) {
        let outcome = crate::run_user_shell_command(command_line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{command_line}: {}", String::from_utf8_lossy(&outcome.stderr));
    }

    #[test]
    fn committed_and_uncommitted_changes_are_shown_within_limits() {
        const MAX_BYTES: usize = 4_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(summarize_changes_since(path, None, &[], MAX_BYTES), None, "there is no repository");
        run_shell(path, "git init -q -b main && git config user.email a@b && git config user.name n");
        run_shell(
            path,
            "mkdir sub ours && echo one > sub/a.txt && echo x > PROMPT.md && git add -A && echo new > sub/b.txt",
        );
        let first = summarize_changes_since(path, None, &["PROMPT.md", "ours/*"], MAX_BYTES).unwrap();
        assert!(first.diff.contains("+one\n") && !first.diff.contains("PROMPT.md"), "{first:?}");
        assert_eq!((first.untracked_files, first.is_truncated), (vec!["sub/b.txt".to_owned()], false));

        run_shell(
            path,
            "git commit -qm first && echo two >> sub/a.txt && git commit -qam second && echo three >> sub/a.txt",
        );
        let head = crate::git::parent_commit(path, &crate::git::head_commit(path).unwrap()).unwrap();
        run_shell(
            path,
            "echo mine > ours/c.txt && git add -f ours/c.txt && echo above > d.txt && git add d.txt",
        );
        // From a folder of the project on.
        let since = summarize_changes_since(&path.join("sub"), Some(&head), &[], MAX_BYTES).unwrap();
        assert!(since.diff.contains("+two\n+three\n") && !since.diff.contains("above"), "{since:?}");
        assert!(since.diff_stat.contains("a.txt | 2 ++\n"), "{since:?}");
        let since = summarize_changes_since(path, Some(&head), &["ours/*"], MAX_BYTES).unwrap();
        assert!(since.diff.contains("+above\n") && !since.diff.contains("mine"), "{since:?}");

        run_shell(path, "seq 1000 > sub/a.txt");
        let cut = summarize_changes_since(path, Some(&head), &[], MAX_BYTES).unwrap();
        assert!(
            cut.is_truncated && cut.diff.len() <= MAX_BYTES && cut.diff.ends_with('\n'),
            "{} bytes",
            cut.diff.len()
        );
        assert_eq!(
            summarize_changes_since(
                path,
                Some(&CommitId::parse("0123456789012345678901234567890123456789").unwrap()),
                &[],
                MAX_BYTES
            ),
            None
        );
    }
}
