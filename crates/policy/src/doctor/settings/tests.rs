use super::super::finding_codes;
use super::*;
use plimsoll_protocol::settings::{
    EntryOptions, find_template_differences_if_installed, install_or_update_our_entries, summarize_settings,
};

const MODERN: (u32, u32, u32) = (2, 1, 329);

fn bare_name(program: &str) -> String {
    program.to_owned()
}

fn with_our_hooks(text: &str, hook_support: HookSupport) -> String {
    install_or_update_our_entries(text, hook_support, &bare_name)
        .map(|merged| merged.text)
        .unwrap_or_default()
}

fn check(client_version: (u32, u32, u32), files: &[(SettingsScope, &str)]) -> Section {
    check_on_system(client_version, files, false)
}

fn check_on_system(
    client_version: (u32, u32, u32),
    files: &[(SettingsScope, &str)],
    is_on_windows: bool,
) -> Section {
    let hook_support = HookSupport::from_client_version_or_classic(&format!(
        "{}.{}.{}",
        client_version.0, client_version.1, client_version.2
    ));
    let file = |(scope, text): &(SettingsScope, &str)| SettingsFile {
        path: format!("{}.json", scope.as_str()),
        scope: *scope,
        summary: summarize_settings(text).map_err(|error| InspectionError::new(&error)),
        differences: find_template_differences_if_installed(text, hook_support).unwrap_or_default(),
    };
    check_hook_settings(&SettingsInfo {
        files: files.iter().map(file).collect(),
        client_version: Some(client_version),
        hook_support: Some(hook_support),
        plugin_name: None,
        is_on_windows,
    })
}

#[test]
fn each_problem_of_the_settings_has_its_finding() {
    let modern = with_our_hooks("{}", HookSupport::Modern);
    let classic = with_our_hooks("{}", HookSupport::Classic);
    let absolute =
        install_or_update_our_entries("{}", HookSupport::Modern, &|program| format!("/opt/{program}"))
            .map(|merged| merged.text)
            .unwrap();
    let without_stop = modern.replace("\"Stop\"", "\"InstructionsLoaded\"");
    let slower = modern.replacen("\"timeout\": 20", "\"timeout\": 60", 1);
    let off = r#"{"disableAllHooks": true}"#;
    let on = r#"{"disableAllHooks": false}"#;
    let managed = r#"{"allowManagedHooksOnly": true}"#;
    let line = r#"{"statusLine": {"type": "command", "command": "starship"}}"#;
    let bad_line = r#"{"statusLine": "starship"}"#;
    let with_memory =
        install_or_update_our_entries("{}", HookSupport::Modern.with_memory(), &bare_name).unwrap().text;
    let guarded = EntryOptions { for_team: true, ..HookSupport::Modern.into() };
    let guarded = install_or_update_our_entries("{}", guarded, &bare_name).unwrap().text;
    let old_client = (2, 0, 77);
    use SettingsScope::{Local, Managed, Project, User};
    for (client_version, files, expected) in [
        (MODERN, vec![(Project, modern.as_str())], vec![]),
        (old_client, vec![(Project, classic.as_str())], vec![]),
        (MODERN, vec![], vec!["settings.none"]),
        (MODERN, vec![(Project, "{ broken")], vec!["settings.unreadable", "settings.none"]),
        (MODERN, vec![(Project, &modern), (User, "{ broken")], vec!["settings.unreadable"]),
        (MODERN, vec![(Project, &modern), (User, off)], vec!["settings.hooks_disabled"]),
        (MODERN, vec![(Local, on), (Project, &modern), (User, off)], vec![]),
        (MODERN, vec![(Managed, managed), (Project, &modern)], vec!["settings.managed_hooks_only"]),
        (MODERN, vec![(Project, &modern), (User, managed)], vec![]),
        (MODERN, vec![(Project, &modern), (User, &modern)], vec!["settings.doubled_alike"]),
        (MODERN, vec![(Project, &modern), (User, &absolute)], vec!["settings.doubled"]),
        (MODERN, vec![(Project, &without_stop)], vec!["settings.older_than_client"]),
        (MODERN, vec![(Project, &slower)], vec!["settings.edited"]),
        (MODERN, vec![(Project, &classic)], vec!["settings.older_than_client"]),
        (old_client, vec![(Project, &modern)], vec!["settings.unknown_event", "settings.newer_than_client"]),
        ((2, 1, 101), vec![(Project, &modern)], vec!["settings.newer_than_client"]),
        (MODERN, vec![(Local, line), (Project, &modern)], vec!["settings.status_line_shadowed"]),
        (MODERN, vec![(Project, &modern), (User, line)], vec![]),
        (MODERN, vec![(Project, &with_memory)], vec![]),
        (MODERN, vec![(Project, &with_memory), (User, &modern)], vec!["settings.doubled"]),
        (MODERN, vec![(Project, &modern), (User, bad_line)], vec!["settings.bad_status_line"]),
        (MODERN, vec![(Project, &guarded)], vec![]),
        (MODERN, vec![(Local, &modern), (Project, &guarded), (User, &absolute)], vec!["settings.doubled"]),
        (MODERN, vec![(Project, &guarded), (User, &modern)], vec![]),
        (MODERN, vec![(Project, &guarded), (User, &with_memory)], vec![]),
        (old_client, vec![(Project, &guarded)], vec!["settings.unknown_event", "settings.newer_than_client"]),
    ] {
        let section = check(client_version, &files);
        let is_bare = files.iter().any(|(scope, text)| {
            *scope == Project && text.contains("plimsoll-") && !text.contains("--guarded")
        });
        let unguarded_code = is_bare.then_some("settings.unguarded");
        let mut actual = finding_codes(&section);
        assert_eq!(
            actual.iter().position(|code| Some(*code) == unguarded_code).map(|index| actual.remove(index)),
            unguarded_code
        );
        assert_eq!(actual, expected, "{section:#?}");
    }
}

