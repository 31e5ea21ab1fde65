//! Files that a project shares with everybody who works in it: preferences and ignore rules. Hooks are each
//! user's own.

use super::files::{OwnFileOutcome, plan_own_file, plan_own_file_removal};
use super::git_exclude::ExcludeOutcome;
use super::install_paths::InstallPaths;
use super::{FileChange, InstallError, InstallPlan, InstallScope, files};
use std::path::{Path, PathBuf};

/// An empty file, as a place for preferences.
const NO_PREFERENCES: &str = "{}\n";

/// The files that are to be committed.
#[derive(Debug)]
pub struct TeamFiles {
    pub preferences: (PathBuf, OwnFileOutcome),
    pub gitignore: ExcludeOutcome,
}

/// Plans the shared files, without hooks.
///
/// # Errors
/// If the project's settings are the user's own, or a file cannot be read.
pub fn plan_team_files(project: &Path) -> Result<InstallPlan<TeamFiles>, InstallError> {
    let paths = InstallPaths::for_scope(InstallScope::Project, project)?;
    let mut changes = Vec::new();
    let report = plan_preferences_and_gitignore(&paths, project, &mut changes)?;
    Ok(InstallPlan {
        changes,
        links: Vec::new(),
        report,
        files: paths.all_files(InstallScope::Project, project),
    })
}

pub(super) fn plan_preferences_and_gitignore(
    paths: &InstallPaths,
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<TeamFiles, InstallError> {
    files::reject_link(&paths.preferences_file)?;
    Ok(TeamFiles {
        preferences: plan_own_file(&paths.preferences_file, NO_PREFERENCES, changes)?,
        gitignore: files::plan_gitignore_lines(project, changes)?,
    })
}

/// Plans the removal of the shared files' parts that are only ours.
pub(super) fn plan_preferences_and_gitignore_removal(
    paths: &InstallPaths,
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Vec<PathBuf>, InstallError> {
    files::reject_link(&paths.preferences_file)?;
    let (preferences, outcome) =
        plan_own_file_removal(&paths.preferences_file, |text| text == NO_PREFERENCES, changes)?;
    let removed = (outcome == OwnFileOutcome::Removed).then_some(preferences);
    Ok(removed.into_iter().chain(files::plan_gitignore_removal(project, changes)?).collect())
}
