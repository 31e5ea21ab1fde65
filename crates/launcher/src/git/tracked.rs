//! What git has in its index.

use super::git;
use crate::changes::names;
use std::path::Path;

/// The files among these paths of a folder (files, or folders with all that is in them) that git tracks.
pub fn tracked(folder: &Path, paths: &[&str]) -> Vec<String> {
    let question = ["ls-files", "-z", "--"].iter().chain(paths).copied().collect::<Vec<_>>();
    let answer = git(folder, &question);
    if !answer.succeeded() {
        return Vec::new();
    }
    names(&answer.stdout).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}
