//! Checks Plimsoll's own programs: whether all are installed, executable and of the same build.

use super::{Finding, Section};
use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::text::count_with_noun;
use std::collections::BTreeMap;

/// The result of running a program for its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStatus {
    Missing,
    /// It exists and is not executable.
    NotExecutable,
    /// It does not start, or does not report a version.
    NoVersion,
    /// It reports this build.
    KnownBuild(BuildInfo),
    /// A different file from the program of the same name next to this one. It was not run.
    DifferentFile,
}

/// A program that a settings file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredProgram {
    /// The program as written in the file.
    pub name: String,
    pub settings_file: String,
    /// The result of running it for its version.
    pub status: ProgramStatus,
    /// True for an entry shared by a team, which does nothing if the program is missing.
    pub is_guarded: bool,
}

/// An entry of the user's own settings that a client with a different PATH cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnstartedEntry {
    /// The program as written in the file.
    pub name: String,
    pub settings_file: String,
    pub failure: StartFailure,
}

/// Why an entry does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFailure {
    /// It names the program without its folder.
    BareName,
    /// The program does not respond when started with an empty PATH.
    NoResponse,
}

#[derive(Debug, Clone)]
pub struct ProgramFacts {
    /// The build of this program.
    pub own_build: BuildInfo,
    /// The folder that contains this program.
    pub own_folder: String,
    /// The programs expected next to this one. An optional program is included if it exists.
    pub sibling_programs: Vec<(String, ProgramStatus)>,
    /// Programs that settings name and that are elsewhere or missing.
    pub configured_programs: Vec<ConfiguredProgram>,
    /// Entries of the user's own settings that do not start with every PATH.
    pub unstarted_entries: Vec<UnstartedEntry>,
    /// The folder to add to the PATH for typing `plimsoll`.
    pub command_folder: String,
    /// Every `plimsoll` on the PATH, in order. One inside the project is not run.
    pub programs_on_path: Vec<(String, ProgramStatus)>,
    /// True if the first of them is this program.
    pub is_first_on_path: bool,
}

pub(super) fn check_programs(facts: &ProgramFacts) -> Section {
    let mut findings: Vec<Finding> =
        facts.sibling_programs.iter().filter_map(|program| check_sibling_program(facts, program)).collect();
    findings.extend(
        facts.configured_programs.iter().filter_map(|program| check_configured_program(facts, program)),
    );
    findings.extend(check_unstarted_entries(facts));
    findings.extend(check_path(facts));
    let programs_text = count_with_noun(facts.sibling_programs.len() + 1, "program");
    Section::new(
        "Programs",
        format!("{} ({programs_text} in {})", facts.own_build.version, facts.own_folder),
        findings,
    )
}

const INIT_AGAIN_ADVICE: &str =
    "run `plimsoll init` again with the option of those settings (--user, --local)";
const INSTALL_TOGETHER_ADVICE: &str =
    "install all programs of one build together, in the way in which you installed plimsoll";

fn check_sibling_program(facts: &ProgramFacts, (name, status): &(String, ProgramStatus)) -> Option<Finding> {
    let path = format!("{}/{name}", facts.own_folder);
    Some(finding_for_status(&facts.own_build, name, status)?.with_path(path))
}

fn check_configured_program(facts: &ProgramFacts, program: &ConfiguredProgram) -> Option<Finding> {
    let finding = match &program.status {
        ProgramStatus::Missing if program.is_guarded => Finding::warning(
            "settings.silent_program",
            format!("the hooks for everybody do nothing here: {} is not on the PATH", program.name),
            "run `plimsoll init` to have hooks of your own, or add the folder of the programs to the PATH",
        ),
        ProgramStatus::Missing => Finding::problem(
            "settings.missing_program",
            format!("the settings name {}, which does not exist", program.name),
            INIT_AGAIN_ADVICE,
        ),
        status => finding_for_status(&facts.own_build, &program.name, status)?,
    };
    Some(finding.with_path(program.settings_file.clone()))
}

