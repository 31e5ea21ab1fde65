//! Checks whether all of Plimsoll's programs are installed, executable and of the same build.

use super::{Finding, Section};
use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::text::count_with_noun;
use std::collections::BTreeMap;

/// The result of running a program with `--version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStatus {
    Missing,
    /// It exists but is not executable.
    NotExecutable,
    /// It does not start, or does not report a version.
    NoVersionReported,
    /// The build that it reports.
    ReportedBuild(BuildInfo),
    /// Not the same file as the program of this name in this program's folder. It was not run.
    DifferentFile,
}

/// A program that a settings file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredProgram {
    /// The program as written in the file.
    pub name: String,
    pub settings_file: String,
    /// The result of running it with `--version`.
    pub status: ProgramStatus,
    /// True for an entry shared by a team, which does nothing if the program is missing.
    pub is_team_entry: bool,
}

/// An entry of the user settings that a client with a different PATH cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryThatFailsWithoutPath {
    /// The program as written in the file.
    pub name: String,
    pub settings_file: String,
    pub failure: StartFailure,
}

/// Why an entry does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFailure {
    /// The entry names the program without its folder.
    BareName,
    /// The program does not respond when started with an empty PATH.
    NoResponse,
}

#[derive(Debug, Clone)]
pub struct ProgramInfo {
    /// The build of this program.
    pub current_build: BuildInfo,
    /// The folder that contains this program.
    pub program_folder: String,
    /// The programs expected in this program's folder. An optional program is included if it exists.
    pub sibling_programs: Vec<(String, ProgramStatus)>,
    /// Programs named in settings that are in another folder or missing.
    pub configured_programs: Vec<ConfiguredProgram>,
    /// Entries of the user settings that do not start with every PATH.
    pub entries_that_fail_without_path: Vec<EntryThatFailsWithoutPath>,
    /// The folder to add to the PATH so that `plimsoll` can be run by name.
    pub command_folder: String,
    /// Every `plimsoll` on the PATH, in order. One inside the project is not run.
    pub programs_on_path: Vec<(String, ProgramStatus)>,
    /// True if the first of them is this program.
    pub is_first_on_path: bool,
}

pub(super) fn check_program_builds_and_path(programs: &ProgramInfo) -> Section {
    let mut findings: Vec<Finding> = programs
        .sibling_programs
        .iter()
        .filter_map(|program| check_sibling_program(programs, program))
        .collect();
    findings.extend(
        programs
            .configured_programs
            .iter()
            .filter_map(|program| check_program_named_in_settings(programs, program)),
    );
    findings.extend(check_entries_that_fail_without_path(programs));
    findings.extend(check_plimsoll_is_first_and_only_on_path(programs));
    let programs_text = count_with_noun(programs.sibling_programs.len() + 1, "program");
    Section::new(
        "Programs",
        format!("{} ({programs_text} in {})", programs.current_build.version, programs.program_folder),
        findings,
    )
}

const INIT_AGAIN_ADVICE: &str =
    "run `plimsoll init` again with the option of those settings (--user, --local)";
const INSTALL_TOGETHER_ADVICE: &str =
    "install all programs of one build together, in the way in which you installed plimsoll";

fn check_sibling_program(
    programs: &ProgramInfo,
    (name, status): &(String, ProgramStatus),
) -> Option<Finding> {
    let path = format!("{}/{name}", programs.program_folder);
    Some(finding_unless_same_build(&programs.current_build, name, status)?.with_path(path))
}

fn check_program_named_in_settings(programs: &ProgramInfo, program: &ConfiguredProgram) -> Option<Finding> {
    let finding = match &program.status {
        ProgramStatus::Missing if program.is_team_entry => Finding::warning(
            "settings.silent_program",
            format!("the hooks for everybody do nothing here: {} is not on the PATH", program.name),
            "run `plimsoll init` to have hooks of your own, or add the folder of the programs to the PATH",
        ),
        ProgramStatus::Missing => Finding::problem(
            "settings.missing_program",
            format!("the settings name {}, which does not exist", program.name),
            INIT_AGAIN_ADVICE,
        ),
        status => finding_unless_same_build(&programs.current_build, &program.name, status)?,
    };
    Some(finding.with_path(program.settings_file.clone()))
}

/// Returns one finding for each file with bare names, and one for each program that does not respond.
fn check_entries_that_fail_without_path(programs: &ProgramInfo) -> Vec<Finding> {
    let has_bare_name = |entry: &&EntryThatFailsWithoutPath| entry.failure == StartFailure::BareName;
    let mut bare_name_counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in programs.entries_that_fail_without_path.iter().filter(has_bare_name) {
        *bare_name_counts.entry(&entry.settings_file).or_default() += 1;
    }
    let bare_name_findings = bare_name_counts.into_iter().map(|(file, count)| {
        let programs_text = count_with_noun(count, "program");
        let message = format!(
            "the settings name {programs_text} without the folder: a client with another PATH (of an editor, the desktop, cron) does not find them"
        );
        Finding::warning("settings.bare_name", message, INIT_AGAIN_ADVICE).with_path(file)
    });
    let failed_start_findings =
        programs.entries_that_fail_without_path.iter().filter(|entry| !has_bare_name(entry)).map(|entry| {
            let message =
                format!("the settings name {}, which does not start with an empty PATH", entry.name);
            Finding::problem("settings.does_not_start", message, INIT_AGAIN_ADVICE)
                .with_path(entry.settings_file.as_str())
        });
    bare_name_findings.chain(failed_start_findings).collect()
}

