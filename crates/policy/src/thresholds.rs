//! Where the levels begin: the configured shares of the window, moved down so that L2 and L3 always come
//! before the client itself acts.

use crate::window::family_name;
use plimsoll_domain::level::{AutoCompact, AutoCompactAction, Thresholds};
use plimsoll_domain::reading::{percent, tokens_shown_as};
use plimsoll_domain::record::CompactionWindow;
use plimsoll_domain::settings::{Levels, Margins};
use plimsoll_protocol::client_environment::LEAST_COMPACTION_WINDOW;

/// What moves the auto-compact threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionConfig {
    /// False with `DISABLE_AUTO_COMPACT`, `DISABLE_COMPACT` or `autoCompactEnabled: false`.
    pub auto_compact: bool,
    /// `CLAUDE_CODE_AUTO_COMPACT_WINDOW` or `autoCompactWindow`.
    pub compact_window: Option<u64>,
    /// `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE`.
    pub percent_override: Option<f64>,
    /// `CLAUDE_CODE_MAX_OUTPUT_TOKENS`.
    pub max_output: Option<u64>,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        CompactionConfig {
            auto_compact: true,
            compact_window: None,
            percent_override: None,
            max_output: None,
        }
    }
}

/// The client (2.1.329) reserves the longest possible answer of the model, but at most this many tokens: with a window of
/// 1,000,000 it compacts at 967,000.
const ANSWER_RESERVE: u64 = 20_000;
/// It compacts this far below that room …
const COMPACT_BELOW: u64 = 13_000;
/// … and refuses to continue this far below it, with compaction off.
const REFUSE_BELOW: u64 = 3_000;
/// L1 comes at least this many points of the window before L2, or the warning would come with the checkpoint …
const WARNING_LEAD_PERCENT: u64 = 10;
/// … but no more than this part of the room: a small compaction window in a large one would leave nothing below L1.
const WARNING_LEAD_OF_ROOM_PERCENT: u64 = 20;
/// A larger step than two large Reads (of about 20,000 tokens) moves L2 no further. What looks larger may be several steps
/// that no hook saw; and a session that once read five files at once would lose half of a small window.
const LARGEST_STEP: u64 = 40_000;

/// Models for which the client (2.1.329) never compacts at a threshold, only after the API has refused a prompt as too long.
const NEVER_BY_THRESHOLD: [&str; 5] = ["haiku-4-5", "sonnet-4-5", "opus-4-5", "sonnet-4", "3-7-sonnet"];
/// The same for these with the `[1m]` suffix.
const NEVER_WITH_SUFFIX: [&str; 2] = ["opus-4-6", "sonnet-4-6"];

/// Returns the window that the client's settings give it to compact in; none if it chooses one itself. The first that holds
/// for the model counts, and a model's dated, `[1m]`, Bedrock and Vertex names are the same model (2.1.329).
pub fn compaction_window(windows: &[CompactionWindow], model: Option<&str>) -> Option<u64> {
    let family = model.map(family_name);
    let holds = |window: &&CompactionWindow| match &window.model {
        Some(model) => family == Some(family_name(model)),
        None => true,
    };
    windows.iter().find(holds)?.tokens
}

/// The fill at which the client itself acts.
pub fn auto_compact(window: u64, model: Option<&str>, knobs: &CompactionConfig) -> AutoCompact {
    let reserve = knobs.max_output.unwrap_or(ANSWER_RESERVE).min(ANSWER_RESERVE);
    // With compaction off the client stops by itself, without asking the API (2.1.329).
    if !knobs.auto_compact {
        let tokens = window.saturating_sub(reserve + REFUSE_BELOW);
        return AutoCompact { tokens, action: AutoCompactAction::Refuses };
    }
    // A compaction window that was set by hand switches the threshold on for these models, too (2.1.329).
    if knobs.compact_window.is_none() && model.is_some_and(never_by_threshold) {
        return AutoCompact { tokens: window, action: AutoCompactAction::Rejected };
    }
    let compact_window =
        knobs.compact_window.map_or(window, |tokens| tokens.max(LEAST_COMPACTION_WINDOW).min(window));
    let effective = compact_window.saturating_sub(reserve);
    let threshold = effective.saturating_sub(COMPACT_BELOW);
    // The client takes the smaller of the two: 99 and 100 change nothing (2.1.329).
    let earlier = knobs
        .percent_override
        .filter(|percent| (0.0..=100.0).contains(percent) && *percent > 0.0)
        .map_or(threshold, |percent| (effective as f64 * percent / 100.0) as u64);
    AutoCompact { tokens: threshold.min(earlier), action: AutoCompactAction::Compacts }
}

