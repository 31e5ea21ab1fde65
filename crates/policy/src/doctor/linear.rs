//! Notes in Linear: whether they can leave, and whether they have. Nothing is sent to find out.

use super::programs::{Standing, of_standing};
use super::{Finding, Section};
use plimsoll_domain::build::Build;
use plimsoll_domain::text::counted;

/// The program that delivers notes. It is optional: it is needed only where an issue is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinearProgram {
    /// There is none.
    Missing {
        /// Where it was looked for.
        what: String,
        /// How to get it.
        todo: String,
    },
    /// It is next to us, and judged with the others there.
    Beside,
    /// It is on the PATH.
    OnPath {
        /// Where.
        path: String,
        /// What it says of itself.
        standing: Standing,
    },
}

/// Notes in Linear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearFacts {
    /// The issue that is set.
    pub issue: String,
    /// The program that delivers them.
    pub program: LinearProgram,
    /// True when something says where the key is.
    pub has_key: bool,
    /// Notes that have not been delivered.
    pub undelivered: usize,
    /// Why not, as far as it was tried.
    pub trouble: Option<String>,
}

pub(super) fn section(facts: &LinearFacts, own: &Build) -> Section {
    let mut findings = Vec::new();
    match &facts.program {
        LinearProgram::Missing { what, todo } => {
            findings.push(Finding::warning(
                "linear.no_program",
                format!("an issue is set, but {what}"),
                todo,
            ));
        }
        LinearProgram::Beside => {}
        LinearProgram::OnPath { path, standing } => {
            let finding = of_standing(own, "plimsoll-linear", standing);
            findings.extend(finding.map(|finding| finding.at(path.clone())));
        }
    }
    if !facts.has_key {
        let what = "an issue is set, but no key: neither LINEAR_API_KEY nor linear.key_command is set";
        let todo = "export LINEAR_API_KEY, then `plimsoll linear check`";
        findings.push(Finding::warning("linear.no_key", what, todo));
    }
    if facts.undelivered > 0 {
        let why = facts.trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let what = format!("{} not delivered{why}", counted(facts.undelivered, "note"));
        findings.push(Finding::warning("linear.undelivered", what, "run `plimsoll linear sync`"));
    }
    Section::new("Linear", format!("notes go to {}", facts.issue), findings)
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    fn of(version: &str) -> Build {
        Build { version: version.to_owned(), ..Build::own("plimsoll-linear") }
    }

    #[test]
    fn a_missing_key_and_notes_that_wait_are_found() {
        let well = LinearFacts {
            issue: "ENG-1".to_owned(),
            program: LinearProgram::Beside,
            has_key: true,
            undelivered: 0,
            trouble: None,
        };
        assert_eq!(codes(&section(&well, &of("0.1.0"))), [] as [&str; 0]);
        for (standing, expected) in [("0.1.0", None), ("0.0.9", Some("programs.other_version"))] {
            let (path, standing) = ("/usr/bin/plimsoll-linear".to_owned(), Standing::Built(of(standing)));
            let elsewhere = LinearFacts { program: LinearProgram::OnPath { path, standing }, ..well.clone() };
            assert_eq!(codes(&section(&elsewhere, &of("0.1.0"))), Vec::from_iter(expected));
        }
        let (what, todo) = ("it is nowhere".to_owned(), "install it".to_owned());
        let without = LinearFacts { program: LinearProgram::Missing { what, todo }, ..well.clone() };
        let section_without = section(&without, &of("0.1.0"));
        assert_eq!(codes(&section_without), ["linear.no_program"]);
        assert_eq!(section_without.findings[0].what, "an issue is set, but it is nowhere");
        let ill =
            LinearFacts { has_key: false, undelivered: 2, trouble: Some("no network".to_owned()), ..well };
        let section = section(&ill, &of("0.1.0"));
        assert_eq!(codes(&section), ["linear.no_key", "linear.undelivered"]);
        assert_eq!(section.findings[1].what, "2 notes not delivered (no network)");
    }
}
