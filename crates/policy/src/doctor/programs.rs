//! Our programs: there, whole, of one build.

use super::{Finding, Section};
use plimsoll_domain::build::Build;
use plimsoll_domain::text::counted;
use std::collections::BTreeMap;

/// What became of asking a program for its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is not there.
    Missing,
    /// It is there and may not be started.
    NotExecutable,
    /// It does not start, or does not know the question.
    Silent,
    /// It says that it is of this build.
    Built(Build),
    /// It is another file than the program of the same name next to us; it was not started to ask for its version.
    Other,
}

/// A program that a settings file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// As the file names it.
    pub name: String,
    /// The file.
    pub file: String,
    /// What it says of itself.
    pub standing: Standing,
    /// An entry for everybody, which does nothing where the program is missing.
    pub guarded: bool,
}

/// An entry of the user's own settings that a client with another PATH does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnstartedEntry {
    /// The program as the file names it.
    pub name: String,
    /// The file.
    pub file: String,
    /// Why.
    pub failure: StartFailure,
}

/// Why an entry does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFailure {
    /// It names the program without its folder.
    BareName,
    /// The program does not answer when it is started with an empty PATH.
    Silent,
}

/// Our programs.
#[derive(Debug, Clone)]
pub struct ProgramFacts {
    /// Our own build.
    pub own: Build,
    /// The folder that contains us.
    pub folder: String,
    /// The programs that belong beside us. An optional one is among them if it is there.
    pub beside: Vec<(String, Standing)>,
    /// Those that settings name and that are elsewhere, or nowhere.
    pub named: Vec<Named>,
    /// Entries of the user's own settings that do not start everywhere.
    pub unstarted: Vec<UnstartedEntry>,
    /// The folder that a user adds to the PATH to type `plimsoll`.
    pub command_folder: String,
    /// Every `plimsoll` on the PATH, in its order. One in the project is not asked what it is.
    pub on_path: Vec<(String, Standing)>,
    /// True when the first of them is we.
    pub first_is_we: bool,
}

pub(super) fn section(facts: &ProgramFacts) -> Section {
    let mut findings: Vec<Finding> = facts.beside.iter().filter_map(|one| beside(facts, one)).collect();
    findings.extend(facts.named.iter().filter_map(|one| named(facts, one)));
    findings.extend(unstarted(facts));
    findings.extend(on_path(facts));
    let programs = counted(facts.beside.len() + 1, "program");
    Section::new("Programs", format!("{} ({programs} in {})", facts.own.version, facts.folder), findings)
}

const INIT_AGAIN: &str = "run `plimsoll init` again with the option of those settings (--user, --local)";
const TOGETHER: &str =
    "install all programs of one build together, in the way in which you installed plimsoll";

fn beside(facts: &ProgramFacts, (name, standing): &(String, Standing)) -> Option<Finding> {
    let place = format!("{}/{name}", facts.folder);
    Some(of_standing(&facts.own, name, standing)?.at(place))
}

fn named(facts: &ProgramFacts, one: &Named) -> Option<Finding> {
    let finding = match &one.standing {
        Standing::Missing if one.guarded => Finding::warning(
            "settings.silent_program",
            format!("the hooks for everybody do nothing here: {} is not on the PATH", one.name),
            "run `plimsoll init` to have hooks of your own, or add the folder of the programs to the PATH",
        ),
        Standing::Missing => Finding::problem(
            "settings.missing_program",
            format!("the settings name {}, which does not exist", one.name),
            INIT_AGAIN,
        ),
        standing => of_standing(&facts.own, &one.name, standing)?,
    };
    Some(finding.at(one.file.clone()))
}

/// One finding for each file with bare names, and one for each program that does not start.
fn unstarted(facts: &ProgramFacts) -> Vec<Finding> {
    let is_bare = |one: &&UnstartedEntry| one.failure == StartFailure::BareName;
    let mut bare: BTreeMap<&str, usize> = BTreeMap::new();
    for one in facts.unstarted.iter().filter(is_bare) {
        *bare.entry(&one.file).or_default() += 1;
    }
    let bare = bare.into_iter().map(|(file, count)| {
        let programs = counted(count, "program");
        let what = format!(
            "the settings name {programs} without the folder: a client with another PATH (of an editor, the desktop, cron) does not find them"
        );
        Finding::warning("settings.bare_name", what, INIT_AGAIN).at(file)
    });
    let silent = facts.unstarted.iter().filter(|one| !is_bare(one)).map(|one| {
        let what = format!("the settings name {}, which does not start with an empty PATH", one.name);
        Finding::problem("settings.does_not_start", what, INIT_AGAIN).at(one.file.as_str())
    });
    bare.chain(silent).collect()
}

/// What is wrong with a program, beside our own build.
pub(super) fn of_standing(ours: &Build, name: &str, standing: &Standing) -> Option<Finding> {
    match standing {
        Standing::Missing => {
            Some(Finding::problem("programs.missing", format!("{name} is missing"), TOGETHER))
        }
        Standing::NotExecutable => Some(Finding::problem(
            "programs.not_executable",
            format!("{name} is not executable"),
            "`chmod +x` it, and check whether its file system is mounted noexec",
        )),
        Standing::Silent => Some(Finding::problem(
            "programs.silent",
            format!("{name} does not start, or is too old to report its version"),
            TOGETHER,
        )),
        Standing::Built(build) if build.version != ours.version => Some(Finding::warning(
            "programs.other_version",
            format!("{name} is {}, and plimsoll is {}", build.version, ours.version),
            TOGETHER,
        )),
        Standing::Built(build) if !build.may_be_of_one_build(ours) => Some(Finding::warning(
            "programs.other_build",
            format!("{name} is of another build than plimsoll: {build}, and {ours}"),
            TOGETHER,
        )),
        Standing::Other => Some(Finding::warning(
            "programs.other_version",
            format!("{name} is not the program next to plimsoll: it may be another version"),
            "run `plimsoll init` again with the option of those settings (--user, --local), or install all programs together",
        )),
        Standing::Built(_) => None,
    }
}