fn never_by_threshold(model: &str) -> bool {
    let name = family_name(model);
    let with_suffix = model.ends_with("[1m]") && NEVER_WITH_SUFFIX.contains(&name);
    with_suffix || NEVER_BY_THRESHOLD.contains(&name)
}

/// Where the levels begin in a window: each where the percent of readings changes to the one that is announced for it,
/// so at most one percent below what was asked for. L2 also leaves room for the largest step of this session so far (in
/// tokens; 0 before the first): a step begun just below L2 must not end beyond the point where the client compacts.
pub fn thresholds(
    window: u64,
    auto_compact: AutoCompact,
    levels: &Levels,
    margins: &Margins,
    largest_step: u64,
) -> Thresholds {
    let share = |percent: f64| (window as f64 * percent / 100.0).round() as u64;
    let whole = |tokens: u64| percent(tokens, window).map_or(0, |percent| tokens_shown_as(percent, window));
    // A window too small for the margins is divided instead, so that the levels still rise.
    let room = auto_compact.tokens.min(window);
    let below = |margin: u64, tenths: u64| room.saturating_sub(margin.min(room.saturating_mul(tenths) / 10));
    let l3 = whole(share(levels.l3).min(below(margins.l3, 3)));
    let l2 = whole(
        share(levels.l2)
            .min(below(margins.l2.max(largest_step.min(LARGEST_STEP)), 5))
            .min(l3.saturating_sub(1)),
    );
    let lead =
        window.saturating_mul(WARNING_LEAD_PERCENT).min(room.saturating_mul(WARNING_LEAD_OF_ROOM_PERCENT));
    let l1 = whole(share(levels.l1).min(l2.saturating_sub(lead / 100)));
    let clamped = l3 < whole(share(levels.l3)) || l2 < whole(share(levels.l2));
    Thresholds { window, l1, l2, l3, auto_compact, clamped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto_compact_of(
        window: u64,
        model: &str,
        change: impl FnOnce(&mut CompactionConfig),
    ) -> (u64, AutoCompactAction) {
        let mut knobs = CompactionConfig::default();
        change(&mut knobs);
        let auto_compact = auto_compact(window, Some(model), &knobs);
        (auto_compact.tokens, auto_compact.action)
    }

    #[test]
    fn no_window_is_too_large_to_have_levels() {
        for window in [u64::MAX, u64::MAX / 2, 1 << 62, 9_007_199_254_740_993] {
            let auto_compact = auto_compact(window, None, &CompactionConfig::default());
            let thresholds = thresholds(window, auto_compact, &Levels::default(), &Margins::default(), 0);
            assert!(
                [thresholds.l1, thresholds.l2, thresholds.l3, auto_compact.tokens].is_sorted(),
                "{thresholds:?}"
            );
        }
    }

    #[test]
    fn the_first_compaction_window_that_holds_for_the_model_counts() {
        let of = |model: Option<&str>, tokens| CompactionWindow { model: model.map(str::to_owned), tokens };
        let windows = [
            of(Some("claude-sonnet-4-5"), Some(150_000)),
            of(Some("us.anthropic.claude-opus-4-6-20260205-v1:0"), None),
            of(None, Some(300_000)),
            of(Some("claude-opus-5-5"), Some(400_000)),
            of(None, Some(500_000)),
        ];
        for (model, expected) in [
            (Some("claude-sonnet-4-5"), Some(150_000)),
            (Some("claude-sonnet-4-5-20250929"), Some(150_000)),
            (Some("claude-sonnet-4-5@20250929"), Some(150_000)),
            (Some("claude-sonnet-4-5[1m]"), Some(150_000)),
            (Some("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"), Some(150_000)),
            // Its own choice, whatever the files behind say.
            (Some("claude-opus-4-6[1m]"), None),
            // A farther file does not override the one for all of a nearer one.
            (Some("claude-opus-5-5"), Some(300_000)),
            (Some("claude-sonnet-4"), Some(300_000)),
            (None, Some(300_000)),
        ] {
            assert_eq!(compaction_window(&windows, model), expected, "{model:?}");
        }
        assert_eq!(compaction_window(&windows[..2], Some("claude-opus-5-5")), None);
    }

    #[test]
    fn auto_compaction_lies_where_the_client_was_seen_to_act() {
        use AutoCompactAction::{Compacts, Refuses, Rejected};
        let (million, small) = (1_000_000, 200_000);
        let none = |_: &mut CompactionConfig| ();
        assert_eq!(auto_compact_of(million, "claude-opus-5-5", none), (967_000, Compacts));
        assert_eq!(auto_compact_of(small, "claude-opus-4-6", none), (167_000, Compacts));
        assert_eq!(auto_compact_of(small, "claude-haiku-4-5", none), (200_000, Rejected));
        assert_eq!(auto_compact_of(million, "claude-sonnet-4-6[1m]", none), (1_000_000, Rejected));
        let window = |tokens| move |knobs: &mut CompactionConfig| knobs.compact_window = Some(tokens);
        assert_eq!(auto_compact_of(small, "claude-haiku-4-5", window(200_000)), (167_000, Compacts));
        assert_eq!(auto_compact_of(small, "claude-opus-4-6", window(150_000)), (117_000, Compacts));
        assert_eq!(auto_compact_of(small, "claude-opus-4-6", window(100_000)), (67_000, Compacts));
        assert_eq!(auto_compact_of(small, "claude-opus-4-6", window(50_000)), (67_000, Compacts));
        assert_eq!(
            auto_compact_of(million, "claude-opus-5-5", |knobs| knobs.max_output = Some(8_000)),
            (979_000, Compacts)
        );
        assert_eq!(
            auto_compact_of(million, "claude-opus-5-5", |knobs| knobs.percent_override = Some(50.0)),
            (490_000, Compacts)
        );
        assert_eq!(
            auto_compact_of(million, "claude-opus-5-5", |knobs| knobs.percent_override = Some(99.0)),
            (967_000, Compacts)
        );
        assert_eq!(
            auto_compact_of(million, "claude-opus-5-5", |knobs| knobs.auto_compact = false),
            (977_000, Refuses)
        );
        assert_eq!(
            auto_compact_of(small, "claude-opus-4-6", |knobs| knobs.auto_compact = false),
            (177_000, Refuses)
        );
    }

    fn percents(window: u64, model: &str, knobs: CompactionConfig) -> [u64; 3] {
        let thresholds = thresholds(
            window,
            auto_compact(window, Some(model), &knobs),
            &Levels::default(),
            &Margins::default(),
            0,
        );
        [thresholds.l1, thresholds.l2, thresholds.l3].map(|tokens| thresholds.percent(tokens))
    }

    #[test]
    fn levels_are_clamped_below_auto_compaction_with_room_to_act() {
        assert_eq!(percents(1_000_000, "claude-opus-5-5", CompactionConfig::default()), [70, 85, 95]);
        assert_eq!(percents(200_000, "claude-opus-4-6", CompactionConfig::default()), [64, 74, 79]);
        assert_eq!(percents(200_000, "claude-haiku-4-5", CompactionConfig::default()), [70, 85, 95]);
    }

    #[test]
    fn a_small_compaction_window_in_a_large_one_leaves_room_below_l1() {
        for (compact_window, expected) in
            [(100_000, [3, 5, 6]), (150_000, [7, 10, 11]), (300_000, [19, 25, 26]), (900_000, [70, 85, 86])]
        {
            let config =
                CompactionConfig { compact_window: Some(compact_window), ..CompactionConfig::default() };
            assert_eq!(percents(1_000_000, "claude-opus-5-5", config), expected, "{compact_window}");
        }
    }

    #[test]
    fn l2_leaves_room_for_the_largest_step_of_the_session() {
        let of = |margins: Margins, step: u64| {
            let auto_compact = auto_compact(200_000, None, &CompactionConfig::default());
            let thresholds = thresholds(200_000, auto_compact, &Levels::default(), &margins, step);
            assert_eq!(thresholds.auto_compact.tokens, 167_000);
            [thresholds.l1, thresholds.l2, thresholds.l3].map(|tokens| tokens / 1_000)
        };
        let default = Margins::default();
        assert_eq!(of(default, 0), [127, 147, 157]);
        assert_eq!(of(default, 20_000), [127, 147, 157], "less than the margin moves nothing");
        assert_eq!(of(default, 30_000), [117, 137, 157]);
        // What L2 was before it knew the session's steps; whatever looks larger moves it no further.
        assert_eq!(of(default, 40_000), [107, 127, 157]);
        assert_eq!(of(default, 90_000), [107, 127, 157]);
        assert_eq!(of(Margins { l2: 50_000, ..default }, 30_000), [97, 117, 157], "the user's own is larger");
        // In a large window the share decides, as before.
        let large = auto_compact(1_000_000, None, &CompactionConfig::default());
        let thresholds = thresholds(1_000_000, large, &Levels::default(), &default, 90_000);
        assert_eq!(thresholds.percent(thresholds.l2), 85);
    }

    /// The reading that is announced for a level, and the reading at which it fires, are one: for every level, window and
    /// auto-compact threshold, the percent that is announced is the first that is shown at or above the level.
    #[test]
    fn a_level_fires_exactly_at_the_percent_that_is_announced_for_it() {
        let mut seed: u64 = 0x5eed;
        let mut draw = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        for _ in 0..20_000 {
            let window = [200_000, 1_000_000, 1_000 + draw(3_000_000)][draw(3) as usize];
            let auto_compact =
                AutoCompact { tokens: draw(window + window / 10), action: AutoCompactAction::Compacts };
            let share = |draw: u64| 30.0 + draw as f64 / 10.0;
            let levels =
                Levels { l1: share(draw(300)), l2: share(300 + draw(200)), l3: share(500 + draw(200)) };
            let margins = Margins { l2: draw(60_000), l3: draw(30_000) };
            let thresholds = thresholds(window, auto_compact, &levels, &margins, 0);
            for threshold in [thresholds.l1, thresholds.l2, thresholds.l3] {
                let announced = thresholds.percent(threshold);
                let shown = |tokens: u64| percent(tokens, window).unwrap();
                assert_eq!(shown(threshold), announced, "shown where it fires: {thresholds:?}");
                if threshold > 0 {
                    assert!(
                        shown(threshold - 1) < announced,
                        "not shown before it fires: {threshold} in {thresholds:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn levels_rise_in_every_window_and_under_every_auto_compact_threshold() {
        for window in (1_000..2_000_000).step_by(7_919) {
            for auto_compact_tokens in [0, window / 10, window / 3, window * 9 / 10, window, window * 2] {
                let auto_compact =
                    AutoCompact { tokens: auto_compact_tokens, action: AutoCompactAction::Compacts };
                let thresholds = thresholds(window, auto_compact, &Levels::default(), &Margins::default(), 0);
                let rising = thresholds.l1 <= thresholds.l2
                    && thresholds.l2 <= thresholds.l3
                    && thresholds.l3 <= auto_compact_tokens.max(1);
                assert!(rising, "{window} {auto_compact_tokens} {thresholds:?}");
            }
        }
    }
}
