//! Finds the optional programs of Plimsoll: next to the running program, otherwise on the PATH, as git and
//! cargo find theirs. Programs in the project are never started, because a clone could contain a program of that
//! name, and the environment contains keys.

use plimsoll_store::layout::find_repository;
use plimsoll_store::{Project, disk, environment};
use plimsoll_system::paths::program_path;
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

/// The program that sends notes to Linear.
pub const LINEAR_PROGRAM: &str = "plimsoll-linear";

/// The program that sends telemetry to an OpenTelemetry collector.
pub const OTEL_PROGRAM: &str = "plimsoll-otel";

/// The program that connects to PostgreSQL.
pub const FLEET_PROGRAM: &str = "plimsoll-fleet";

/// All optional programs. If one of them is not installed, only its feature is missing.
pub const OPTIONAL_PROGRAMS: [&str; 3] = [FLEET_PROGRAM, LINEAR_PROGRAM, OTEL_PROGRAM];

/// The program is not installed, or only at paths that are not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is neither next to plimsoll (in {}) nor on the PATH{ignored}", folder.display())]
pub struct ProgramNotFound {
    name: &'static str,
    /// The folder of the running program.
    folder: PathBuf,
    /// Programs of that name that were found and are not trusted.
    ignored: IgnoredPrograms,
}

/// The reason why a program on the PATH is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoredProgramReason {
    /// The entry of the PATH is relative, so its folder depends on the working directory.
    Relative,
    InProject,
}

impl ProgramNotFound {
    /// Returns how the user can install the program.
    pub fn install_hint(&self) -> &'static str {
        "install all programs of one build together (`scripts/install.sh`, or install.sh of a release archive)"
    }
}

/// Programs on the PATH that are not trusted, with the reasons. `Display` writes the end of a sentence, or
/// nothing if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredPrograms(Vec<(PathBuf, IgnoredProgramReason)>);

impl Display for IgnoredPrograms {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(path, reason)| {
            let reason_text = match reason {
                IgnoredProgramReason::Relative => "a relative entry of the PATH",
                IgnoredProgramReason::InProject => "inside the project",
            };
            write!(formatter, "; {} is ignored: {reason_text}", path.display())
        })
    }
}

/// Finds an optional program next to the running program, otherwise on the PATH outside the project.
pub fn find_sibling_or_trusted_program(
    project: &Project,
    name: &'static str,
) -> Result<PathBuf, ProgramNotFound> {
    let folder = environment::executable_folder().unwrap_or_default();
    // Accepted even if that folder is inside the project: anyone who can write there could also replace the
    // running program.
    let sibling_path = program_path(&folder, name);
    if folder.is_absolute() && environment::is_executable(&sibling_path) {
        return Ok(sibling_path);
    }
    find_trusted_program_on_path(project, name).map_err(|ignored| ProgramNotFound { name, folder, ignored })
}

/// Finds a program outside the project through an absolute entry of the PATH. If there is none, the error lists
/// the programs that are not trusted.
pub(crate) fn find_trusted_program_on_path(
    project: &Project,
    name: &str,
) -> Result<PathBuf, IgnoredPrograms> {
    let project_folders = project_root_and_working_tree(project);
    let mut ignored = Vec::new();
    for path in environment::find_all_programs(name) {
        match reason_if_relative_or_in_project(&path, &project_folders) {
            None => return Ok(path),
            Some(reason) => ignored.push((path, reason)),
        }
    }
    Err(IgnoredPrograms(ignored))
}

/// Returns the project's root folder and the git working tree that contains it, if there is one. A clone can
/// create files in both.
pub(crate) fn project_root_and_working_tree(project: &Project) -> Vec<PathBuf> {
    let root = disk::canonicalize_or_keep(project.root());
    let working_tree = find_repository(&root).map(|(tree, _)| tree.to_owned());
    working_tree.into_iter().chain([root]).collect()
}

/// Returns the reason not to trust a program at this path, if there is one.
pub(crate) fn reason_if_relative_or_in_project(
    path: &Path,
    project_folders: &[PathBuf],
) -> Option<IgnoredProgramReason> {
    if !path.is_absolute() {
        return Some(IgnoredProgramReason::Relative);
    }
    // A link outside may lead into the project, and a link in the project may lead outside.
    let is_in_project = project_folders.iter().any(|project_folder| disk::is_inside(project_folder, path));
    is_in_project.then_some(IgnoredProgramReason::InProject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_program_that_a_clone_can_contain_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path_in = |relative_path: &str| folder.path().join(relative_path);
        for file in
            ["clone/.git/HEAD", "clone/bin/plimsoll-linear", "clone/below/x", "outside/plimsoll-linear"]
        {
            disk::replace(&path_in(file), b"x", plimsoll_store::Durability::Lazy).unwrap();
        }
        for below in ["clone/.git/objects", "clone/.git/refs"] {
            disk::create_folder(&path_in(below)).unwrap();
        }
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(path_in(from), path_in(to)).unwrap();
        link("clone/bin", "linked");
        link("outside/plimsoll-linear", "clone/below/plimsoll-linear");
        disk::create_folder(&path_in("links")).unwrap();
        link("clone/bin/plimsoll-linear", "links/plimsoll-linear");
        let in_project = Some(IgnoredProgramReason::InProject);
        for (path, expected) in [
            ("clone/bin", in_project),
            ("clone/below", in_project),
            ("linked", in_project),
            ("links", in_project),
            ("clone/../clone/bin", in_project),
            ("outside", None),
        ] {
            for root in ["clone", "clone/below"] {
                let places = project_root_and_working_tree(&Project::with_local_files(&path_in(root)));
                assert_eq!(
                    reason_if_relative_or_in_project(&path_in(path).join(LINEAR_PROGRAM), &places),
                    expected,
                    "{path} of {root}"
                );
            }
        }
        let places = project_root_and_working_tree(&Project::with_local_files(&path_in("clone")));
        for relative in ["plimsoll-linear", "./plimsoll-linear", "../outside/plimsoll-linear"] {
            assert_eq!(
                reason_if_relative_or_in_project(Path::new(relative), &places),
                Some(IgnoredProgramReason::Relative)
            );
        }
    }

    #[test]
    fn ignored_programs_are_listed_with_their_reasons() {
        let error = ProgramNotFound {
            name: LINEAR_PROGRAM,
            folder: "/opt/bin".into(),
            ignored: IgnoredPrograms(vec![
                ("bin/plimsoll-linear".into(), IgnoredProgramReason::Relative),
                ("/p/plimsoll-linear".into(), IgnoredProgramReason::InProject),
            ]),
        };
        assert_eq!(
            error.to_string(),
            "plimsoll-linear is neither next to plimsoll (in /opt/bin) nor on the PATH; bin/plimsoll-linear is ignored: \
             a relative entry of the PATH; /p/plimsoll-linear is ignored: inside the project"
        );
    }
}
