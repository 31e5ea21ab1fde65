//! Where the levels begin: the configured shares of the window, moved down so that L2 and L3 always come
//! before the client itself acts.

use crate::window::family_name;
use plimsoll_domain::level::{Ceiling, CeilingAction, Marks};
use plimsoll_domain::reading::{percent, tokens_shown_as};
use plimsoll_domain::settings::{Levels, Margins};

/// What moves the ceiling.
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

/// The client keeps room for one answer, at most so much (PROTOCOL §6).
const ANSWER_RESERVE: u64 = 20_000;
/// It compacts this far below that room …
const COMPACT_BELOW: u64 = 13_000;
/// … and refuses to continue this far below it, with compaction off.
const REFUSE_BELOW: u64 = 3_000;
/// The client raises a smaller compaction window to this.
const LEAST_COMPACT_WINDOW: u64 = 100_000;
/// L1 comes at least this many points of the window before L2, or the warning would come with the checkpoint.
const WARNING_LEAD_PERCENT: u64 = 5;

/// Models that never compact by a threshold, only after the API has refused a prompt (PROTOCOL §6).
const NEVER_BY_THRESHOLD: [&str; 5] = ["haiku-4-5", "sonnet-4-5", "opus-4-5", "sonnet-4", "3-7-sonnet"];
/// The same for these with the `[1m]` suffix.
const NEVER_WITH_SUFFIX: [&str; 2] = ["opus-4-6", "sonnet-4-6"];

/// The fill at which the client itself acts.
pub fn ceiling(window: u64, model: Option<&str>, knobs: &CompactionConfig) -> Ceiling {
    let reserve = knobs.max_output.unwrap_or(ANSWER_RESERVE).min(ANSWER_RESERVE);
    // With compaction off the client stops by itself, without asking the API (2.1.329).
    if !knobs.auto_compact {
        let tokens = window.saturating_sub(reserve + REFUSE_BELOW);
        return Ceiling { tokens, action: CeilingAction::Refuses };
    }
    // A compaction window that was set by hand switches the threshold on for these models, too (2.1.329).
    if knobs.compact_window.is_none() && model.is_some_and(never_by_threshold) {
        return Ceiling { tokens: window, action: CeilingAction::Rejected };
    }
    let compact_window =
        knobs.compact_window.map_or(window, |tokens| tokens.max(LEAST_COMPACT_WINDOW).min(window));
    let effective = compact_window.saturating_sub(reserve);
    let threshold = effective.saturating_sub(COMPACT_BELOW);
    // The client takes the smaller of the two: 99 and 100 change nothing (2.1.329).
    let earlier = knobs
        .percent_override
        .filter(|percent| (0.0..=100.0).contains(percent) && *percent > 0.0)
        .map_or(threshold, |percent| (effective as f64 * percent / 100.0) as u64);
    Ceiling { tokens: threshold.min(earlier), action: CeilingAction::Compacts }
}

fn never_by_threshold(model: &str) -> bool {
    let name = family_name(model);
    let with_suffix = model.ends_with("[1m]") && NEVER_WITH_SUFFIX.contains(&name.as_str());
    with_suffix || NEVER_BY_THRESHOLD.contains(&name.as_str())
}