/// Returns one finding for each file with bare names, and one for each program that does not start.
fn check_unstarted_entries(facts: &ProgramFacts) -> Vec<Finding> {
    let has_bare_name = |entry: &&UnstartedEntry| entry.failure == StartFailure::BareName;
    let mut bare_name_counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in facts.unstarted_entries.iter().filter(has_bare_name) {
        *bare_name_counts.entry(&entry.settings_file).or_default() += 1;
    }
    let bare_name_findings = bare_name_counts.into_iter().map(|(file, count)| {
        let programs_text = count_with_noun(count, "program");
        let message = format!(
            "the settings name {programs_text} without the folder: a client with another PATH (of an editor, the desktop, cron) does not find them"
        );
        Finding::warning("settings.bare_name", message, INIT_AGAIN_ADVICE).with_path(file)
    });
    let silent_findings = facts.unstarted_entries.iter().filter(|entry| !has_bare_name(entry)).map(|one| {
        let message = format!("the settings name {}, which does not start with an empty PATH", one.name);
        Finding::problem("settings.does_not_start", message, INIT_AGAIN_ADVICE)
            .with_path(one.settings_file.as_str())
    });
    bare_name_findings.chain(silent_findings).collect()
}

/// Returns the finding for a program, compared with this program's build; `None` if it is fine.
pub(super) fn finding_for_status(
    own_build: &BuildInfo,
    name: &str,
    status: &ProgramStatus,
) -> Option<Finding> {
    match status {
        ProgramStatus::Missing => {
            Some(Finding::problem("programs.missing", format!("{name} is missing"), INSTALL_TOGETHER_ADVICE))
        }
        ProgramStatus::NotExecutable => Some(Finding::problem(
            "programs.not_executable",
            format!("{name} is not executable"),
            "`chmod +x` it, and check whether its file system is mounted noexec",
        )),
        ProgramStatus::NoVersion => Some(Finding::problem(
            "programs.silent",
            format!("{name} does not start, or is too old to report its version"),
            INSTALL_TOGETHER_ADVICE,
        )),
        ProgramStatus::KnownBuild(build) if build.version != own_build.version => Some(Finding::warning(
            "programs.other_version",
            format!("{name} is {}, and plimsoll is {}", build.version, own_build.version),
            INSTALL_TOGETHER_ADVICE,
        )),
        ProgramStatus::KnownBuild(build) if !build.may_be_same_build(own_build) => Some(Finding::warning(
            "programs.other_build",
            format!("{name} is of another build than plimsoll: {build}, and {own_build}"),
            INSTALL_TOGETHER_ADVICE,
        )),
        ProgramStatus::DifferentFile => Some(Finding::warning(
            "programs.other_version",
            format!("{name} is not the program next to plimsoll: it may be another version"),
            "run `plimsoll init` again with the option of those settings (--user, --local), or install all programs together",
        )),
        ProgramStatus::KnownBuild(_) => None,
    }
}

