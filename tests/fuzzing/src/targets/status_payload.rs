//! The payload that the client passes to a status line.

use super::Target;
use crate::seeds::read_files;
use crate::spoil::{spoil_one_field, with_byte_order_mark};
use plimsoll_domain::Settings;
use plimsoll_policy::thresholds::{
    CompactionConfig, compute_auto_compact_threshold_and_action, compute_thresholds,
};
use plimsoll_protocol::status::StatusPayload;

pub(super) const TARGET: Target =
    Target { name: "status_payload", check_input, seeds, mutated_input_count: 20_000 };

/// The name of a field, and a function that reads it.
type FieldReader = (&'static str, fn(&StatusPayload) -> String);

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = read_files("fixtures/statusline", ".json");
    seeds.extend(read_files("fixtures/pairs", ".status.json").into_iter().step_by(5));
    seeds
}

fn check_input(bytes: &[u8]) {
    let from_fast_path = StatusPayload::parse(bytes).ok();
    let from_slow_path = StatusPayload::parse(&with_byte_order_mark(bytes)).ok();
    assert_eq!(
        format!("{from_fast_path:?}"),
        format!("{from_slow_path:?}"),
        "both ways of reading say the same"
    );
    let Some(payload) = from_fast_path else {
        assert!(
            spoil_one_field(bytes)
                .is_none_or(|spoiled| StatusPayload::parse(spoiled.original.as_bytes()).is_ok())
        );
        return;
    };
    check_thresholds(&payload);
    let Some(spoiled) = spoil_one_field(bytes) else { return };
    let parse = |text: &str| StatusPayload::parse(text.as_bytes()).expect("an object");
    let (before, after) = (parse(&spoiled.original), parse(&spoiled.with_bad_field));
    assert_eq!(
        format!("{before:?}"),
        format!("{:?}", parse(&spoiled.with_extra_field)),
        "a later client's field"
    );
    let fields: [FieldReader; 11] = [
        ("session_id", |payload| format!("{:?}", payload.session_id)),
        ("transcript_path", |payload| format!("{:?}", payload.transcript_path)),
        ("cwd", |payload| format!("{:?}", payload.cwd)),
        ("model", |payload| format!("{:?}", payload.model)),
        ("workspace", |payload| format!("{:?}", payload.workspace)),
        ("cost", |payload| format!("{:?}", payload.cost)),
        ("context_window", |payload| format!("{:?}", payload.context_window)),
        ("version", |payload| format!("{:?}", payload.version)),
        ("effort", |payload| format!("{:?}", payload.effort)),
        ("prompt_cache", |payload| format!("{:?}", payload.prompt_cache)),
        ("rate_limits", |payload| format!("{:?}", payload.rate_limits)),
    ];
    for (_, field) in fields.iter().filter(|(name, _)| *name != spoiled.spoiled_key) {
        assert_eq!(field(&before), field(&after), "{} costs only itself", spoiled.spoiled_key);
    }
}

/// Asserts that for any window size the thresholds are in ascending order and are reached before the client compacts.
fn check_thresholds(payload: &StatusPayload) {
    let Some(window) = payload.context_window.context_window_size else { return };
    let settings = Settings::default();
    let config_with_window = CompactionConfig {
        compaction_window: payload.context_window.reported_or_estimated_used_tokens(),
        ..CompactionConfig::default()
    };
    for config in [CompactionConfig::default(), config_with_window] {
        let auto_compact =
            compute_auto_compact_threshold_and_action(window, payload.model.id.as_deref(), &config);
        let thresholds = compute_thresholds(window, auto_compact, &settings.levels, &settings.margins, 0);
        let boundaries = [thresholds.l1, thresholds.l2, thresholds.l3, auto_compact.tokens];
        assert!(boundaries.is_sorted() && auto_compact.tokens <= window, "{thresholds:?}");
        assert!(
            payload
                .context_window
                .reported_or_estimated_used_tokens()
                .is_none_or(|used| thresholds.percent_of_window(used) <= u64::MAX / window.max(1))
        );
        let _ = plimsoll_domain::reading::rounded_percent(
            payload.context_window.reported_or_estimated_used_tokens().unwrap_or(0),
            window,
        );
    }
}