/// Returns our entries without one event, as an older version of Plimsoll wrote them.
fn without_event(event: &str) -> String {
    let mut settings: serde_json::Value =
        serde_json::from_str(&with_our_hooks("{}", HookSupport::Modern)).unwrap();
    assert!(settings["hooks"].as_object_mut().unwrap().shift_remove(event).is_some(), "{event}");
    serde_json::to_string_pretty(&settings).unwrap()
}

#[test]
fn an_installation_from_before_an_event_is_complete() {
    let older = without_event("PreModelSwitch");
    let section = check(MODERN, &[(SettingsScope::Local, &older)]);
    assert_eq!(finding_codes(&section), ["settings.new_entry"], "{section:#?}");
    let finding = &section.findings[0];
    assert_eq!(finding.severity, Severity::Note);
    insta::assert_snapshot!(format!("{}\n{}", finding.message, finding.advice), @"
    these entries are new since your `plimsoll init`: PreModelSwitch (plimsoll-post-tool)
    run `plimsoll init --local` again
    ");
    let updated = with_our_hooks(&older, HookSupport::Modern);
    assert_eq!(finding_codes(&check(MODERN, &[(SettingsScope::Local, &updated)])), [""; 0]);
    // Another missing entry is a problem, and its advice adds both.
    let incomplete = older.replace("\"Stop\"", "\"Stopp\"");
    let section = check(MODERN, &[(SettingsScope::Local, &incomplete)]);
    assert_eq!(finding_codes(&section), ["settings.older_than_client"], "{section:#?}");
}

/// The events of 2.1.332, from `HookInput` in the client's declarations.
const EVENTS_OF_CURRENT_CLIENT: [&str; 34] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionDenied",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "PostModelSwitch",
    "PermissionRequest",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "InstructionsLoaded",
    "WorktreeCreate",
    "WorktreeRemove",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "MessageDisplay",
    "PreSkillShellCommand",
];