/// Where the levels begin in a window: each where the percent of readings changes to the one that is announced for it,
/// so at most one percent below what was asked for.
pub fn marks(window: u64, ceiling: Ceiling, levels: &Levels, margins: &Margins) -> Marks {
    let share = |percent: f64| (window as f64 * percent / 100.0).round() as u64;
    let whole = |tokens: u64| percent(tokens, window).map_or(0, |percent| tokens_shown_as(percent, window));
    // A window too small for the margins is divided instead, so that the levels still rise.
    let room = ceiling.tokens.min(window);
    let below = |margin: u64, tenths: u64| room.saturating_sub(margin.min(room.saturating_mul(tenths) / 10));
    let l3 = whole(share(levels.l3).min(below(margins.l3, 3)));
    let l2 = whole(share(levels.l2).min(below(margins.l2, 5)).min(l3.saturating_sub(1)));
    let l1 =
        whole(share(levels.l1).min(l2.saturating_sub(window.saturating_mul(WARNING_LEAD_PERCENT) / 100)));
    let clamped = l3 < whole(share(levels.l3)) || l2 < whole(share(levels.l2));
    Marks { window, l1, l2, l3, ceiling, clamped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling_of(
        window: u64,
        model: &str,
        change: impl FnOnce(&mut CompactionConfig),
    ) -> (u64, CeilingAction) {
        let mut knobs = CompactionConfig::default();
        change(&mut knobs);
        let ceiling = ceiling(window, Some(model), &knobs);
        (ceiling.tokens, ceiling.action)
    }

    #[test]
    fn no_window_is_too_large_to_have_levels() {
        for window in [u64::MAX, u64::MAX / 2, 1 << 62, 9_007_199_254_740_993] {
            let ceiling = ceiling(window, None, &CompactionConfig::default());
            let marks = marks(window, ceiling, &Levels::default(), &Margins::default());
            assert!([marks.l1, marks.l2, marks.l3, ceiling.tokens].is_sorted(), "{marks:?}");
        }
    }

    #[test]
    fn the_ceiling_lies_where_the_client_was_seen_to_act() {
        use CeilingAction::{Compacts, Refuses, Rejected};
        let (million, small) = (1_000_000, 200_000);
        let none = |_: &mut CompactionConfig| ();
        assert_eq!(ceiling_of(million, "claude-opus-5-5", none), (967_000, Compacts));
        assert_eq!(ceiling_of(small, "claude-opus-4-6", none), (167_000, Compacts));
        assert_eq!(ceiling_of(small, "claude-haiku-4-5", none), (200_000, Rejected));
        assert_eq!(ceiling_of(million, "claude-sonnet-4-6[1m]", none), (1_000_000, Rejected));
        let window = |tokens| move |knobs: &mut CompactionConfig| knobs.compact_window = Some(tokens);
        assert_eq!(ceiling_of(small, "claude-haiku-4-5", window(200_000)), (167_000, Compacts));
        assert_eq!(ceiling_of(small, "claude-opus-4-6", window(150_000)), (117_000, Compacts));
        assert_eq!(ceiling_of(small, "claude-opus-4-6", window(100_000)), (67_000, Compacts));
        assert_eq!(ceiling_of(small, "claude-opus-4-6", window(50_000)), (67_000, Compacts));
        assert_eq!(
            ceiling_of(million, "claude-opus-5-5", |knobs| knobs.max_output = Some(8_000)),
            (979_000, Compacts)
        );
        assert_eq!(
            ceiling_of(million, "claude-opus-5-5", |knobs| knobs.percent_override = Some(50.0)),
            (490_000, Compacts)
        );
        assert_eq!(
            ceiling_of(million, "claude-opus-5-5", |knobs| knobs.percent_override = Some(99.0)),
            (967_000, Compacts)
        );
        assert_eq!(
            ceiling_of(million, "claude-opus-5-5", |knobs| knobs.auto_compact = false),
            (977_000, Refuses)
        );
        assert_eq!(
            ceiling_of(small, "claude-opus-4-6", |knobs| knobs.auto_compact = false),
            (177_000, Refuses)
        );
    }

    fn percents(window: u64, model: &str, knobs: CompactionConfig) -> [u64; 3] {
        let marks =
            marks(window, ceiling(window, Some(model), &knobs), &Levels::default(), &Margins::default());
        [marks.l1, marks.l2, marks.l3].map(|tokens| marks.percent(tokens))
    }

    #[test]
    fn levels_are_clamped_below_the_ceiling_with_room_to_act() {
        assert_eq!(percents(1_000_000, "claude-opus-5-5", CompactionConfig::default()), [70, 85, 95]);
        assert_eq!(percents(200_000, "claude-opus-4-6", CompactionConfig::default()), [59, 64, 74]);
        assert_eq!(percents(200_000, "claude-haiku-4-5", CompactionConfig::default()), [70, 80, 90]);
    }

    /// The reading that is announced for a level, and the reading at which it fires, are one: for every level, window and
    /// ceiling, the percent that is announced is the first that is shown at or above the level.
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
            let ceiling = Ceiling { tokens: draw(window + window / 10), action: CeilingAction::Compacts };
            let share = |draw: u64| 30.0 + draw as f64 / 10.0;
            let levels =
                Levels { l1: share(draw(300)), l2: share(300 + draw(200)), l3: share(500 + draw(200)) };
            let margins = Margins { l2: draw(60_000), l3: draw(30_000) };
            let marks = marks(window, ceiling, &levels, &margins);
            for mark in [marks.l1, marks.l2, marks.l3] {
                let announced = marks.percent(mark);
                let shown = |tokens: u64| percent(tokens, window).unwrap();
                assert_eq!(shown(mark), announced, "shown where it fires: {marks:?}");
                if mark > 0 {
                    assert!(shown(mark - 1) < announced, "not shown before it fires: {mark} in {marks:?}");
                }
            }
        }
    }

    #[test]
    fn levels_rise_in_every_window_and_under_every_ceiling() {
        for window in (1_000..2_000_000).step_by(7_919) {
            for ceiling_tokens in [0, window / 10, window / 3, window * 9 / 10, window, window * 2] {
                let ceiling = Ceiling { tokens: ceiling_tokens, action: CeilingAction::Compacts };
                let marks = marks(window, ceiling, &Levels::default(), &Margins::default());
                let rising =
                    marks.l1 <= marks.l2 && marks.l2 <= marks.l3 && marks.l3 <= ceiling_tokens.max(1);
                assert!(rising, "{window} {ceiling_tokens} {marks:?}");
            }
        }
    }
}
