//! Files of our own beside the settings: slash commands, the agent, git's exclude file.

use super::{Change, InstallError};
use crate::install::git_exclude;
use crate::install::git_exclude::{ExcludeFile, Excluded, SLASH_COMMANDS};
use plimsoll_store::{StoreError, disk};
use std::path::{Path, PathBuf};

/// If the user deletes this line from one of our files, the file is the user's own.
const MARKER: &str = "# plimsoll: written by `plimsoll init`";

/// What happens to a file of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnFile {
    /// Written, or brought up to date.
    Written,
    /// There already, as it should be.
    Already,
    /// The user's own, or changed by the user: left alone.
    Kept,
    /// Removed.
    Removed,
    /// Not there.
    Absent,
}

pub(super) fn write_own(
    path: &Path,
    text: &str,
    changes: &mut Vec<Change>,
) -> Result<(PathBuf, OwnFile), InstallError> {
    let before = disk::read(path)?;
    let outcome = match &before {
        Some(bytes) if bytes == text.as_bytes() => OwnFile::Already,
        Some(bytes) if !String::from_utf8_lossy(bytes).contains(MARKER) => OwnFile::Kept,
        _ => OwnFile::Written,
    };
    if outcome == OwnFile::Written {
        changes.push(Change { path: path.to_owned(), before, after: Some(text.as_bytes().to_vec()) });
    }
    Ok((path.to_owned(), outcome))
}

pub(super) fn remove_own(
    path: &Path,
    is_unchanged: impl Fn(&str) -> bool,
    changes: &mut Vec<Change>,
) -> Result<(PathBuf, OwnFile), InstallError> {
    let before = disk::read(path)?;
    let outcome = match &before {
        None => OwnFile::Absent,
        Some(bytes) if std::str::from_utf8(bytes).is_ok_and(&is_unchanged) => OwnFile::Removed,
        Some(_) => OwnFile::Kept,
    };
    if outcome == OwnFile::Removed {
        changes.push(Change { path: path.to_owned(), before, after: None });
    }
    Ok((path.to_owned(), outcome))
}

/// Plans the exclude lines for the run files, and for the slash commands if they are this user's alone.
pub(super) fn plan_exclude(
    project: &Path,
    are_commands_own: bool,
    changes: &mut Vec<Change>,
) -> Result<Excluded, InstallError> {
    match git_exclude::place_of(project) {
        Some(place) => {
            let after = |now: &[u8]| {
                if are_commands_own {
                    place.with_ours(now, &SLASH_COMMANDS)
                } else {
                    place.without_lines(&place.with_ours(now, &[]), &SLASH_COMMANDS)
                }
            };
            plan_lines(&place, after, changes)
        }
        None => Ok(Excluded::NoRepository),
    }
}

pub(super) fn plan_gitignore(project: &Path, changes: &mut Vec<Change>) -> Result<Excluded, InstallError> {
    let place = git_exclude::gitignore_of(project);
    refuse_link(&place.file)?;
    plan_lines(&place, |now| place.with_ours(now, &[]), changes)
}

/// A clone may hold links: none of them makes us write a file that is not the project's.
pub(super) fn refuse_link(path: &Path) -> Result<(), InstallError> {
    let path = path.to_owned();
    if disk::is_link(&path) { Err(StoreError::NotAFile { path }.into()) } else { Ok(()) }
}

fn plan_lines(
    place: &ExcludeFile,
    after: impl Fn(&[u8]) -> Vec<u8>,
    changes: &mut Vec<Change>,
) -> Result<Excluded, InstallError> {
    let before = disk::read(&place.file)?;
    let now = before.clone().unwrap_or_default();
    let after = after(&now);
    if after == now {
        return Ok(Excluded::Already(place.file.clone()));
    }
    changes.push(Change { path: place.file.clone(), before, after: Some(after) });
    Ok(Excluded::Written(place.file.clone()))
}

pub(super) fn plan_include(
    project: &Path,
    changes: &mut Vec<Change>,
) -> Result<Option<PathBuf>, InstallError> {
    let Some(place) = git_exclude::place_of(project) else { return Ok(None) };
    plan_lines_removal(place, changes, Some)
}

/// A `.gitignore` in which nothing else is goes with our lines; git's own exclude file stays.
pub(super) fn plan_gitignore_removal(
    project: &Path,
    changes: &mut Vec<Change>,
) -> Result<Option<PathBuf>, InstallError> {
    let place = git_exclude::gitignore_of(project);
    refuse_link(&place.file)?;
    let unless_empty = |rest: Vec<u8>| (!rest.is_empty()).then_some(rest);
    plan_lines_removal(place, changes, unless_empty)
}

fn plan_lines_removal(
    place: ExcludeFile,
    changes: &mut Vec<Change>,
    kept: impl Fn(Vec<u8>) -> Option<Vec<u8>>,
) -> Result<Option<PathBuf>, InstallError> {
    let Some(now) = disk::read(&place.file)? else { return Ok(None) };
    let after = place.without_ours(&now);
    if after == now {
        return Ok(None);
    }
    changes.push(Change { path: place.file.clone(), before: Some(now), after: kept(after) });
    Ok(Some(place.file))
}
