//! Plimsoll's own settings: the project's file overrides the user's.

use super::Target;
use crate::draw::{Draw, split_at_separator};
use crate::seeds::text_seeds;
use plimsoll_domain::Settings;
use plimsoll_domain::state::merge_keeping_unknown_fields;
use plimsoll_domain::statusline::{Color, SegmentFormat};
use plimsoll_policy::thresholds::{
    CompactionConfig, compute_auto_compact_threshold_and_action, compute_thresholds,
};
use serde_json::Value;

pub(super) const TARGET: Target =
    Target { name: "plimsoll_settings", check_input, seeds, mutated_input_count: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    let full = serde_json::to_string(&Settings::default()).expect("JSON");
    let mut seeds = vec![full.into_bytes()];
    seeds.extend(text_seeds(&[
        "{}",
        r#"{"levels":{"l1":50.5,"l2":60,"l3":70},"windows":{"claude-x[1m]":1000000}}"#,
        r#"{"margins":{"l2":1,"l3":0},"thrash":{"checkpoints":0},"breaker":{"no_progress":0}}"#,
        "bright-blue",
        "#ff8800",
        "208",
        r"{a}[ {b}\]] \{",
    ]));
    seeds.push(b"{\"levels\":{\"l1\":1}}\xff{\"margins\":{\"l2\":9,\"l3\":8}}".to_vec());
    seeds
}

fn check_input(bytes: &[u8]) {
    let (project_bytes, user_bytes) = split_at_separator(bytes);
    let text = String::from_utf8_lossy(project_bytes).into_owned();
    if let Ok(color) = Color::try_from(text.clone()) {
        let name = String::from(color);
        assert_eq!(Color::try_from(name.clone()), Ok(color));
        let is_color_code = |code: &str| code.chars().all(|letter| letter.is_ascii_digit() || letter == ';');
        assert!(
            is_color_code(&color.foreground_sgr_parameters())
                && is_color_code(&color.background_sgr_parameters())
        );
        assert_eq!(name, text.to_lowercase(), "a colour has one name");
    }
    check_format(text);
    let Some(settings) = parse_settings(project_bytes) else { return };
    let encoded = serde_json::to_string(&settings).expect("JSON");
    assert_eq!(parse_settings(encoded.as_bytes()).as_ref(), Some(&settings), "written and read");
    check_thresholds(&settings, &mut Draw::from_bytes(user_bytes));
    // Merging two valid files gives valid settings.
    let (Ok(mut combined), Ok(value)) =
        (serde_json::from_slice::<Value>(user_bytes), serde_json::from_slice::<Value>(project_bytes))
    else {
        return;
    };
    if parse_settings(user_bytes).is_some() {
        merge_keeping_unknown_fields(&mut combined, value);
        assert!(serde_json::from_value::<Settings>(combined).is_ok());
    }
}

/// Parses a settings file as the store does: it must be an object and pass the validation.
fn parse_settings(bytes: &[u8]) -> Option<Settings> {
    serde_json::from_slice::<Value>(bytes).ok().filter(Value::is_object)?;
    serde_json::from_slice::<Settings>(bytes)
        .ok()
        .filter(|settings| settings.find_validation_error().is_none())
}

fn check_thresholds(settings: &Settings, draw: &mut Draw<'_>) {
    for window in [draw.number(), 200_000, 1_000_000].into_iter().chain(settings.windows.values().copied()) {
        let auto_compact =
            compute_auto_compact_threshold_and_action(window, None, &CompactionConfig::default());
        let thresholds =
            compute_thresholds(window, auto_compact, &settings.levels, &settings.margins, draw.number());
        assert!(
            [thresholds.l1, thresholds.l2, thresholds.l3, auto_compact.tokens].is_sorted(),
            "{thresholds:?}"
        );
    }
}

fn check_format(text: String) {
    let Ok(format) = SegmentFormat::try_from(text) else { return };
    let source = format.as_str();
    assert!(!source.contains(char::is_control), "{source:?}");
    let no_value = |_: &str| None;
    let every_value = |_: &str| Some("v");
    assert_eq!(
        plimsoll_domain::statusline::format::render_unless_all_fields_empty(source, &|_| true, &no_value),
        None,
        "nothing but text"
    );
    let rendered =
        plimsoll_domain::statusline::format::render_unless_all_fields_empty(source, &|_| true, &every_value)
            .unwrap_or_default();
    let shorter =
        plimsoll_domain::statusline::format::render_unless_all_fields_empty(source, &|_| false, &every_value)
            .unwrap_or_default();
    assert!(shorter.len() <= rendered.len() && rendered.len() <= source.len());
}
