//! The page: a line for each check, its findings beneath with what to do, and the last word.

use crate::columns::width;
use crate::console::{self, Painted, has_colours};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::doctor::{Finding, Section, Severity, has_problem, verdict};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The page of what was found.
pub fn show(sections: &[Section]) {
    let page = DoctorPage { colours: has_colours(), width: width() };
    // A reader that has gone away is a normal end.
    let _ = console::paint(&page.lines(sections));
}

/// Shows what was found about something else than the installation: exit code 1 where something will not work.
pub fn show_findings(sections: &[Section], as_json: bool) -> ExitCode {
    if as_json {
        console::json(json!({
            "verdict": verdict(sections),
            "findings": findings_json(sections),
        }));
    } else {
        show(sections);
    }
    ExitStatus::failure_if(has_problem(sections)).into()
}

/// The findings as JSON.
pub fn findings_json(sections: &[Section]) -> Vec<Value> {
    sections.iter().flat_map(|section| section.findings.iter().map(|one| finding(section, one))).collect()
}

fn finding(section: &Section, one: &Finding) -> Value {
    json!({
        "code": one.code,
        "severity": one.severity.word(),
        "check": section.name,
        "what": one.what,
        "where": one.place,
        "todo": one.todo,
    })
}

/// How the page is shown.
struct DoctorPage {
    /// On a terminal that wants colours; else thresholds are words.
    colours: bool,
    /// So wide is a line.
    width: usize,
}

/// A colour and what is painted in it.
type Sign = (Option<&'static str>, &'static str);

/// The names of the checks are in a column of their own.
const NAME: usize = 12;
/// Findings and details are set in.
const INSET: &str = "    ";

impl DoctorPage {
    /// The whole page.
    fn lines(&self, sections: &[Section]) -> Vec<Painted> {
        let mut lines: Vec<Painted> = sections.iter().flat_map(|section| self.section(section)).collect();
        lines.push(Painted::default());
        lines.push(Painted::plain(&verdict(sections)));
        lines
    }

    fn section(&self, section: &Section) -> Vec<Painted> {
        let (code, sign) = self.mark(section.worst());
        let head = Painted::default().then(code, sign);
        let head = head.then(None, &format!(" {:NAME$} {}", section.name, section.summary));
        let details = section.details.iter().flat_map(|detail| self.wrapped(detail, (None, "")));
        // The head has said it where all findings are as bad as it says.
        let is_said = section.findings.iter().all(|finding| said_by_head(finding.severity, section.worst()));
        let findings = section.findings.iter().flat_map(|finding| self.finding(finding, is_said));
        std::iter::once(head).chain(details).chain(findings).collect()
    }

    fn finding(&self, finding: &Finding, is_said: bool) -> Vec<Painted> {
        let sign = if is_said { (None, "- ") } else { self.mark_of(finding.severity) };
        let place = finding.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        let mut lines = self.wrapped(&format!("{place}{}", finding.what), sign);
        lines.extend(self.wrapped(&finding.todo, (None, "→ ")));
        lines
    }

    /// Words set in and broken to the width, the first line behind a sign.
    fn wrapped(&self, words: &str, (code, sign): Sign) -> Vec<Painted> {
        let room = self.width.saturating_sub(INSET.len() + 2).max(20);
        let mut lines: Vec<String> = Vec::new();
        let mut line = String::new();
        for word in words.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
        let behind = |(index, line): (usize, String)| match index {
            0 => Painted::plain(INSET).then(code, sign).then(None, &line),
            _ => Painted::plain(&format!("{INSET}  {line}")),
        };
        lines.into_iter().enumerate().map(behind).collect()
    }

    /// The sign of a whole check: notes are no reason to worry.
    fn mark(&self, worst: Option<Severity>) -> Sign {
        match worst {
            None | Some(Severity::Note) if self.colours => (Some("32"), "✓"),
            Some(Severity::Warning) if self.colours => (Some("33"), "!"),
            Some(Severity::Problem) if self.colours => (Some("31"), "✗"),
            // As wide as the widest.
            None | Some(Severity::Note) => (None, "ok      "),
            Some(Severity::Warning) => (None, "warning "),
            Some(Severity::Problem) => (None, "PROBLEM "),
        }
    }

    fn mark_of(&self, severity: Severity) -> Sign {
        match severity {
            Severity::Note if self.colours => (Some("2"), "· "),
            Severity::Warning if self.colours => (Some("33"), "! "),
            Severity::Problem if self.colours => (Some("31"), "✗ "),
            Severity::Note => (None, "note: "),
            Severity::Warning => (None, "warning: "),
            Severity::Problem => (None, "problem: "),
        }
    }
}

/// A note is not said by a head that says `ok`.
fn said_by_head(severity: Severity, head: Option<Severity>) -> bool {
    severity != Severity::Note && Some(severity) == head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(severity: Option<Severity>) -> Section {
        let finding = severity.map(|severity| Finding {
            code: "x.y",
            severity,
            what: "something that takes quite a few words to say is not as it should be here".to_owned(),
            place: Some("settings.json".to_owned()),
            todo: "fix it".to_owned(),
        });
        Section {
            name: "Settings",
            summary: "hooks".to_owned(),
            details: vec!["more of it".to_owned()],
            findings: finding.into_iter().collect(),
        }
    }

    fn shown(lines: &[Painted]) -> Vec<String> {
        lines.iter().map(Painted::to_terminal).collect()
    }

    #[test]
    fn marks_are_words_without_colours_and_lines_are_broken() {
        let page = DoctorPage { colours: false, width: 60 };
        let lines = shown(&page.lines(&[section(None), section(Some(Severity::Problem))]));
        assert_eq!(lines[0], "ok       Settings     hooks");
        assert_eq!(lines[2], "PROBLEM  Settings     hooks");
        assert!(lines[4].starts_with("    - settings.json: something"), "{lines:#?}");
        assert!(lines.iter().any(|line| line == "    → fix it"), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 70), "{lines:#?}");
        let coloured =
            shown(&DoctorPage { colours: true, width: 60 }.lines(&[section(Some(Severity::Note))]));
        assert!(coloured[0].starts_with("\u{1b}[32m✓"), "{coloured:#?}");
    }

    #[test]
    fn how_bad_it_is_is_said_once_and_for_each_finding_where_they_differ() {
        let page = DoctorPage { colours: false, width: 100 };
        let said = |severities: &[Severity]| {
            let mut both = section(None);
            both.findings = severities.iter().flat_map(|one| section(Some(*one)).findings).collect();
            let lines = shown(&page.section(&both));
            let count = |word: &str| lines.iter().filter(|line| line.contains(word)).count();
            (count("warning"), count("problem") + count("PROBLEM"), count("note: "))
        };
        use Severity::{Note, Problem, Warning};
        assert_eq!(said(&[Warning]), (1, 0, 0));
        assert_eq!(said(&[Warning, Warning]), (1, 0, 0));
        assert_eq!(said(&[Problem, Warning]), (1, 2, 0));
        assert_eq!(said(&[Note]), (0, 0, 1));
    }
}