fn on_path(facts: &ProgramFacts) -> Option<Finding> {
    let words = |(path, standing): &(String, Standing)| match standing {
        Standing::Built(build) if *build != facts.own => format!("{path}, {build}"),
        Standing::Silent => format!("{path}, which does not report its version"),
        _ => path.clone(),
    };
    let others = || facts.on_path.iter().map(words).collect::<Vec<_>>().join("; ");
    if facts.on_path.is_empty() {
        let what = "plimsoll is not on the PATH: you cannot type it in a terminal";
        let todo = format!("add {} to the PATH", facts.command_folder);
        return Some(Finding::note("programs.not_on_path", what, &todo));
    }
    if !facts.first_is_we {
        let what = format!("another plimsoll comes first on the PATH: {}", others());
        return Some(Finding::warning("programs.several", what, "remove one, or put the right one first"));
    }
    (facts.on_path.len() > 1).then(|| {
        let what = format!("more than one plimsoll is on the PATH: {}", others());
        Finding::note("programs.several", what, "remove the old ones")
    })
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    fn of(version: &str, commit: &str) -> Build {
        Build { version: version.to_owned(), commit: Some(commit.to_owned()), ..Build::own("plimsoll") }
    }

    fn facts(change: impl FnOnce(&mut ProgramFacts)) -> Section {
        let version = || Standing::Built(of("0.1.0", "aaa"));
        let mut facts = ProgramFacts {
            own: of("0.1.0", "aaa"),
            folder: "/opt".to_owned(),
            beside: vec![("plimsoll-stop-gate".to_owned(), version())],
            named: Vec::new(),
            unstarted: Vec::new(),
            command_folder: "/opt".to_owned(),
            on_path: vec![("/opt/plimsoll".to_owned(), version())],
            first_is_we: true,
        };
        change(&mut facts);
        section(&facts)
    }

    #[test]
    fn what_is_wrong_with_a_program_is_named_and_nothing_else() {
        let standing = |standing: Standing| facts(|facts| facts.beside[0].1 = standing);
        let named = |standing: Standing| {
            let (name, file) = ("/old/plimsoll-stop-gate".to_owned(), "settings.json".to_owned());
            facts(|facts| facts.named.push(Named { name, file, standing, guarded: false }))
        };
        let guarded = || {
            let (name, file) = ("plimsoll-stop-gate".to_owned(), "settings.json".to_owned());
            let standing = Standing::Missing;
            facts(|facts| facts.named.push(Named { name, file, standing, guarded: true }))
        };
        let unstarted = |all: &[(&str, StartFailure)]| {
            facts(|facts| {
                facts.unstarted = all
                    .iter()
                    .map(|(file, failure)| UnstartedEntry {
                        name: "plimsoll-stop-gate".to_owned(),
                        file: (*file).to_owned(),
                        failure: *failure,
                    })
                    .collect();
            })
        };
        let old = || Standing::Built(of("0.0.9", "aaa"));
        let rebuilt = || Standing::Built(of("0.1.0", "bbb"));
        for (section, expected) in [
            (facts(|_| ()), vec![]),
            (standing(Standing::Missing), vec!["programs.missing"]),
            (standing(Standing::NotExecutable), vec!["programs.not_executable"]),
            (standing(Standing::Silent), vec!["programs.silent"]),
            (standing(old()), vec!["programs.other_version"]),
            (standing(rebuilt()), vec!["programs.other_build"]),
            (named(Standing::Other), vec!["programs.other_version"]),
            (named(Standing::Missing), vec!["settings.missing_program"]),
            (guarded(), vec!["settings.silent_program"]),
            (
                unstarted(&[("a", StartFailure::BareName), ("a", StartFailure::BareName)]),
                vec!["settings.bare_name"],
            ),
            (
                unstarted(&[("a", StartFailure::BareName), ("b", StartFailure::BareName)]),
                vec!["settings.bare_name", "settings.bare_name"],
            ),
            (
                unstarted(&[("a", StartFailure::Silent), ("a", StartFailure::Silent)]),
                vec!["settings.does_not_start", "settings.does_not_start"],
            ),
            (facts(|facts| facts.on_path.clear()), vec!["programs.not_on_path"]),
            (facts(|facts| facts.first_is_we = false), vec!["programs.several"]),
            (
                facts(|facts| facts.on_path.push(("/old/plimsoll".to_owned(), old()))),
                vec!["programs.several"],
            ),
        ] {
            assert_eq!(codes(&section), expected, "{section:?}");
        }
    }

    #[test]
    fn another_one_on_the_path_is_named_with_its_build() {
        let section = facts(|facts| {
            facts.on_path.push(("/old/plimsoll".to_owned(), Standing::Built(of("0.0.9", "bbb"))));
        });
        let what = &section.findings[0].what;
        assert!(what.contains("/opt/plimsoll; /old/plimsoll, 0.0.9 (") && what.ends_with("bbb)"), "{what}");
    }
}
