//! Queries about the files in git's index.

use super::run_query;
use crate::git_output::split_nul_terminated;
use plimsoll_domain::git_names::RepoPath;
use std::path::Path;

/// Returns the tracked files at or below these paths; nothing if git fails.
pub fn tracked_files_at_or_below(folder: &Path, paths: &[RepoPath]) -> Vec<String> {
    // Without a path git would list everything.
    if paths.is_empty() {
        return Vec::new();
    }
    let pathspecs: Vec<String> = paths.iter().map(RepoPath::to_literal_pathspec).collect();
    let arguments: Vec<&str> =
        ["ls-files", "-z", "--"].into_iter().chain(pathspecs.iter().map(String::as_str)).collect();
    let outcome = run_query(folder, &arguments);
    if !outcome.succeeded() {
        return Vec::new();
    }
    split_nul_terminated(&outcome.stdout).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Returns whether git tracks a file or folder with this name. Returns false if `name` is not a valid path in
/// a repository.
pub fn is_tracked(folder: &Path, name: &str) -> bool {
    RepoPath::parse(name).is_ok_and(|path| !tracked_files_at_or_below(folder, &[path]).is_empty())
}
