//! Where an optional program of ours is: beside the running program, else on the PATH, as git and cargo find theirs. Never in
//! the project: it finds keys in its environment, and a clone could have brought a program of that name.

use plimsoll_store::layout::repository;
use plimsoll_store::{Project, disk, environment};
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

/// The program that talks to Linear.
pub const LINEAR: &str = "plimsoll-linear";

/// The program that talks to an OpenTelemetry collector.
pub const OTEL: &str = "plimsoll-otel";

/// The program that talks to PostgreSQL.
pub const FLEET: &str = "plimsoll-fleet";

/// All of them: an installation without one of them lacks nothing else.
pub const ALL: [&str; 3] = [FLEET, LINEAR, OTEL];

/// It is not installed, or only where nobody may trust it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is neither next to plimsoll (in {}) nor on the PATH{ignored}", folder.display())]
pub struct NoProgram {
    /// Its name.
    name: &'static str,
    /// The folder of the running program.
    folder: PathBuf,
    /// What has its name and is not started.
    ignored: IgnoredPrograms,
}

/// Why a program on the PATH is not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// Its entry of the PATH is relative: another folder in each working directory.
    Relative,
    /// It is in the project.
    InProject,
}

impl NoProgram {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        "install all programs of one build together (`scripts/install.sh`, or install.sh of a release archive)"
    }
}

/// Programs on the PATH that are not started, with the reasons. Displayed as the end of a sentence; as nothing if there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredPrograms(Vec<(PathBuf, Ignored)>);

impl Display for IgnoredPrograms {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(path, why)| {
            let why = match why {
                Ignored::Relative => "a relative entry of the PATH",
                Ignored::InProject => "inside the project",
            };
            write!(formatter, "; {} is ignored: {why}", path.display())
        })
    }
}

/// Where it is.
pub fn find(project: &Project, name: &'static str) -> Result<PathBuf, NoProgram> {
    let folder = environment::own_directory().unwrap_or_default();
    // Also where that is inside the project: whoever could put it there could have replaced the program that runs.
    let beside = folder.join(name);
    if folder.is_absolute() && environment::is_executable(&beside) {
        return Ok(beside);
    }
    find_on_path(project, name).map_err(|ignored| NoProgram { name, folder, ignored })
}

/// Finds a program by an absolute entry of the PATH, outside the project; else returns those that are not trusted.
pub(crate) fn find_on_path(project: &Project, name: &str) -> Result<PathBuf, IgnoredPrograms> {
    let places = places_of(project);
    let mut ignored = Vec::new();
    for path in environment::find_programs(name) {
        match why_ignored(&path, &places) {
            None => return Ok(path),
            Some(why) => ignored.push((path, why)),
        }
    }
    Err(IgnoredPrograms(ignored))
}

/// The project's folder, and the working tree that it is in: a clone brings both.
pub(crate) fn places_of(project: &Project) -> Vec<PathBuf> {
    let root = disk::canonical(project.root());
    let tree = repository(&root).map(|(tree, _)| tree.to_owned());
    tree.into_iter().chain([root]).collect()
}

/// Returns why nobody may trust a program at this path, if there is a reason.
pub(crate) fn why_ignored(path: &Path, places: &[PathBuf]) -> Option<Ignored> {
    if !path.is_absolute() {
        return Some(Ignored::Relative);
    }
    // Both ends of a link: one from outside into the project, and one in the project that leads outside.
    let folder = path.parent().map(disk::canonical);
    let ends = [Some(disk::canonical(path)), folder];
    let is_inside = |end: &PathBuf| places.iter().any(|place| end.starts_with(place));
    ends.iter().flatten().any(is_inside).then_some(Ignored::InProject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_a_clone_can_have_brought_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let at = |relative: &str| folder.path().join(relative);
        for file in
            ["clone/.git/HEAD", "clone/bin/plimsoll-linear", "clone/below/x", "outside/plimsoll-linear"]
        {
            disk::replace(&at(file), b"x", plimsoll_store::Durability::Lazy).unwrap();
        }
        for below in ["clone/.git/objects", "clone/.git/refs"] {
            disk::create_folder(&at(below)).unwrap();
        }
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(at(from), at(to)).unwrap();
        link("clone/bin", "linked");
        link("outside/plimsoll-linear", "clone/below/plimsoll-linear");
        disk::create_folder(&at("links")).unwrap();
        link("clone/bin/plimsoll-linear", "links/plimsoll-linear");
        let inside = Some(Ignored::InProject);
        for (path, expected) in [
            ("clone/bin", inside),
            ("clone/below", inside),
            ("linked", inside),
            ("links", inside),
            ("clone/../clone/bin", inside),
            ("outside", None),
        ] {
            for root in ["clone", "clone/below"] {
                let places = places_of(&Project::at(&at(root)));
                assert_eq!(why_ignored(&at(path).join(LINEAR), &places), expected, "{path} of {root}");
            }
        }
        let places = places_of(&Project::at(&at("clone")));
        for relative in ["plimsoll-linear", "./plimsoll-linear", "../outside/plimsoll-linear"] {
            assert_eq!(why_ignored(Path::new(relative), &places), Some(Ignored::Relative));
        }
    }

    #[test]
    fn what_is_ignored_is_named_with_the_reason() {
        let error = NoProgram {
            name: LINEAR,
            folder: "/opt/bin".into(),
            ignored: IgnoredPrograms(vec![
                ("bin/plimsoll-linear".into(), Ignored::Relative),
                ("/p/plimsoll-linear".into(), Ignored::InProject),
            ]),
        };
        assert_eq!(
            error.to_string(),
            "plimsoll-linear is neither next to plimsoll (in /opt/bin) nor on the PATH; bin/plimsoll-linear is ignored: \
             a relative entry of the PATH; /p/plimsoll-linear is ignored: inside the project"
        );
    }
}
