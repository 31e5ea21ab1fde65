use super::*;
use serde_json::json;

/// Returns the project settings that are kept, and the keys that are ignored.
fn kept_settings_and_ignored_keys(project_settings: &Value, user_settings: &Value) -> (Value, Vec<String>) {
    let mut kept_settings = project_settings.clone();
    let ignored = remove_forbidden_keys(&mut kept_settings, user_settings);
    (kept_settings, ignored.into_iter().map(|setting| setting.key).collect())
}

/// Collects the dotted keys of all values that are not objects, and of empty objects.
fn collect_keys(value: &Value, prefix: &str, keys: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let key = format!("{prefix}{key}");
        match value.as_object().filter(|inner| !inner.is_empty()) {
            Some(_) => collect_keys(value, &format!("{key}."), keys),
            None => keys.push(key),
        }
    }
}

#[test]
fn every_key_has_a_row() {
    let mut keys = Vec::new();
    collect_keys(&serde_json::to_value(Settings::default()).unwrap(), "", &mut keys);
    keys.retain(|key| key != OBJECT_WITH_USER_DEFINED_KEYS);
    assert!(keys.len() > 25, "{keys:?}");
    for key in keys {
        assert!(
            permission_for_key(&key).is_some(),
            "{key} has no row: what may a project's file do with it?"
        );
    }
}

#[test]
fn a_preference_holds_and_what_starts_or_sends_is_ignored() {
    let project = json!({
        "levels": { "l1": 50.0 },
        "linear": { "issue": "ENG-1", "key_command": "touch /tmp/x" },
        "statusline": { "lines": [["clock"]], "segments": { "clock": { "command": ["sh"], "format": "{value}" } } },
        "projects": { "/": {} },
    });
    let (kept_settings, ignored) = kept_settings_and_ignored_keys(&project, &json!({}));
    let expected = json!({
        "levels": { "l1": 50.0 },
        "linear": {},
        "statusline": { "lines": [["clock"]], "segments": { "clock": { "format": "{value}" } } },
    });
    assert_eq!(kept_settings, expected);
    let keys = ["linear.issue", "linear.key_command", "statusline.segments.clock.command", "projects"];
    assert_eq!(ignored, keys);
}

#[test]
fn a_segment_named_like_a_key_is_no_way_around() {
    let project = json!({ "statusline": { "segments": { "format": { "command": ["sh"] } } } });
    assert_eq!(
        kept_settings_and_ignored_keys(&project, &json!({})).1,
        ["statusline.segments.format.command"]
    );
}

#[test]
fn a_key_without_a_row_does_not_hold() {
    assert_eq!(
        kept_settings_and_ignored_keys(&json!({ "future": { "thing": 1 } }), &json!({})).1,
        ["future.thing"]
    );
}

#[test]
fn a_bound_is_only_tightened() {
    // The project's value, the user's value (`None` for the default), and whether the project's value is kept.
    for (key, project_value, user_value, is_kept) in [
        ("/verify_timeout_seconds", 60, None, true),
        ("/verify_timeout_seconds", 601, None, false),
        ("/verify_timeout_seconds", 601, Some(900), true),
        ("/verify_timeout_seconds", 60, Some(30), false),
        ("/idle_timeout_seconds", 0, None, false),
        ("/idle_timeout_seconds", 9000, Some(0), true),
        ("/idle_timeout_seconds", 0, Some(0), true),
        ("/breaker/no_progress", 1, None, true),
        ("/breaker/no_progress", 0, None, false),
        ("/breaker/no_progress", 4, None, false),
        ("/breaker/no_progress", 4, Some(0), true),
        ("/thrash/checkpoints", 0, None, false),
        ("/thrash/minutes", 14, None, false),
        ("/thrash/minutes", 60, None, true),
        ("/margins/l3", 9_999, None, false),
        ("/margins/l3", 15_000, None, true),
        ("/handoff_bytes", 1 << 30, None, false),
        ("/freshness_wait_ms", 100_000, None, false),
    ] {
        let (kept_settings, ignored) = kept_settings_and_ignored_keys(
            &object_with_value_at(key, project_value),
            &user_value.map_or(json!({}), |own| object_with_value_at(key, own)),
        );
        assert_eq!(
            kept_settings.pointer(key).is_some(),
            is_kept,
            "{key}: {project_value} over {user_value:?}"
        );
        assert_eq!(ignored.is_empty(), is_kept, "{key}: {project_value} over {user_value:?}");
    }
}

fn object_with_value_at(pointer: &str, value: u64) -> Value {
    let keys = pointer.split('/').skip(1).collect::<Vec<_>>();
    keys.into_iter().rev().fold(json!(value), |value, key| json!({ key: value }))
}

#[test]
fn the_bound_that_holds_is_named() {
    let mut project = json!({ "breaker": { "refused": 9 } });
    let ignored = remove_forbidden_keys(&mut project, &json!({ "breaker": { "refused": 2 } }));
    assert_eq!(
        ignored,
        [IgnoredKey { key: "breaker.refused".into(), reason: IgnoredReason::LoosensLimit("2".into()) }]
    );
}
