//! Files under a filter are committed through it, or not at all: what git-crypt hides must not be in a history in the
//! clear because a filter was missing, failed, or was taken away from the file.

use super::Choice;
use crate::changes::{self, Filters, FolderInTree, quoted};
use crate::child::{self, Terms};
use crate::git::GitWriter;
use crate::git::question;
use crate::git::question::{Filtered, filters_of};
use crate::git_error::GitError;
use crate::git_output;
use crate::time_limit::TimeLimit;
use plimsoll_domain::git_names::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Each filter is tried on its files before the commit runs it; they may be large.
const TRIAL_DEADLINE: Duration = Duration::from_secs(60);

/// Leaves those files out of the choice whose filter is missing, may not run, or fails on one of them. Sets in the writer that
/// the other filters must not fail, and that a failed one is not run again. Returns the filters that may not run.
pub(super) fn sift(
    writer: &mut GitWriter<'_>,
    place: &FolderInTree,
    head: Option<&CommitId>,
    choice: &mut Choice,
    limit: TimeLimit,
) -> Result<Vec<String>, GitError> {
    let folder = writer.folder();
    let files = files(folder, choice);
    let (under, mut out) = read_filters(folder, head, choice, &files, limit)?;
    let mut by_filter: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (path, name) in under {
        by_filter.entry(name).or_default().push(path);
    }
    let mut forbidden = Vec::new();
    let cleaners = if by_filter.is_empty() { BTreeSet::new() } else { cleaners(folder, limit)? };
    let trial_limit = TimeLimit::within(TRIAL_DEADLINE);
    for (name, paths) in by_filter {
        let is_there = cleaners.contains(&name);
        if !writer.allows_filter(&name) {
            forbidden.push(String::from_utf8_lossy(&name).into_owned());
        } else if is_there && works(writer, place, &name, &paths, trial_limit) {
            // Without `required` git commits a file whose filter fails as it is: in the clear.
            writer.set([setting(&name, "required=true")]);
            continue;
        } else if is_there {
            writer.set(["clean=", "process=", "required=false"].map(|what| setting(&name, what)));
        }
        out.extend(paths);
    }
    choice.leave_out(&out);
    Ok(forbidden)
}

/// Leaves out what is under any filter, or was in HEAD. Returns the filters.
pub(super) fn leave_all_out(
    folder: &Path,
    head: Option<&CommitId>,
    choice: &mut Choice,
    limit: TimeLimit,
) -> Result<Vec<String>, GitError> {
    let files = files(folder, choice);
    let (under, mut out) = read_filters(folder, head, choice, &files, limit)?;
    let filters: BTreeSet<String> =
        under.iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()).collect();
    out.extend(under.into_iter().map(|(path, _)| path));
    choice.leave_out(&out);
    Ok(filters.into_iter().collect())
}

fn files(folder: &Path, choice: &Choice) -> Vec<Vec<u8>> {
    let is_file = |path: &&Vec<u8>| {
        folder.join(OsStr::from_bytes(path)).symlink_metadata().is_ok_and(|found| found.is_file())
    };
    choice.paths.iter().filter(is_file).cloned().collect()
}

/// Returns which files are under a filter, and those that HEAD's attributes put under another one. Whoever changed the attributes,
/// the latter are not to be committed as they are. If HEAD's attributes cannot be read, every file may be such a one.
fn read_filters(
    folder: &Path,
    head: Option<&CommitId>,
    choice: &Choice,
    files: &[Vec<u8>],
    limit: TimeLimit,
) -> Result<(Vec<Filtered>, BTreeSet<Vec<u8>>), GitError> {
    let filters = head.map(|head| changes::filters_since(folder, head, &choice.paths, files, limit));
    match filters {
        Some(Ok(Filters { future, former })) => {
            let changed = former.into_iter().filter(|file| !future.contains(file));
            let changed = changed.map(|(path, _)| path).collect();
            Ok((future, changed))
        }
        unknown => {
            let under = filters_of(folder, &mut files.iter().map(Vec::as_slice), limit)?;
            let changed = unknown.map_or(BTreeSet::new(), |_| files.iter().cloned().collect());
            Ok((under, changed))
        }
    }
}

/// The filters that change what is committed. One whose name cannot be set on a command line is not among them.
fn cleaners(folder: &Path, limit: TimeLimit) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let question = ["config", "--null", "--get-regexp", r"^filter\..*\.(clean|process)$"];
    // It fails where there is none.
    let list = question::answer(folder, &question, None, limit)
        .or_else(|why| if limit.is_over() { Err(why) } else { Ok(Vec::new()) })?;
    let mut commands: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
    for entry in git_output::names(&list) {
        let end = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
        // The last one counts.
        commands.insert(entry[..end].to_vec(), end + 1 < entry.len());
    }
    let named = commands.into_iter().filter(|(_, is_set)| *is_set).filter_map(|(key, _)| {
        let last = key.iter().rposition(|byte| *byte == b'.')?;
        key.get(b"filter.".len()..last).map(<[u8]>::to_vec)
    });
    Ok(named.filter(|name| !name.contains(&b'=')).collect())
}

/// Whether it cleans every one of these files; nothing is written.
fn works(
    writer: &GitWriter<'_>,
    place: &FolderInTree,
    name: &[u8],
    paths: &[Vec<u8>],
    limit: TimeLimit,
) -> bool {
    let from_root = paths.iter().map(|path| [place.prefix.as_slice(), path].concat());
    let input: Vec<u8> = from_root.flat_map(|path| quoted(&path)).collect();
    let required = setting(name, "required=true");
    let mut trial = writer.clone();
    trial.set([required]);
    let command = trial.command_in(&place.root, &["hash-object", "--stdin-paths"]);
    child::run(command, Terms { input: Some(input), ..Terms::within(limit.left()) }).succeeded()
}

fn setting(name: &[u8], what: &str) -> OsString {
    OsStr::from_bytes(&[b"filter.", name, b".", what.as_bytes()].concat()).to_owned()
}
