//! The commit of a repository inside the project, read off its files: no git is started there.

use plimsoll_store::disk;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The list of packed references of a large repository is a few megabytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// What HEAD stands for: a commit, or the name of a branch whose commit no file tells (it has none, or the references
/// are in a table). None if there is no repository.
pub(super) fn head(folder: &Path) -> Option<String> {
    let git = git_folder(folder)?;
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ").map(str::trim) else { return Some(head) };
    // An agent can write HEAD: it must not lead out of the git folder.
    if !name.starts_with("refs/") || name.contains("..") {
        return None;
    }
    // A linked worktree's references are in the folder that it shares.
    let shared = read(&git.join("commondir")).map_or_else(|| git.clone(), |common| git.join(common));
    let packed = || {
        let list = read(&shared.join("packed-refs"))?;
        let mut lines = list.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(_, reference)| *reference == name).map(|(id, _)| id.to_owned())
    };
    // A loose reference counts more than a packed one of the same name.
    Some(read(&shared.join(name)).or_else(packed).unwrap_or_else(|| head.clone()))
}

fn git_folder(folder: &Path) -> Option<PathBuf> {
    let inside = folder.join(".git");
    if inside.symlink_metadata().ok()?.is_dir() {
        return Some(inside);
    }
    let target = read(&inside)?;
    Some(folder.join(target.strip_prefix("gitdir:")?.trim()))
}

/// A plain file's text, without white space around it. A pipe in its place keeps nobody waiting.
fn read(path: &Path) -> Option<String> {
    let file = disk::open_itself(path).ok()?;
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}
