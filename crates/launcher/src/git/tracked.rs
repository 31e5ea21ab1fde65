//! What git has in its index.

use super::git;
use crate::git_output::names;
use plimsoll_domain::git_names::RepoPath;
use std::path::Path;

/// The files among these paths of a folder (files, or folders with all that is in them) that git tracks.
pub fn tracked(folder: &Path, paths: &[RepoPath]) -> Vec<String> {
    // Without a path git would list everything.
    if paths.is_empty() {
        return Vec::new();
    }
    let paths: Vec<String> = paths.iter().map(RepoPath::pathspec).collect();
    let question: Vec<&str> =
        ["ls-files", "-z", "--"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let answer = git(folder, &question);
    if !answer.succeeded() {
        return Vec::new();
    }
    names(&answer.stdout).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Whether git tracks a file or a folder of this name. A text that is no path of a repository it does not.
pub fn is_tracked(folder: &Path, name: &str) -> bool {
    RepoPath::parse(name).is_ok_and(|path| !tracked(folder, &[path]).is_empty())
}
