//! Our own settings, of the project over the user's.

use super::Target;
use crate::draw::{Draw, parts};
use crate::seeds::texts;
use plimsoll_domain::Settings;
use plimsoll_domain::state::merge_known_fields;
use plimsoll_domain::statusline::{Color, SegmentFormat};
use plimsoll_policy::thresholds::{CompactionConfig, compute_auto_compact, compute_thresholds};
use serde_json::Value;

pub(super) const TARGET: Target = Target { name: "plimsoll_settings", body, seeds, inputs: 20_000 };

fn seeds() -> Vec<Vec<u8>> {
    let full = serde_json::to_string(&Settings::default()).expect("JSON");
    let mut seeds = vec![full.into_bytes()];
    seeds.extend(texts(&[
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

fn body(bytes: &[u8]) {
    let (above, below) = parts(bytes);
    let text = String::from_utf8_lossy(above).into_owned();
    if let Ok(colour) = Color::try_from(text.clone()) {
        let name = String::from(colour);
        assert_eq!(Color::try_from(name.clone()), Ok(colour));
        let is_code = |code: &str| code.chars().all(|letter| letter.is_ascii_digit() || letter == ';');
        assert!(is_code(&colour.foreground_parameters()) && is_code(&colour.background_parameters()));
        assert_eq!(name, text.to_lowercase(), "a colour has one name");
    }
    format(text);
    let Some(settings) = read(above) else { return };
    let written = serde_json::to_string(&settings).expect("JSON");
    assert_eq!(read(written.as_bytes()).as_ref(), Some(&settings), "written and read");
    levels(&settings, &mut Draw::from(below));
    // Laid over a good file, a good file gives settings.
    let (Ok(mut combined), Ok(value)) =
        (serde_json::from_slice::<Value>(below), serde_json::from_slice::<Value>(above))
    else {
        return;
    };
    if read(below).is_some() {
        merge_known_fields(&mut combined, value);
        assert!(serde_json::from_value::<Settings>(combined).is_ok());
    }
}

/// As the store takes it: what parses and makes sense.
fn read(bytes: &[u8]) -> Option<Settings> {
    serde_json::from_slice::<Value>(bytes).ok().filter(Value::is_object)?;
    serde_json::from_slice::<Settings>(bytes)
        .ok()
        .filter(|settings| settings.find_validation_error().is_none())
}

fn levels(settings: &Settings, draw: &mut Draw<'_>) {
    for window in [draw.number(), 200_000, 1_000_000].into_iter().chain(settings.windows.values().copied()) {
        let auto_compact = compute_auto_compact(window, None, &CompactionConfig::default());
        let thresholds =
            compute_thresholds(window, auto_compact, &settings.levels, &settings.margins, draw.number());
        assert!(
            [thresholds.l1, thresholds.l2, thresholds.l3, auto_compact.tokens].is_sorted(),
            "{thresholds:?}"
        );
    }
}

fn format(text: String) {
    let Ok(format) = SegmentFormat::try_from(text) else { return };
    let source = format.as_str();
    assert!(!source.contains(char::is_control), "{source:?}");
    let empty = |_: &str| None;
    let full = |_: &str| Some("v");
    assert_eq!(
        plimsoll_domain::statusline::format::render(source, &|_| true, &empty),
        None,
        "nothing but text"
    );
    let written = plimsoll_domain::statusline::format::render(source, &|_| true, &full).unwrap_or_default();
    let shorter = plimsoll_domain::statusline::format::render(source, &|_| false, &full).unwrap_or_default();
    assert!(shorter.len() <= written.len() && written.len() <= source.len());
}
