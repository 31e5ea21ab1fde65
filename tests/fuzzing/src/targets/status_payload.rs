//! What the client hands to a status line.

use super::Target;
use crate::seeds::files;
use crate::spoil::{behind_a_mark, spoil};
use plimsoll_domain::Settings;
use plimsoll_policy::thresholds::{CompactionConfig, compute_auto_compact, compute_thresholds};
use plimsoll_protocol::status::StatusPayload;

pub(super) const TARGET: Target = Target { name: "status_payload", body, seeds, inputs: 20_000 };

/// A field and how it reads.
type Field = (&'static str, fn(&StatusPayload) -> String);

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = files("fixtures/statusline", ".json");
    seeds.extend(files("fixtures/pairs", ".status.json").into_iter().step_by(5));
    seeds
}

fn body(bytes: &[u8]) {
    let quick = StatusPayload::parse(bytes).ok();
    let patient = StatusPayload::parse(&behind_a_mark(bytes)).ok();
    assert_eq!(format!("{quick:?}"), format!("{patient:?}"), "both ways of reading say the same");
    let Some(payload) = quick else {
        assert!(spoil(bytes).is_none_or(|spoiled| StatusPayload::parse(spoiled.before.as_bytes()).is_ok()));
        return;
    };
    levels(&payload);
    let Some(spoiled) = spoil(bytes) else { return };
    let read = |text: &str| StatusPayload::parse(text.as_bytes()).expect("an object");
    let (before, after) = (read(&spoiled.before), read(&spoiled.after));
    assert_eq!(format!("{before:?}"), format!("{:?}", read(&spoiled.richer)), "a later client's field");
    let fields: [Field; 11] = [
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
    for (_, field) in fields.iter().filter(|(name, _)| *name != spoiled.key) {
        assert_eq!(field(&before), field(&after), "{} costs only itself", spoiled.key);
    }
}

/// Whatever window the client tells, the levels rise and come before the client acts.
fn levels(payload: &StatusPayload) {
    let Some(window) = payload.context_window.context_window_size else { return };
    let settings = Settings::default();
    let knobs = CompactionConfig {
        compaction_window: payload.context_window.used_tokens(),
        ..CompactionConfig::default()
    };
    for knobs in [CompactionConfig::default(), knobs] {
        let auto_compact = compute_auto_compact(window, payload.model.id.as_deref(), &knobs);
        let thresholds = compute_thresholds(window, auto_compact, &settings.levels, &settings.margins, 0);
        let rising = [thresholds.l1, thresholds.l2, thresholds.l3, auto_compact.tokens];
        assert!(rising.is_sorted() && auto_compact.tokens <= window, "{thresholds:?}");
        assert!(
            payload
                .context_window
                .used_tokens()
                .is_none_or(|used| thresholds.percent_of_window(used) <= u64::MAX / window.max(1))
        );
        let _ = plimsoll_domain::reading::rounded_percent(
            payload.context_window.used_tokens().unwrap_or(0),
            window,
        );
    }
}
