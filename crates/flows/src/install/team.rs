//! Files that a project shares with its team: preferences and ignore rules. Each user installs the hooks.

use super::files::{InstalledFileOutcome, plan_file_removal_if_unchanged, plan_file_unless_user_owned};
use super::git_exclude::ExcludeOutcome;
use super::install_paths::InstallPaths;
use super::{FileChange, InstallError, InstallPlan, InstallScope, files};
use std::path::{Path, PathBuf};

/// The content of a preferences file without preferences.
const NO_PREFERENCES: &str = "{}\n";

/// The files that the user should commit.
#[derive(Debug)]
pub struct TeamFiles {
    pub preferences: (PathBuf, InstalledFileOutcome),
    pub gitignore: ExcludeOutcome,
}

/// Plans the files for the team, without hooks: preferences and `.gitignore`.
///
/// # Errors
/// If the project is the home folder, whose settings are the user's own, or a file cannot be read.
pub fn plan_team_preferences_and_gitignore(project: &Path) -> Result<InstallPlan<TeamFiles>, InstallError> {
    let paths = InstallPaths::for_scope(InstallScope::Project, project)?;
    let mut changes = Vec::new();
    let report = plan_preferences_and_gitignore(&paths, project, &mut changes)?;
    Ok(InstallPlan {
        changes,
        links: Vec::new(),
        emptied_folders: Vec::new(),
        report,
        files_with_leftover_temporary_files: paths.written_or_removed_files(InstallScope::Project, project),
    })
}

pub(super) fn plan_preferences_and_gitignore(
    paths: &InstallPaths,
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<TeamFiles, InstallError> {
    files::reject_link(&paths.preferences_file)?;
    Ok(TeamFiles {
        preferences: plan_file_unless_user_owned(&paths.preferences_file, NO_PREFERENCES, changes)?,
        gitignore: files::plan_gitignore_lines(project, changes)?,
    })
}

/// Plans the removal of the preferences file, if it has no preferences, and of our lines in `.gitignore`.
/// Returns the paths of the changed files.
pub(super) fn plan_preferences_and_gitignore_removal(
    paths: &InstallPaths,
    project: &Path,
    changes: &mut Vec<FileChange>,
) -> Result<Vec<PathBuf>, InstallError> {
    files::reject_link(&paths.preferences_file)?;
    let (preferences, outcome) =
        plan_file_removal_if_unchanged(&paths.preferences_file, |text| text == NO_PREFERENCES, changes)?;
    let removed = (outcome == InstalledFileOutcome::Removed).then_some(preferences);
    Ok(removed
        .into_iter()
        .chain(files::plan_gitignore_lines_or_empty_file_removal(project, changes)?)
        .collect())
}
