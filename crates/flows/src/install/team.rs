//! What a project holds for everybody who works in it: preferences and ignore rules. Hooks are each user's own.

use super::files::{OwnFile, remove_own, write_own};
use super::git_exclude::Excluded;
use super::places::Places;
use super::{Change, InstallError, Plan, Scope, files};
use std::path::{Path, PathBuf};

/// No preference, and the place for them.
const NO_PREFERENCES: &str = "{}\n";

/// The files that are to be committed.
#[derive(Debug)]
pub struct TeamFiles {
    /// The project's preferences.
    pub preferences: (PathBuf, OwnFile),
    /// The project's `.gitignore`.
    pub ignored: Excluded,
}

/// Plans the files for everybody, without hooks.
///
/// # Errors
/// Where the project's settings are the user's own, and where a file cannot be read.
pub fn plan_team_files(project: &Path) -> Result<Plan<TeamFiles>, InstallError> {
    let places = Places::of(Scope::Project, project)?;
    let mut changes = Vec::new();
    let report = plan(&places, project, &mut changes)?;
    Ok(Plan { changes, links: Vec::new(), report, files: places.files(Scope::Project, project) })
}

pub(super) fn plan(
    places: &Places,
    project: &Path,
    changes: &mut Vec<Change>,
) -> Result<TeamFiles, InstallError> {
    files::refuse_link(&places.preferences)?;
    Ok(TeamFiles {
        preferences: write_own(&places.preferences, NO_PREFERENCES, changes)?,
        ignored: files::plan_gitignore(project, changes)?,
    })
}

/// What of them is ours alone goes.
pub(super) fn plan_removal(
    places: &Places,
    project: &Path,
    changes: &mut Vec<Change>,
) -> Result<Vec<PathBuf>, InstallError> {
    files::refuse_link(&places.preferences)?;
    let (preferences, outcome) = remove_own(&places.preferences, |text| text == NO_PREFERENCES, changes)?;
    let removed = (outcome == OwnFile::Removed).then_some(preferences);
    Ok(removed.into_iter().chain(files::plan_gitignore_removal(project, changes)?).collect())
}
