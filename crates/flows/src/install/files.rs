//! Plans changes of files other than the settings: slash commands, the agent, and git's ignore files.

use super::{FileChange, InstallError};
use crate::install::git_exclude;
use crate::install::git_exclude::{ExcludeOutcome, IgnoreFile, SLASH_COMMAND_PATHS};
use plimsoll_store::{StoreError, disk};
use std::path::{Path, PathBuf};

/// Identifies a file as ours. A file without this line belongs to the user and is not overwritten.
const OUR_FILE_MARKER: &str = "# plimsoll: written by `plimsoll init`";

/// The change that a plan makes to a file or link that we install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledFileOutcome {
    /// Written or updated.
    Written,
    /// Already correct.
    UpToDate,
    /// Left unchanged, because it belongs to the user or was changed by the user.
    Kept,
    Removed,
    Absent,
}

pub(super) fn plan_file_unless_user_owned(
    path: &Path,
    new_text: &str,
    changes: &mut Vec<FileChange>,
) -> Result<(PathBuf, InstalledFileOutcome), InstallError> {
    let before = disk::read(path)?;
    let outcome = match &before {
        Some(bytes) if bytes == new_text.as_bytes() => InstalledFileOutcome::UpToDate,
        Some(bytes) if !String::from_utf8_lossy(bytes).contains(OUR_FILE_MARKER) => {
            InstalledFileOutcome::Kept
        }
        _ => InstalledFileOutcome::Written,
    };
    if outcome == InstalledFileOutcome::Written {
        changes.push(FileChange { path: path.to_owned(), before, after: Some(new_text.as_bytes().to_vec()) });
    }
    Ok((path.to_owned(), outcome))
}

pub(super) fn plan_file_removal_if_unchanged(
    path: &Path,
    is_unchanged: impl Fn(&str) -> bool,
    changes: &mut Vec<FileChange>,
) -> Result<(PathBuf, InstalledFileOutcome), InstallError> {
    let before = disk::read(path)?;
    let outcome = match &before {
        None => InstalledFileOutcome::Absent,
        Some(bytes) if std::str::from_utf8(bytes).is_ok_and(&is_unchanged) => InstalledFileOutcome::Removed,
        Some(_) => InstalledFileOutcome::Kept,
    };
    if outcome == InstalledFileOutcome::Removed {
        changes.push(FileChange { path: path.to_owned(), before, after: None });
    }
    Ok((path.to_owned(), outcome))
}

/// Plans the lines in git's exclude file for the run files. Adds the lines for the slash commands, or removes
/// them if `exclude_slash_commands` is false.
pub(super) fn plan_exclude_lines_with_or_without_commands(
    project: &Path,
    exclude_slash_commands: bool,
    changes: &mut Vec<FileChange>,
) -> Result<ExcludeOutcome, InstallError> {
    match git_exclude::find_exclude_file(project) {
        Some(exclude_file) => {
            let update_lines = |current_bytes: &[u8]| {
                if exclude_slash_commands {
                    exclude_file.with_our_lines(current_bytes, &SLASH_COMMAND_PATHS)
                } else {
                    exclude_file.without_lines_for_paths(
                        &exclude_file.with_our_lines(current_bytes, &[]),
                        &SLASH_COMMAND_PATHS,
                    )
                }
            };
            plan_ignore_file_change(&exclude_file, update_lines, changes)
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
    plan_ignore_file_change(&gitignore, |current_bytes| gitignore.with_our_lines(current_bytes, &[]), changes)
}

/// Returns an error if the path is a link. A clone may contain links, and following one could write outside
/// the project.
pub(super) fn reject_link(path: &Path) -> Result<(), InstallError> {
    let path = path.to_owned();
    if disk::is_link(&path) { Err(StoreError::NotAFile { path }.into()) } else { Ok(()) }
}

fn plan_ignore_file_change(
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

pub(super) fn plan_exclude_lines_removal(
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Option<PathBuf>, InstallError> {
    let Some(exclude_file) = git_exclude::find_exclude_file(project) else { return Ok(None) };
    plan_project_lines_removal(exclude_file, changes, Some)
}

/// Plans the removal of our lines from `.gitignore`. The file itself is removed if it becomes empty; git's own
/// exclude file is always kept.
pub(super) fn plan_gitignore_lines_or_empty_file_removal(
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Option<PathBuf>, InstallError> {
    let gitignore = git_exclude::gitignore_file(project);
    reject_link(&gitignore.path)?;
    let none_if_empty = |remaining_bytes: Vec<u8>| (!remaining_bytes.is_empty()).then_some(remaining_bytes);
    plan_project_lines_removal(gitignore, changes, none_if_empty)
}

fn plan_project_lines_removal(
    ignore_file: IgnoreFile,
    changes: &mut Vec<FileChange>,
    new_content_or_none: impl Fn(Vec<u8>) -> Option<Vec<u8>>,
) -> Result<Option<PathBuf>, InstallError> {
    let Some(current_bytes) = disk::read(&ignore_file.path)? else { return Ok(None) };
    let new_bytes = ignore_file.without_project_lines_or_all_at_root(&current_bytes);
    if new_bytes == current_bytes {
        return Ok(None);
    }
    changes.push(FileChange {
        path: ignore_file.path.clone(),
        before: Some(current_bytes),
        after: new_content_or_none(new_bytes),
    });
    Ok(Some(ignore_file.path))
}
