//! What has changed since a commit, as a reader wants to see it: bounded, and without files that the caller leaves out.

use super::asking;
use crate::child::{self, Terms};
use crate::git_output::names;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use std::path::Path;
use std::time::Duration;

/// A large diff takes git a moment.
const DEADLINE: Duration = Duration::from_secs(20);
/// A list of files that is longer says no more.
const MOST_SUMMARY: usize = 8 * 1024;
const MOST_NAMES: usize = 256 * 1024;

/// Changes, committed and not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The files with their numbers of changed lines.
    pub summary: String,
    /// The changes themselves.
    pub diff: String,
    /// True if there are more.
    pub is_cut: bool,
    /// Files that git does not follow and does not ignore, from the folder on.
    pub new_files: Vec<String>,
}

/// What has changed below the folder since a commit; `None` as base is before the first one. At most so many bytes of the diff.
/// Paths that match a pattern of `left_out` are left out. None if git cannot say.
pub fn changes_since(
    folder: &Path,
    base: Option<&CommitId>,
    left_out: &[&str],
    most: usize,
) -> Option<Changes> {
    let limit = TimeLimit::within(DEADLINE);
    let base = match base {
        Some(base) => base.to_string(),
        None => empty_tree(folder, limit)?,
    };
    let except: Vec<String> = left_out.iter().map(|pattern| format!(":(exclude){pattern}")).collect();
    let paths: Vec<&str> = ["--", "."].into_iter().chain(except.iter().map(String::as_str)).collect();
    let asked = |start: &[&str], most: usize| printed(folder, &[start, &paths[..]].concat(), most, limit);
    let (summary, _) = asked(&["diff", "--relative", "--stat=100", &base], MOST_SUMMARY)?;
    let (diff, is_cut) = asked(&["diff", "--relative", &base], most)?;
    let (new, _) = asked(&["ls-files", "--others", "--exclude-standard", "-z"], MOST_NAMES)?;
    let new_files = names(new.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    Some(Changes { summary, diff, is_cut, new_files })
}

/// The tree without a file, whichever hashes the repository uses.
fn empty_tree(folder: &Path, limit: TimeLimit) -> Option<String> {
    let (id, _) = printed(folder, &["hash-object", "-t", "tree", "--stdin"], 1024, limit)?;
    Some(id.trim().to_owned())
}

/// What git prints, and whether it is cut; at the end of a line then.
fn printed(folder: &Path, arguments: &[&str], most: usize, limit: TimeLimit) -> Option<(String, bool)> {
    let command = asking(folder, arguments, limit).ok()?;
    // One byte more, to know whether there is more.
    let outcome = child::run(command, Terms { most_output: most + 1, ..Terms::within(limit.left()) });
    if !outcome.succeeded() {
        return None;
    }
    Some(whole_lines(outcome.stdout, most))
}

/// The text of at most so many bytes, cut at the end of a line, and whether it is cut.
pub(crate) fn whole_lines(mut bytes: Vec<u8>, most: usize) -> (String, bool) {
    let is_cut = bytes.len() > most;
    if is_cut {
        bytes.truncate(most);
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        bytes.truncate(end);
    }
    (String::from_utf8_lossy(&bytes).into_owned(), is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(folder: &Path, line: &str) {
        let outcome = crate::shell(line, folder, Duration::from_secs(20));
        assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
    }

    #[test]
    fn what_is_committed_and_what_is_not_is_shown_within_bounds() {
        const MOST: usize = 4_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(changes_since(path, None, &[], MOST), None, "there is no repository");
        sh(path, "git init -q -b main && git config user.email a@b && git config user.name n");
        sh(
            path,
            "mkdir sub ours && echo one > sub/a.txt && echo x > PROMPT.md && git add -A && echo new > sub/b.txt",
        );
        let first = changes_since(path, None, &["PROMPT.md", "ours/*"], MOST).unwrap();
        assert!(first.diff.contains("+one\n") && !first.diff.contains("PROMPT.md"), "{first:?}");
        assert_eq!((first.new_files, first.is_cut), (vec!["sub/b.txt".to_owned()], false));

        sh(
            path,
            "git commit -qm first && echo two >> sub/a.txt && git commit -qam second && echo three >> sub/a.txt",
        );
        let head = crate::git::parent(path, &crate::git::head(path).unwrap()).unwrap();
        sh(path, "echo mine > ours/c.txt && git add -f ours/c.txt && echo above > d.txt && git add d.txt");
        // From a folder of the project on.
        let since = changes_since(&path.join("sub"), Some(&head), &[], MOST).unwrap();
        assert!(since.diff.contains("+two\n+three\n") && !since.diff.contains("above"), "{since:?}");
        assert!(since.summary.contains("a.txt | 2 ++\n"), "{since:?}");
        let since = changes_since(path, Some(&head), &["ours/*"], MOST).unwrap();
        assert!(since.diff.contains("+above\n") && !since.diff.contains("mine"), "{since:?}");

        sh(path, "seq 1000 > sub/a.txt");
        let cut = changes_since(path, Some(&head), &[], MOST).unwrap();
        assert!(cut.is_cut && cut.diff.len() <= MOST && cut.diff.ends_with('\n'), "{} bytes", cut.diff.len());
        assert_eq!(
            changes_since(
                path,
                Some(&CommitId::parse("0123456789012345678901234567890123456789").unwrap()),
                &[],
                MOST
            ),
            None
        );
    }
}
