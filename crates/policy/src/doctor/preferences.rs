//! Reports keys that are ignored in a project's Plimsoll settings file.

use super::{Finding, Section};
use plimsoll_domain::settings::authority::IgnoredKey;

/// Ignored keys of a project's settings file, and the places to which the user can move them.
#[derive(Debug, Clone, Default)]
pub struct PreferenceInfo {
    /// The settings files and their ignored keys.
    pub ignored_keys: Vec<(String, IgnoredKey)>,
    /// The user's settings file; `None` without a home directory.
    pub user_file: Option<String>,
    pub project_folder: String,
}

/// Returns `None` if no key is ignored.
pub(super) fn check_ignored_preferences(preferences: &PreferenceInfo) -> Option<Section> {
    let findings: Vec<Finding> = preferences
        .ignored_keys
        .iter()
        .map(|ignored_key| ignored_key_warning(preferences, ignored_key))
        .collect();
    let summary = format!(
        "{} of a project's file",
        plimsoll_domain::text::count_with_noun(findings.len(), "ignored key")
    );
    (!findings.is_empty()).then(|| Section::new("Preferences", summary, findings))
}

fn ignored_key_warning(preferences: &PreferenceInfo, (file, ignored_key): &(String, IgnoredKey)) -> Finding {
    let user_file = preferences.user_file.as_deref().unwrap_or("~/.config/plimsoll/settings.json");
    let advice = format!(
        "check who wrote it; to use it, move it to {user_file}, for this project only below \"projects\": {{\"{}\": …}}",
        preferences.project_folder
    );
    Finding::warning("preferences.ignored", ignored_key.describe(), &advice).with_path(file.clone())
}

#[cfg(test)]
mod tests {
    use super::super::finding_codes;
    use super::*;
    use plimsoll_domain::settings::authority::IgnoredReason;

    #[test]
    fn each_ignored_key_is_reported_with_its_file_and_advice() {
        let mut facts = PreferenceInfo { project_folder: "/p".into(), ..PreferenceInfo::default() };
        assert!(check_ignored_preferences(&facts).is_none());
        let one = IgnoredKey { key: "linear.key_command".into(), reason: IgnoredReason::NeverAllowed };
        let other =
            IgnoredKey { key: "breaker.refused".into(), reason: IgnoredReason::LoosensLimit("3".into()) };
        facts.ignored_keys =
            vec![(".claude/plimsoll.json".into(), one), (".claude/plimsoll.json".into(), other)];
        let section = check_ignored_preferences(&facts).unwrap();
        assert_eq!(finding_codes(&section), ["preferences.ignored"; 2]);
        let first = &section.findings[0];
        insta::assert_snapshot!(format!("{}\n{}", first.message, first.advice), @r#"
        linear.key_command is ignored in a project's file: only your own settings may start a program, send something out, delete records, choose a model, protect files or replace a conversation
        check who wrote it; to use it, move it to ~/.config/plimsoll/settings.json, for this project only below "projects": {"/p": …}
        "#);
        assert_eq!(first.path.as_deref(), Some(".claude/plimsoll.json"));
        insta::assert_snapshot!(section.findings[1].message, @"breaker.refused is ignored: a project's file may only make it stricter; 3 applies");
    }
}
