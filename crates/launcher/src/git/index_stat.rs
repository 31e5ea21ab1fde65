//! Finds files that git wrongly lists as changed while filters are disabled. When git compares the content of
//! a file under a filter, the content on disk differs from the stored one. Git compares contents after a
//! checkout within the same second, for example. If size and mtime are those in git's index, the file has not
//! been written since.

use super::list_query::{self, query_filters_of_paths};
use super::trimmed_stdout;
use crate::time_limit::TimeLimit;
use plimsoll_system::file_metadata::modification_time;
use plimsoll_system::paths::os_str_from_bytes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of paths in one query; with more, all of them count as changed.
const MAX_QUERIED_PATHS: usize = 500;

/// Returns which of these paths (relative to the root of the working tree) are under a filter and have the size
/// and mtime that the index records. Returns nothing if git fails.
pub(super) fn files_under_filter_matching_index_stat(
    folder: &Path,
    changed_paths: &[String],
    limit: TimeLimit,
) -> BTreeSet<String> {
    try_files_under_filter_matching_index_stat(folder, changed_paths, limit).unwrap_or_default()
}

fn try_files_under_filter_matching_index_stat(
    folder: &Path,
    changed_paths: &[String],
    limit: TimeLimit,
) -> Option<BTreeSet<String>> {
    if changed_paths.is_empty() {
        return None;
    }
    let command = super::read_only_command(folder, &["rev-parse", "--show-toplevel"], limit).ok()?;
    let root = PathBuf::from(trimmed_stdout(&crate::run_without_stdin(command, limit.remaining())));
    let filtered_paths =
        query_filters_of_paths(&root, &mut changed_paths.iter().map(String::as_bytes), limit).ok()?;
    if filtered_paths.is_empty() || filtered_paths.len() > MAX_QUERIED_PATHS {
        return None;
    }
    let pathspecs: Vec<String> = filtered_paths
        .iter()
        .map(|(path, _)| format!(":(literal){}", String::from_utf8_lossy(path)))
        .collect();
    let mut arguments = vec!["ls-files", "-z", "--debug", "--"];
    arguments.extend(pathspecs.iter().map(String::as_str));
    let output = list_query::run_query_for_complete_output(&root, &arguments, None, limit).ok()?;
    Some(
        parse_ls_files_debug_entries(&output)
            .filter(|(path, index_stat)| {
                matches_index_size_and_mtime(&root.join(os_str_from_bytes(path)), *index_stat)
            })
            .map(lossy_path)
            .collect(),
    )
}

fn lossy_path((path, _): (&[u8], IndexStat)) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// The size and mtime of a file in git's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexStat {
    mtime_seconds: i64,
    mtime_nanoseconds: i64,
    size: u64,
}

/// Returns true if a file has this size and mtime. Git stores only the lower 32 bits of the size, and some builds
/// store no nanoseconds.
fn matches_index_size_and_mtime(path: &Path, index_stat: IndexStat) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| {
        let mtime = modification_time(&metadata);
        mtime.seconds == index_stat.mtime_seconds
            && (index_stat.mtime_nanoseconds == 0 || mtime.nanoseconds == index_stat.mtime_nanoseconds)
            && metadata.len() & 0xffff_ffff == index_stat.size
    })
}

/// Parses the output of `ls-files -z --debug`: each path and a zero byte, then lines such as `  mtime:
/// 1700000000:123` and `  size: 8<tab>flags: 0`. The next path follows the last line.
fn parse_ls_files_debug_entries(output: &[u8]) -> impl Iterator<Item = (&[u8], IndexStat)> {
    // `--debug` prints ctime, mtime, dev and ino, uid and gid, size and flags.
    const LINES_PER_ENTRY: usize = 5;
    let mut remaining = output;
    std::iter::from_fn(move || {
        let end = remaining.iter().position(|byte| *byte == 0)?;
        let (path, details_and_remaining) = (&remaining[..end], &remaining[end + 1..]);
        let details_length = details_and_remaining
            .split_inclusive(|byte| *byte == b'\n')
            .take(LINES_PER_ENTRY)
            .map(<[u8]>::len)
            .sum();
        let detail_lines = String::from_utf8_lossy(details_and_remaining.get(..details_length)?);
        remaining = details_and_remaining.get(details_length..)?;
        let find_value = |field_prefix: &str| {
            detail_lines.lines().find_map(|line| line.trim_start().strip_prefix(field_prefix))
        };
        let (seconds, nanoseconds) = find_value("mtime: ")?.split_once(':')?;
        let size = find_value("size: ")?.split('\t').next()?;
        let index_stat = IndexStat {
            mtime_seconds: seconds.parse().ok()?,
            mtime_nanoseconds: nanoseconds.parse().ok()?,
            size: size.parse().ok()?,
        };
        Some((path, index_stat))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_mtime_of_each_index_entry_are_parsed() {
        let debug_entry = |path: &str, size: u64| {
            format!(
                "{path}\0  ctime: 1:2\n  mtime: 1700000000:7\n  dev: 1\tino: 2\n  uid: 0\tgid: 0\n  size: {size}\tflags: 0\n"
            )
        };
        let output = debug_entry("a", 8) + &debug_entry("b c", 9);
        let parsed_entries: Vec<_> = parse_ls_files_debug_entries(output.as_bytes()).collect();
        let index_stat = |size| IndexStat { mtime_seconds: 1_700_000_000, mtime_nanoseconds: 7, size };
        assert_eq!(parsed_entries, [(&b"a"[..], index_stat(8)), (b"b c", index_stat(9))]);
    }

    #[test]
    fn an_unwritten_file_under_a_filter_does_not_count_as_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let sh = |line: &str| {
            let outcome = crate::run_user_shell_command(line, path, std::time::Duration::from_secs(20));
            assert!(outcome.succeeded(), "{line}: {}", String::from_utf8_lossy(&outcome.stderr));
        };
        sh("git init -q -b main; git config user.email a@b; git config user.name n");
        sh(
            "git config filter.up.clean 'tr a-z A-Z'; echo '*.up filter=up' > .gitattributes; mkdir d; echo one > d/a.up; echo b > b",
        );
        sh("git add -A; git commit -qm up");
        // As if the index had been written in the same second: git compares the content of each file.
        sh("touch -d 2030-01-01 d/a.up b; git update-index -q --refresh; touch -d 2020-01-01 .git/index");
        let count =
            || match crate::git::query_branch_and_change_counts(path, std::time::Duration::from_secs(20)) {
                crate::git::ChangeCountResult::Counts(counts, _) => counts.modified,
                result => panic!("{result:?}"),
            };
        let files = || -> Vec<String> {
            let work = crate::git::summarize_work(&path.join("d"), crate::git::WorkBase::Head, &[]).unwrap();
            work.files.into_iter().map(|file| file.path).collect()
        };
        assert_eq!((count(), files()), (0, vec![]));
        sh("echo two > b; echo two, and longer > d/a.up");
        assert_eq!((count(), files()), (2, vec!["a.up".to_owned()]));
    }
}
