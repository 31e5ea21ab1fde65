use super::*;
use serde_json::json;

/// What is left of a project's settings, and which keys do not hold.
fn restricted(project: &Value, without: &Value) -> (Value, Vec<String>) {
    let mut left = project.clone();
    let ignored = restrict(&mut left, without);
    (left, ignored.into_iter().map(|one| one.key).collect())
}

/// The keys of settings, with their parts.
fn keys(value: &Value, before: &str, found: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let key = format!("{before}{key}");
        match value.as_object().filter(|inner| !inner.is_empty()) {
            Some(_) => keys(value, &format!("{key}."), found),
            None => found.push(key),
        }
    }
}

#[test]
fn every_key_has_a_row() {
    let mut all = Vec::new();
    keys(&serde_json::to_value(Settings::default()).unwrap(), "", &mut all);
    all.retain(|key| key != NAMED);
    assert!(all.len() > 25, "{all:?}");
    for key in all {
        assert!(may(&key).is_some(), "{key} has no row: what may a project's file do with it?");
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
    let (left, ignored) = restricted(&project, &json!({}));
    let expected = json!({
        "levels": { "l1": 50.0 },
        "linear": {},
        "statusline": { "lines": [["clock"]], "segments": { "clock": { "format": "{value}" } } },
    });
    assert_eq!(left, expected);
    let keys = ["linear.issue", "linear.key_command", "statusline.segments.clock.command", "projects"];
    assert_eq!(ignored, keys);
}

#[test]
fn a_segment_named_like_a_key_is_no_way_around() {
    let project = json!({ "statusline": { "segments": { "format": { "command": ["sh"] } } } });
    assert_eq!(restricted(&project, &json!({})).1, ["statusline.segments.format.command"]);
}

#[test]
fn a_key_without_a_row_does_not_hold() {
    assert_eq!(restricted(&json!({ "future": { "thing": 1 } }), &json!({})).1, ["future.thing"]);
}

#[test]
fn a_bound_is_only_tightened() {
    // The project's value, the user's (none: the default), and whether the project's holds.
    for (key, wanted, own, holds) in [
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
        let (left, ignored) = restricted(&at(key, wanted), &own.map_or(json!({}), |own| at(key, own)));
        assert_eq!(left.pointer(key).is_some(), holds, "{key}: {wanted} over {own:?}");
        assert_eq!(ignored.is_empty(), holds, "{key}: {wanted} over {own:?}");
    }
}

fn at(pointer: &str, value: u64) -> Value {
    let keys = pointer.split('/').skip(1).collect::<Vec<_>>();
    keys.into_iter().rev().fold(json!(value), |value, key| json!({ key: value }))
}

#[test]
fn the_bound_that_holds_is_named() {
    let mut project = json!({ "breaker": { "refused": 9 } });
    let ignored = restrict(&mut project, &json!({ "breaker": { "refused": 2 } }));
    assert_eq!(ignored, [Ignored { key: "breaker.refused".into(), why: Why::Bound("2".into()) }]);
}
