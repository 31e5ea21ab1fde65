//! Notes in Linear: whether they can leave, and whether they have. Nothing is sent to find out.

use super::{Finding, Section};
use plimsoll_domain::text::counted;

/// Notes in Linear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearFacts {
    /// The issue that is set.
    pub issue: String,
    /// True when something says where the key is.
    pub has_key: bool,
    /// Notes that have not been delivered.
    pub undelivered: usize,
    /// Why not, as far as it was tried.
    pub trouble: Option<String>,
}

pub(super) fn section(facts: &LinearFacts) -> Section {
    let mut findings = Vec::new();
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

    #[test]
    fn a_missing_key_and_notes_that_wait_are_found() {
        let well = LinearFacts { issue: "ENG-1".to_owned(), has_key: true, undelivered: 0, trouble: None };
        assert_eq!(codes(&section(&well)), [] as [&str; 0]);
        let ill =
            LinearFacts { has_key: false, undelivered: 2, trouble: Some("no network".to_owned()), ..well };
        let section = section(&ill);
        assert_eq!(codes(&section), ["linear.no_key", "linear.undelivered"]);
        assert_eq!(section.findings[1].what, "2 notes not delivered (no network)");
    }
}
