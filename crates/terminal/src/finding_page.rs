//! The page of findings: a heading for each check with its findings and advice below it, and a
//! conclusion at the end.

use crate::console::{self, PaintedLine, has_colors, line_width_from_columns_or_terminal};
use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_flows::doctor::{Finding, Section, Severity, has_problem, render_conclusion_line};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Prints the page of findings.
pub fn print_findings(sections: &[Section]) {
    let page = FindingPage { has_colors: has_colors(), max_columns: line_width_from_columns_or_terminal() };
    // A closed pipe is not an error.
    let _ = console::print_painted_lines(&page.render_sections_and_conclusion(sections), 16);
}

/// Prints the page of findings, or JSON. Returns exit code 1 if any finding is a problem.
pub fn print_findings_and_fail_on_problem(sections: &[Section], as_json: bool) -> ExitCode {
    if as_json {
        console::print_json(json!({
            "verdict": render_conclusion_line(sections),
            "findings": findings_to_json(sections),
        }));
    } else {
        print_findings(sections);
    }
    ExitStatus::failure_if(has_problem(sections)).into()
}

pub fn findings_to_json(sections: &[Section]) -> Vec<Value> {
    sections
        .iter()
        .flat_map(|section| section.findings.iter().map(|finding| finding_to_json(section, finding)))
        .collect()
}

fn finding_to_json(section: &Section, finding: &Finding) -> Value {
    json!({
        "code": finding.code,
        "severity": finding.severity.as_str(),
        "check": section.name,
        "what": finding.message,
        "where": finding.path,
        "todo": finding.advice,
    })
}

/// The format of the page.
struct FindingPage {
    /// Whether severities are shown as colored signs; otherwise they are words.
    has_colors: bool,
    /// Maximum width of a line.
    max_columns: usize,
}

/// The color code and the text of a severity sign.
type ColoredSign = (Option<&'static str>, &'static str);

/// Width of the column with the names of the checks.
const NAME_WIDTH: usize = 12;
/// Indentation of findings and details.
const INDENT: &str = "    ";

impl FindingPage {
    fn render_sections_and_conclusion(&self, sections: &[Section]) -> Vec<PaintedLine> {
        let mut lines: Vec<PaintedLine> =
            sections.iter().flat_map(|section| self.render_section(section)).collect();
        lines.push(PaintedLine::default());
        lines.push(PaintedLine::plain(&render_conclusion_line(sections)));
        lines
    }

    fn render_section(&self, section: &Section) -> Vec<PaintedLine> {
        let (color_code, sign) = self.sign_for_worst_severity(section.worst_severity());
        let heading = PaintedLine::default().with_text(color_code, sign);
        let heading = heading.with_text(None, &format!(" {:NAME_WIDTH$} {}", section.name, section.summary));
        let details =
            section.details.iter().flat_map(|detail| self.wrap_indented_after_sign(detail, (None, "")));
        // If the heading shows the severity of all findings, they do not repeat it.
        let omits_severity = section
            .findings
            .iter()
            .all(|finding| is_severity_shown_in_heading(finding.severity, section.worst_severity()));
        let findings =
            section.findings.iter().flat_map(|finding| self.render_finding(finding, omits_severity));
        std::iter::once(heading).chain(details).chain(findings).collect()
    }

    fn render_finding(&self, finding: &Finding, omits_severity: bool) -> Vec<PaintedLine> {
        let sign = if omits_severity { (None, "- ") } else { self.sign_for_finding(finding.severity) };
        let path_prefix = finding.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
        let mut lines = self.wrap_indented_after_sign(&format!("{path_prefix}{}", finding.message), sign);
        lines.extend(self.wrap_indented_after_sign(&finding.advice, (None, "→ ")));
        lines
    }