/// Returns a finding if a program is missing, does not start, or is not of this program's build.
pub(super) fn finding_unless_same_build(
    current_build: &BuildInfo,
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
        ProgramStatus::NoVersionReported => Some(Finding::problem(
            "programs.silent",
            format!("{name} does not start, or is too old to report its version"),
            INSTALL_TOGETHER_ADVICE,
        )),
        ProgramStatus::ReportedBuild(build) if build.version != current_build.version => {
            Some(Finding::warning(
                "programs.other_version",
                format!("{name} is {}, and plimsoll is {}", build.version, current_build.version),
                INSTALL_TOGETHER_ADVICE,
            ))
        }
        ProgramStatus::ReportedBuild(build) if !build.may_be_same_build(current_build) => {
            Some(Finding::warning(
                "programs.other_build",
                format!("{name} is of another build than plimsoll: {build}, and {current_build}"),
                INSTALL_TOGETHER_ADVICE,
            ))
        }
        ProgramStatus::DifferentFile => Some(Finding::warning(
            "programs.other_version",
            format!("{name} is not the program next to plimsoll: it may be another version"),
            "run `plimsoll init` again with the option of those settings (--user, --local), or install all programs together",
        )),
        ProgramStatus::ReportedBuild(_) => None,
    }
}

fn check_plimsoll_is_first_and_only_on_path(programs: &ProgramInfo) -> Option<Finding> {
    let describe_program = |(path, status): &(String, ProgramStatus)| match status {
        ProgramStatus::ReportedBuild(build) if *build != programs.current_build => format!("{path}, {build}"),
        ProgramStatus::NoVersionReported => format!("{path}, which does not report its version"),
        _ => path.clone(),
    };
    let list_programs_on_path =
        || programs.programs_on_path.iter().map(describe_program).collect::<Vec<_>>().join("; ");
    if programs.programs_on_path.is_empty() {
        let message = "plimsoll is not on the PATH: you cannot type it in a terminal";
        let advice = format!("add {} to the PATH", programs.command_folder);
        return Some(Finding::note("programs.not_on_path", message, &advice));
    }
    if !programs.is_first_on_path {
        let message = format!("another plimsoll comes first on the PATH: {}", list_programs_on_path());
        return Some(Finding::warning("programs.several", message, "remove one, or put the right one first"));
    }
    (programs.programs_on_path.len() > 1).then(|| {
        let message = format!("more than one plimsoll is on the PATH: {}", list_programs_on_path());
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

    fn check_changed(change: impl FnOnce(&mut ProgramInfo)) -> Section {
        let known_build = || ProgramStatus::ReportedBuild(build_of("0.1.0", "aaa"));
        let mut facts = ProgramInfo {
            current_build: build_of("0.1.0", "aaa"),
            program_folder: "/opt".to_owned(),
            sibling_programs: vec![("plimsoll-stop-gate".to_owned(), known_build())],
            configured_programs: Vec::new(),
            entries_that_fail_without_path: Vec::new(),
            command_folder: "/opt".to_owned(),
            programs_on_path: vec![("/opt/plimsoll".to_owned(), known_build())],
            is_first_on_path: true,
        };
        change(&mut facts);
        check_program_builds_and_path(&facts)
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
                    is_team_entry: false,
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
                    is_team_entry: true,
                });
            })
        };
        let with_unstarted_entries = |entries: &[(&str, StartFailure)]| {
            check_changed(|facts| {
                facts.entries_that_fail_without_path = entries
                    .iter()
                    .map(|(file, failure)| EntryThatFailsWithoutPath {
                        name: "plimsoll-stop-gate".to_owned(),
                        settings_file: (*file).to_owned(),
                        failure: *failure,
                    })
                    .collect();
            })
        };
        let old_build = || ProgramStatus::ReportedBuild(build_of("0.0.9", "aaa"));
        let other_build = || ProgramStatus::ReportedBuild(build_of("0.1.0", "bbb"));
        for (section, expected) in [
            (check_changed(|_| ()), vec![]),
            (with_status(ProgramStatus::Missing), vec!["programs.missing"]),
            (with_status(ProgramStatus::NotExecutable), vec!["programs.not_executable"]),
            (with_status(ProgramStatus::NoVersionReported), vec!["programs.silent"]),
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
                .push(("/old/plimsoll".to_owned(), ProgramStatus::ReportedBuild(build_of("0.0.9", "bbb"))));
        });
        let message = &section.findings[0].message;
        assert!(
            message.contains("/opt/plimsoll; /old/plimsoll, 0.0.9 (") && message.ends_with("bbb)"),
            "{message}"
        );
    }
}
