//! Our own files other than the settings: slash commands, the agent, git's exclude file.

use super::{FileChange, InstallError};
use crate::install::git_exclude;
use crate::install::git_exclude::{ExcludeOutcome, IgnoreFile, SLASH_COMMANDS};
use plimsoll_store::{StoreError, disk};
use std::path::{Path, PathBuf};

/// If the user deletes this line from one of our files, the file is the user's own.
const MARKER: &str = "# plimsoll: written by `plimsoll init`";

/// The outcome for one of our own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnFileOutcome {
    /// Written or updated.
    Written,
    /// Already correct.
    UpToDate,
    /// Left unchanged, because it is the user's own or was changed by the user.
    Kept,
    Removed,
    Absent,
}

pub(super) fn plan_own_file(
    path: &Path,
    new_text: &str,
    changes: &mut Vec<FileChange>,
) -> Result<(PathBuf, OwnFileOutcome), InstallError> {
    let before = disk::read(path)?;
    let outcome = match &before {
        Some(bytes) if bytes == new_text.as_bytes() => OwnFileOutcome::UpToDate,
        Some(bytes) if !String::from_utf8_lossy(bytes).contains(MARKER) => OwnFileOutcome::Kept,
        _ => OwnFileOutcome::Written,
    };
    if outcome == OwnFileOutcome::Written {
        changes.push(FileChange { path: path.to_owned(), before, after: Some(new_text.as_bytes().to_vec()) });
    }
    Ok((path.to_owned(), outcome))
}

pub(super) fn plan_own_file_removal(
    path: &Path,
    is_unchanged: impl Fn(&str) -> bool,
    changes: &mut Vec<FileChange>,
) -> Result<(PathBuf, OwnFileOutcome), InstallError> {
    let before = disk::read(path)?;
    let outcome = match &before {
        None => OwnFileOutcome::Absent,
        Some(bytes) if std::str::from_utf8(bytes).is_ok_and(&is_unchanged) => OwnFileOutcome::Removed,
        Some(_) => OwnFileOutcome::Kept,
    };
    if outcome == OwnFileOutcome::Removed {
        changes.push(FileChange { path: path.to_owned(), before, after: None });
    }
    Ok((path.to_owned(), outcome))
}

/// Plans the exclude lines for the run files, and for the slash commands if only this user has them.
pub(super) fn plan_exclude_lines(
    project: &Path,
    exclude_commands: bool,
    changes: &mut Vec<FileChange>,
) -> Result<ExcludeOutcome, InstallError> {
    match git_exclude::find_exclude_file(project) {
        Some(exclude_file) => {
            let add_lines = |current_bytes: &[u8]| {
                if exclude_commands {
                    exclude_file.with_our_lines(current_bytes, &SLASH_COMMANDS)
                } else {
                    exclude_file.without_lines_for_paths(
                        &exclude_file.with_our_lines(current_bytes, &[]),
                        &SLASH_COMMANDS,
                    )
                }
            };
            plan_line_changes(&exclude_file, add_lines, changes)
        }
        None => Ok(ExcludeOutcome::NoRepository),
    }
}

pub(super) fn plan_gitignore_lines(
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<ExcludeOutcome, InstallError> {
    let gitignore = git_exclude::gitignore_file(project);
    reject_link(&gitignore.path)?;
    plan_line_changes(&gitignore, |current_bytes| gitignore.with_our_lines(current_bytes, &[]), changes)
}

/// A clone may contain links, and none of them may make us write outside the project.
pub(super) fn reject_link(path: &Path) -> Result<(), InstallError> {
    let path = path.to_owned();
    if disk::is_link(&path) { Err(StoreError::NotAFile { path }.into()) } else { Ok(()) }
}

fn plan_line_changes(
    ignore_file: &IgnoreFile,
    change_lines: impl Fn(&[u8]) -> Vec<u8>,
    changes: &mut Vec<FileChange>,
) -> Result<ExcludeOutcome, InstallError> {
    let before = disk::read(&ignore_file.path)?;
    let current_bytes = before.clone().unwrap_or_default();
    let new_bytes = change_lines(&current_bytes);
    if new_bytes == current_bytes {
        return Ok(ExcludeOutcome::UpToDate(ignore_file.path.clone()));
    }
    changes.push(FileChange { path: ignore_file.path.clone(), before, after: Some(new_bytes) });
    Ok(ExcludeOutcome::Written(ignore_file.path.clone()))
}

pub(super) fn plan_exclude_removal(
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Option<PathBuf>, InstallError> {
    let Some(exclude_file) = git_exclude::find_exclude_file(project) else { return Ok(None) };
    plan_line_removal(exclude_file, changes, Some)
}

/// Plans the removal of our lines from `.gitignore`. A file with nothing else is removed; git's own exclude
/// file always stays.
pub(super) fn plan_gitignore_removal(
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Option<PathBuf>, InstallError> {
    let gitignore = git_exclude::gitignore_file(project);
    reject_link(&gitignore.path)?;
    let none_if_empty = |remaining_bytes: Vec<u8>| (!remaining_bytes.is_empty()).then_some(remaining_bytes);
    plan_line_removal(gitignore, changes, none_if_empty)
}

fn plan_line_removal(
    ignore_file: IgnoreFile,
    changes: &mut Vec<FileChange>,
    content_to_keep: impl Fn(Vec<u8>) -> Option<Vec<u8>>,
) -> Result<Option<PathBuf>, InstallError> {
    let Some(current_bytes) = disk::read(&ignore_file.path)? else { return Ok(None) };
    let new_bytes = ignore_file.without_project_lines(&current_bytes);
    if new_bytes == current_bytes {
        return Ok(None);
    }
    changes.push(FileChange {
        path: ignore_file.path.clone(),
        before: Some(current_bytes),
        after: content_to_keep(new_bytes),
    });
    Ok(Some(ignore_file.path))
}
