use super::super::codes;
use super::*;
use plimsoll_protocol::settings::{Parts, differences, install, survey};

const MODERN: (u32, u32, u32) = (2, 1, 329);

fn bare(program: &str) -> String {
    program.to_owned()
}

fn ours(with: &str, era: HookSupport) -> String {
    install(with, era, &bare).map(|merged| merged.text).unwrap_or_default()
}

fn look(client: (u32, u32, u32), files: &[(Scope, &str)]) -> Section {
    let era = HookSupport::of_client(&format!("{}.{}.{}", client.0, client.1, client.2));
    let file = |(scope, text): &(Scope, &str)| SettingsFile {
        path: format!("{}.json", scope.words()),
        scope: *scope,
        survey: survey(text).map_err(|place| ReadFailure::new(&place)),
        differences: differences(text, era).unwrap_or_default(),
    };
    section(&SettingsFacts {
        files: files.iter().map(file).collect(),
        client: Some(client),
        era: Some(era),
        plugin: None,
    })
}

#[test]
fn each_trouble_of_the_settings_has_its_finding() {
    let modern = ours("{}", HookSupport::Modern);
    let classic = ours("{}", HookSupport::Classic);
    let absolute = install("{}", HookSupport::Modern, &|program| format!("/opt/{program}"))
        .map(|merged| merged.text)
        .unwrap();
    let without_stop = modern.replace("\"Stop\"", "\"InstructionsLoaded\"");
    let slower = modern.replacen("\"timeout\": 20", "\"timeout\": 60", 1);
    let off = r#"{"disableAllHooks": true}"#;
    let on = r#"{"disableAllHooks": false}"#;
    let managed = r#"{"allowManagedHooksOnly": true}"#;
    let line = r#"{"statusLine": {"type": "command", "command": "starship"}}"#;
    let bad_line = r#"{"statusLine": "starship"}"#;
    let with_memory = install("{}", HookSupport::Modern.with_memory(), &bare).unwrap().text;
    let guarded = Parts { guarded: true, ..HookSupport::Modern.into() };
    let guarded = install("{}", guarded, &bare).unwrap().text;
    let old = (2, 0, 77);
    use Scope::{Local, Managed, Project, User};
    for (client, files, expected) in [
        (MODERN, vec![(Project, modern.as_str())], vec![]),
        (old, vec![(Project, classic.as_str())], vec![]),
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
        (old, vec![(Project, &modern)], vec!["settings.unknown_event", "settings.newer_than_client"]),
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
        (old, vec![(Project, &guarded)], vec!["settings.unknown_event", "settings.newer_than_client"]),
    ] {
        let section = look(client, &files);
        let is_bare = files.iter().any(|(scope, text)| {
            *scope == Project && text.contains("plimsoll-") && !text.contains("--guarded")
        });
        let bare = is_bare.then_some("settings.unguarded");
        let mut found = codes(&section);
        assert_eq!(found.iter().position(|code| Some(*code) == bare).map(|at| found.remove(at)), bare);
        assert_eq!(found, expected, "{section:#?}");
    }
}

#[test]
fn a_missing_entry_is_named_with_its_event_and_its_file() {
    let text = ours("{}", HookSupport::Modern);
    let start = text.find("\"PreCompact\"").unwrap();
    let end = text.find("\"PostCompact\"").unwrap();
    let section = look(MODERN, &[(Scope::Local, &format!("{}{}", &text[..start], &text[end..]))]);
    assert_eq!(codes(&section), ["settings.incomplete"], "{section:#?}");
    let finding = &section.findings[0];
    insta::assert_snapshot!(format!("{}\n{}", finding.what, finding.todo), @"
    entries of ours are missing: PreCompact (plimsoll-pre-compact)
    run `plimsoll init --local` again
    ");
    assert_eq!(finding.place.as_deref(), Some("local.json"));
}