    /// Wraps and indents text, with a sign before the first line.
    fn wrap_indented_after_sign(&self, text: &str, (color_code, sign): ColoredSign) -> Vec<PaintedLine> {
        let available_columns = self.max_columns.saturating_sub(INDENT.len() + 2).max(20);
        let mut lines: Vec<String> = Vec::new();
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > available_columns {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
        let indent_line = |(index, line): (usize, String)| match index {
            0 => PaintedLine::plain(INDENT).with_text(color_code, sign).with_text(None, &line),
            _ => PaintedLine::plain(&format!("{INDENT}  {line}")),
        };
        lines.into_iter().enumerate().map(indent_line).collect()
    }

    /// Returns the sign of a heading. A check with only notes is `ok`.
    fn sign_for_worst_severity(&self, worst_severity: Option<Severity>) -> ColoredSign {
        match worst_severity {
            None | Some(Severity::Note) if self.has_colors => (Some("32"), "✓"),
            Some(Severity::Warning) if self.has_colors => (Some("33"), "!"),
            Some(Severity::Problem) if self.has_colors => (Some("31"), "✗"),
            // Padded to the width of the longest word.
            None | Some(Severity::Note) => (None, "ok      "),
            Some(Severity::Warning) => (None, "warning "),
            Some(Severity::Problem) => (None, "PROBLEM "),
        }
    }

    fn sign_for_finding(&self, severity: Severity) -> ColoredSign {
        match severity {
            Severity::Note if self.has_colors => (Some("2"), "· "),
            Severity::Warning if self.has_colors => (Some("33"), "! "),
            Severity::Problem if self.has_colors => (Some("31"), "✗ "),
            Severity::Note => (None, "note: "),
            Severity::Warning => (None, "warning: "),
            Severity::Problem => (None, "problem: "),
        }
    }
}

/// Returns true if the heading shows this severity. It never shows `note`, because the heading of a check with only notes is `ok`.
fn is_severity_shown_in_heading(severity: Severity, heading_severity: Option<Severity>) -> bool {
    severity != Severity::Note && Some(severity) == heading_severity
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(severity: Option<Severity>) -> Section {
        let finding = severity.map(|severity| Finding {
            code: "x.y",
            severity,
            message: "something that takes quite a few words to say is not as it should be here".to_owned(),
            path: Some("settings.json".to_owned()),
            advice: "fix it".to_owned(),
        });
        Section {
            name: "Settings",
            summary: "hooks".to_owned(),
            details: vec!["more of it".to_owned()],
            findings: finding.into_iter().collect(),
        }
    }

    fn to_terminal_lines(lines: &[PaintedLine]) -> Vec<String> {
        lines.iter().map(PaintedLine::to_text_with_ansi_colors).collect()
    }

    #[test]
    fn signs_are_words_without_colors_and_lines_are_wrapped() {
        let page = FindingPage { has_colors: false, max_columns: 60 };
        let lines = to_terminal_lines(
            &page.render_sections_and_conclusion(&[section(None), section(Some(Severity::Problem))]),
        );
        assert_eq!(lines[0], "ok       Settings     hooks");
        assert_eq!(lines[2], "PROBLEM  Settings     hooks");
        assert!(lines[4].starts_with("    - settings.json: something"), "{lines:#?}");
        assert!(lines.iter().any(|line| line == "    → fix it"), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 70), "{lines:#?}");
        let colored_lines = to_terminal_lines(
            &FindingPage { has_colors: true, max_columns: 60 }
                .render_sections_and_conclusion(&[section(Some(Severity::Note))]),
        );
        assert!(colored_lines[0].starts_with("\u{1b}[32m✓"), "{colored_lines:#?}");
    }

    #[test]
    fn a_severity_is_shown_once_or_for_each_finding_if_they_differ() {
        let page = FindingPage { has_colors: false, max_columns: 100 };
        let count_severities = |severities: &[Severity]| {
            let mut all_findings = section(None);
            all_findings.findings =
                severities.iter().flat_map(|severity| section(Some(*severity)).findings).collect();
            let lines = to_terminal_lines(&page.render_section(&all_findings));
            let count = |word: &str| lines.iter().filter(|line| line.contains(word)).count();
            (count("warning"), count("problem") + count("PROBLEM"), count("note: "))
        };
        use Severity::{Note, Problem, Warning};
        assert_eq!(count_severities(&[Warning]), (1, 0, 0));
        assert_eq!(count_severities(&[Warning, Warning]), (1, 0, 0));
        assert_eq!(count_severities(&[Problem, Warning]), (1, 2, 0));
        assert_eq!(count_severities(&[Note]), (0, 0, 1));
    }
}