fn check_path(facts: &ProgramFacts) -> Option<Finding> {
    let describe_program = |(path, status): &(String, ProgramStatus)| match status {
        ProgramStatus::KnownBuild(build) if *build != facts.own_build => format!("{path}, {build}"),
        ProgramStatus::NoVersion => format!("{path}, which does not report its version"),
        _ => path.clone(),
    };
    let all_on_path = || facts.programs_on_path.iter().map(describe_program).collect::<Vec<_>>().join("; ");
    if facts.programs_on_path.is_empty() {
        let message = "plimsoll is not on the PATH: you cannot type it in a terminal";
        let advice = format!("add {} to the PATH", facts.command_folder);
        return Some(Finding::note("programs.not_on_path", message, &advice));
    }
    if !facts.is_first_on_path {
        let message = format!("another plimsoll comes first on the PATH: {}", all_on_path());
        return Some(Finding::warning("programs.several", message, "remove one, or put the right one first"));
    }
    (facts.programs_on_path.len() > 1).then(|| {
        let message = format!("more than one plimsoll is on the PATH: {}", all_on_path());
        Finding::note("programs.several", message, "remove the old ones")
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    fn build_of(version: &str, commit: &str) -> BuildInfo {
        BuildInfo {
            version: version.to_owned(),
            commit: Some(commit.to_owned()),
            ..BuildInfo::for_current_program("plimsoll")
        }
    }

    fn check_changed(change: impl FnOnce(&mut ProgramFacts)) -> Section {
        let known_build = || ProgramStatus::KnownBuild(build_of("0.1.0", "aaa"));
        let mut facts = ProgramFacts {
            own_build: build_of("0.1.0", "aaa"),
            own_folder: "/opt".to_owned(),
            sibling_programs: vec![("plimsoll-stop-gate".to_owned(), known_build())],
            configured_programs: Vec::new(),
            unstarted_entries: Vec::new(),
            command_folder: "/opt".to_owned(),
            programs_on_path: vec![("/opt/plimsoll".to_owned(), known_build())],
            is_first_on_path: true,
        };
        change(&mut facts);
        check_programs(&facts)
    }

    #[test]
    fn each_problem_of_a_program_has_its_finding() {
        let with_status =
            |standing: ProgramStatus| check_changed(|facts| facts.sibling_programs[0].1 = standing);
        let with_configured_program = |status: ProgramStatus| {
            let (name, file) = ("/old/plimsoll-stop-gate".to_owned(), "settings.json".to_owned());
            check_changed(|facts| {
                facts.configured_programs.push(ConfiguredProgram {
                    name,
                    settings_file: file,
                    status,
                    is_guarded: false,
                });
            })
        };
        let with_missing_guarded_program = || {
            let (name, file) = ("plimsoll-stop-gate".to_owned(), "settings.json".to_owned());
            let status = ProgramStatus::Missing;
            check_changed(|facts| {
                facts.configured_programs.push(ConfiguredProgram {
                    name,
                    settings_file: file,
                    status,
                    is_guarded: true,
                });
            })
        };
        let with_unstarted_entries = |entries: &[(&str, StartFailure)]| {
            check_changed(|facts| {
                facts.unstarted_entries = entries
                    .iter()
                    .map(|(file, failure)| UnstartedEntry {
                        name: "plimsoll-stop-gate".to_owned(),
                        settings_file: (*file).to_owned(),
                        failure: *failure,
                    })
                    .collect();
            })
        };
        let old_build = || ProgramStatus::KnownBuild(build_of("0.0.9", "aaa"));
        let other_build = || ProgramStatus::KnownBuild(build_of("0.1.0", "bbb"));
        for (section, expected) in [
            (check_changed(|_| ()), vec![]),
            (with_status(ProgramStatus::Missing), vec!["programs.missing"]),
            (with_status(ProgramStatus::NotExecutable), vec!["programs.not_executable"]),
            (with_status(ProgramStatus::NoVersion), vec!["programs.silent"]),
            (with_status(old_build()), vec!["programs.other_version"]),
            (with_status(other_build()), vec!["programs.other_build"]),
            (with_configured_program(ProgramStatus::DifferentFile), vec!["programs.other_version"]),
            (with_configured_program(ProgramStatus::Missing), vec!["settings.missing_program"]),
            (with_missing_guarded_program(), vec!["settings.silent_program"]),
            (
                with_unstarted_entries(&[("a", StartFailure::BareName), ("a", StartFailure::BareName)]),
                vec!["settings.bare_name"],
            ),
            (
                with_unstarted_entries(&[("a", StartFailure::BareName), ("b", StartFailure::BareName)]),
                vec!["settings.bare_name", "settings.bare_name"],
            ),
            (
                with_unstarted_entries(&[("a", StartFailure::NoResponse), ("a", StartFailure::NoResponse)]),
                vec!["settings.does_not_start", "settings.does_not_start"],
            ),
            (check_changed(|facts| facts.programs_on_path.clear()), vec!["programs.not_on_path"]),
            (check_changed(|facts| facts.is_first_on_path = false), vec!["programs.several"]),
            (
                check_changed(|facts| facts.programs_on_path.push(("/old/plimsoll".to_owned(), old_build()))),
                vec!["programs.several"],
            ),
        ] {
            assert_eq!(finding_codes(&section), expected, "{section:?}");
        }
    }

    #[test]
    fn another_plimsoll_on_the_path_is_reported_with_its_build() {
        let section = check_changed(|facts| {
            facts
                .programs_on_path
                .push(("/old/plimsoll".to_owned(), ProgramStatus::KnownBuild(build_of("0.0.9", "bbb"))));
        });
        let message = &section.findings[0].message;
        assert!(
            message.contains("/opt/plimsoll; /old/plimsoll, 0.0.9 (") && message.ends_with("bbb)"),
            "{message}"
        );
    }
}