#[test]
fn a_users_hooks_for_events_of_the_current_client_are_only_reported_to_old_clients() {
    for event in EVENTS_OF_CURRENT_CLIENT {
        let hooks =
            format!(r#"{{"hooks": {{"{event}": [{{"hooks": [{{"type": "command", "command": "x"}}]}}]}}}}"#);
        let codes_for = |version, hook_support| {
            let section = check(version, &[(SettingsScope::Local, &with_our_hooks(&hooks, hook_support))]);
            finding_codes(&section).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(codes_for((2, 1, 332), HookSupport::Modern), [""; 0], "{event}");
        assert_eq!(codes_for((2, 1, 101), HookSupport::Classic), [""; 0], "{event}");
        let is_old_event = EVENTS_OF_OLDEST_CLIENT.contains(&event);
        let expected: &[&str] = if is_old_event { &[] } else { &["settings.unknown_event"] };
        assert_eq!(codes_for((2, 0, 77), HookSupport::Classic), expected, "{event}");
    }
}

#[test]
fn a_missing_entry_is_reported_with_its_event_and_file() {
    let text = with_our_hooks("{}", HookSupport::Modern);
    let start = text.find("\"PreCompact\"").unwrap();
    let end = text.find("\"PostCompact\"").unwrap();
    let section = check(MODERN, &[(SettingsScope::Local, &format!("{}{}", &text[..start], &text[end..]))]);
    assert_eq!(finding_codes(&section), ["settings.incomplete"], "{section:#?}");
    let finding = &section.findings[0];
    insta::assert_snapshot!(format!("{}\n{}", finding.message, finding.advice), @"
    entries of ours are missing: PreCompact (plimsoll-pre-compact)
    run `plimsoll init --local` again
    ");
    assert_eq!(finding.path.as_deref(), Some("local.json"));
}

#[test]
fn programs_for_windows_are_problems_on_other_systems_only() {
    let with_programs_in = |folder: &str| {
        let command_for = |program: &str| format!("C:/{folder}/{program}.exe");
        install_or_update_our_entries("{}", HookSupport::Modern, &command_for).unwrap().text
    };
    let (plain, spaced) = (with_programs_in("Users/JANEDO~1"), with_programs_in("Users/Jane Doe"));
    let status_line = r#"{"statusLine": {"type": "command", "command": "C:/a/plimsoll-statusline.exe"}}"#;
    let other = r#"{"statusLine": {"type": "command", "command": "C:/a/starship.exe"}}"#;
    // Each spelling as the only program: (command, is ours for Windows).
    for (command, is_problem) in [
        (r"C:\Users\u\plimsoll\plimsoll-statusline.exe", true),
        (r#""C:\Program Files\plimsoll\plimsoll-statusline.exe" --x"#, true),
        ("/mnt/c/plimsoll/plimsoll-statusline.exe", true),
        ("/usr/bin/plimsoll-statusline", false),
        (r"C:\ralph-statusline.exe", false),
    ] {
        let text = serde_json::json!({"statusLine": {"type": "command", "command": command}}).to_string();
        let section = check_on_system(MODERN, &[(SettingsScope::User, &text)], false);
        let is_reported = finding_codes(&section).contains(&"settings.windows_program");
        assert_eq!(is_reported, is_problem, "{command}: {section:#?}");
    }
    for (text, is_on_windows, expected) in [
        (plain.as_str(), true, vec![]),
        (&plain, false, vec!["settings.windows_program"]),
        (&spaced, true, vec!["settings.quoted_status_line"]),
        (&spaced, false, vec!["settings.windows_program"]),
        (status_line, false, vec!["settings.windows_program", "settings.none"]),
        (status_line, true, vec!["settings.none"]),
        (other, false, vec!["settings.none"]),
    ] {
        let section = check_on_system(MODERN, &[(SettingsScope::User, text)], is_on_windows);
        assert_eq!(finding_codes(&section), expected, "{is_on_windows}: {text}");
    }
}
