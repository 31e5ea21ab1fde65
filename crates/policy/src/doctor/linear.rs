//! Checks whether notes can be delivered to Linear and have been delivered. Sends nothing.

use super::programs::{ProgramStatus, finding_unless_same_build};
use super::{Finding, Section};
use plimsoll_domain::build::BuildInfo;
use plimsoll_domain::text::count_with_noun;

/// The program that delivers notes. It is needed only if an issue is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinearProgram {
    Missing {
        /// Where the program was searched for.
        message: String,
        /// How to install it.
        advice: String,
    },
    /// In the folder of this program, where it is checked together with the other programs.
    NextToPlimsoll,
    /// Found on the PATH.
    OnPath {
        path: String,
        /// The result of running it for its version.
        status: ProgramStatus,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearInfo {
    /// The issue that receives the notes.
    pub issue: String,
    /// The program that delivers the notes.
    pub program: LinearProgram,
    /// True if a key is configured.
    pub has_key: bool,
    /// The number of notes that have not been delivered.
    pub undelivered_count: usize,
    /// The error of the last delivery, if there was one.
    pub last_error: Option<String>,
}

pub(super) fn check_linear_delivery(linear: &LinearInfo, current_build: &BuildInfo) -> Section {
    let mut findings = Vec::new();
    match &linear.program {
        LinearProgram::Missing { message, advice } => {
            findings.push(Finding::warning(
                "linear.no_program",
                format!("an issue is set, but {message}"),
                advice,
            ));
        }
        LinearProgram::NextToPlimsoll => {}
        LinearProgram::OnPath { path, status } => {
            let finding = finding_unless_same_build(current_build, "plimsoll-linear", status);
            findings.extend(finding.map(|finding| finding.with_path(path.clone())));
        }
    }
    if !linear.has_key {
        let message = "an issue is set, but no key: neither LINEAR_API_KEY nor linear.key_command is set";
        let advice = "export LINEAR_API_KEY, then `plimsoll linear check`";
        findings.push(Finding::warning("linear.no_key", message, advice));
    }
    if linear.undelivered_count > 0 {
        let error_suffix = linear.last_error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        let message =
            format!("{} not delivered{error_suffix}", count_with_noun(linear.undelivered_count, "note"));
        findings.push(Finding::warning("linear.undelivered", message, "run `plimsoll linear sync`"));
    }
    Section::new("Linear", format!("notes go to {}", linear.issue), findings)
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;

    fn build_with_version(version: &str) -> BuildInfo {
        BuildInfo { version: version.to_owned(), ..BuildInfo::for_current_program("plimsoll-linear") }
    }

    #[test]
    fn a_missing_program_a_missing_key_and_waiting_notes_are_reported() {
        let healthy = LinearInfo {
            issue: "ENG-1".to_owned(),
            program: LinearProgram::NextToPlimsoll,
            has_key: true,
            undelivered_count: 0,
            last_error: None,
        };
        assert_eq!(
            finding_codes(&check_linear_delivery(&healthy, &build_with_version("0.1.0"))),
            [] as [&str; 0]
        );
        for (version, expected) in [("0.1.0", None), ("0.0.9", Some("programs.other_version"))] {
            let (path, status) = (
                "/usr/bin/plimsoll-linear".to_owned(),
                ProgramStatus::ReportedBuild(build_with_version(version)),
            );
            let elsewhere = LinearInfo { program: LinearProgram::OnPath { path, status }, ..healthy.clone() };
            assert_eq!(
                finding_codes(&check_linear_delivery(&elsewhere, &build_with_version("0.1.0"))),
                Vec::from_iter(expected)
            );
        }
        let (message, advice) = ("it is nowhere".to_owned(), "install it".to_owned());
        let without = LinearInfo { program: LinearProgram::Missing { message, advice }, ..healthy.clone() };
        let section_without = check_linear_delivery(&without, &build_with_version("0.1.0"));
        assert_eq!(finding_codes(&section_without), ["linear.no_program"]);
        assert_eq!(section_without.findings[0].message, "an issue is set, but it is nowhere");
        let faulty = LinearInfo {
            has_key: false,
            undelivered_count: 2,
            last_error: Some("no network".to_owned()),
            ..healthy
        };
        let section = check_linear_delivery(&faulty, &build_with_version("0.1.0"));
        assert_eq!(finding_codes(&section), ["linear.no_key", "linear.undelivered"]);
        assert_eq!(section.findings[1].message, "2 notes not delivered (no network)");
    }
}
