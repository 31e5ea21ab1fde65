//! Keys of a Plimsoll settings file that are ignored in that file.

use super::{Finding, Section};
use plimsoll_domain::settings::authority::Ignored;

/// What is not in force.
#[derive(Debug, Clone, Default)]
pub struct PreferenceFacts {
    /// The keys, each with its file.
    pub ignored: Vec<(String, Ignored)>,
    /// The user's own settings file, where there is a home.
    pub user_file: Option<String>,
    /// The project's folder.
    pub project: String,
}

/// None if everything holds that is said.
pub(super) fn section(facts: &PreferenceFacts) -> Option<Section> {
    let findings: Vec<Finding> = facts.ignored.iter().map(|one| finding(facts, one)).collect();
    let summary =
        format!("{} of a project's file", plimsoll_domain::text::counted(findings.len(), "ignored key"));
    (!findings.is_empty()).then(|| Section::new("Preferences", summary, findings))
}

fn finding(facts: &PreferenceFacts, (file, ignored): &(String, Ignored)) -> Finding {
    let user = facts.user_file.as_deref().unwrap_or("~/.config/plimsoll/settings.json");
    let todo = format!(
        "check who wrote it; to use it, move it to {user}, for this project only below \"projects\": {{\"{}\": …}}",
        facts.project
    );
    Finding::warning("preferences.ignored", ignored.words(), &todo).at(file.clone())
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;
    use plimsoll_domain::settings::authority::Why;

    #[test]
    fn each_ignored_key_is_named_with_its_file_and_what_to_do() {
        let mut facts = PreferenceFacts { project: "/p".into(), ..PreferenceFacts::default() };
        assert!(section(&facts).is_none());
        let one = Ignored { key: "linear.key_command".into(), why: Why::Authority };
        let other = Ignored { key: "breaker.refused".into(), why: Why::Bound("3".into()) };
        facts.ignored = vec![(".claude/plimsoll.json".into(), one), (".claude/plimsoll.json".into(), other)];
        let section = section(&facts).unwrap();
        assert_eq!(codes(&section), ["preferences.ignored"; 2]);
        let first = &section.findings[0];
        insta::assert_snapshot!(format!("{}\n{}", first.what, first.todo), @r#"
        linear.key_command is ignored in a project's file: only your own settings may start a program, send something out, delete records, choose a model or protect files
        check who wrote it; to use it, move it to ~/.config/plimsoll/settings.json, for this project only below "projects": {"/p": …}
        "#);
        assert_eq!(first.place.as_deref(), Some(".claude/plimsoll.json"));
        insta::assert_snapshot!(section.findings[1].what, @"breaker.refused is ignored: a project's file may only make it stricter; 3 applies");
    }
}
