//! Computes the thresholds of the levels: the configured percentages of the window, lowered so that L2 and L3 are always
//! reached before the client itself compacts or stops.

use crate::window::model_name_without_prefix_date_and_suffix;
use plimsoll_domain::level::{AutoCompactAction, AutoCompactThreshold, Thresholds};
use plimsoll_domain::reading::{min_tokens_for_percent, rounded_percent};
use plimsoll_domain::record::CompactionWindow;
use plimsoll_domain::settings::{Levels, Margins};
use plimsoll_protocol::client_environment::MIN_COMPACTION_WINDOW_TOKENS;

/// The settings of the client that change its auto-compact threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionConfig {
    /// False with `DISABLE_AUTO_COMPACT`, `DISABLE_COMPACT` or `autoCompactEnabled: false`.
    pub is_auto_compact_on: bool,
    /// `CLAUDE_CODE_AUTO_COMPACT_WINDOW` or `autoCompactWindow`.
    pub compaction_window: Option<u64>,
    /// `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE`.
    pub percent_override: Option<f64>,
    /// `CLAUDE_CODE_MAX_OUTPUT_TOKENS`.
    pub max_output_tokens: Option<u64>,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        CompactionConfig {
            is_auto_compact_on: true,
            compaction_window: None,
            percent_override: None,
            max_output_tokens: None,
        }
    }
}

/// The client (2.1.329) reserves room for the longest response of the model, but at most this many tokens: with a window of
/// 1,000,000 it compacts at 967,000.
const MAX_RESPONSE_RESERVE_TOKENS: u64 = 20_000;
/// The client compacts this many tokens below the window without the reserve.
const COMPACT_MARGIN_TOKENS: u64 = 13_000;
/// With compaction off the client refuses to continue this many tokens below the window without the reserve.
const REFUSE_MARGIN_TOKENS: u64 = 3_000;
/// L1 is at least this many percent of the window below L2. Otherwise the warning would coincide with the checkpoint.
const WARNING_LEAD_PERCENT: u64 = 10;
/// Caps the distance from L1 to L2, in percent of the usable tokens. Without it a small compaction window in a large window would
/// leave nothing below L1.
const MAX_WARNING_LEAD_PERCENT_OF_USABLE: u64 = 20;
/// Caps the step by which L2 is lowered: two large Reads of about 20,000 tokens. A larger step may be several between which no hook
/// ran, and a session that once read five files at once would lose half of a small window.
const MAX_STEP_TOKENS: u64 = 40_000;

/// Models for which the client (2.1.329) has no auto-compact threshold: it compacts only after the API has rejected a prompt as
/// too long.
const MODELS_WITHOUT_COMPACT_THRESHOLD: [&str; 5] =
    ["haiku-4-5", "sonnet-4-5", "opus-4-5", "sonnet-4", "3-7-sonnet"];
/// Models that have no auto-compact threshold with the `[1m]` suffix.
const MODELS_WITHOUT_COMPACT_THRESHOLD_AT_1M: [&str; 2] = ["opus-4-6", "sonnet-4-6"];

/// Returns the compaction window that the client's settings configure for the model; `None` if the client chooses one itself. The
/// first entry that matches the model counts. A model's dated, `[1m]`, Bedrock and Vertex names are the same model (2.1.329).
pub fn configured_compaction_window(windows: &[CompactionWindow], model: Option<&str>) -> Option<u64> {
    let family = model.map(model_name_without_prefix_date_and_suffix);
    let matches_model = |window: &&CompactionWindow| match &window.model {
        Some(model) => family == Some(model_name_without_prefix_date_and_suffix(model)),
        None => true,
    };
    windows.iter().find(matches_model)?.tokens
}

/// Returns the usage in tokens at which the client itself compacts, refuses to continue or has its prompt rejected, and
/// which of these it is.
pub fn compute_auto_compact_threshold_and_action(
    window: u64,
    model: Option<&str>,
    config: &CompactionConfig,
) -> AutoCompactThreshold {
    let response_reserve =
        config.max_output_tokens.unwrap_or(MAX_RESPONSE_RESERVE_TOKENS).min(MAX_RESPONSE_RESERVE_TOKENS);
    // With compaction off the client stops by itself, without a request to the API (2.1.329).
    if !config.is_auto_compact_on {
        let tokens = window.saturating_sub(response_reserve + REFUSE_MARGIN_TOKENS);
        return AutoCompactThreshold { tokens, action: AutoCompactAction::Refuses };
    }
    // A configured compaction window enables the threshold for these models as well (2.1.329).
    if config.compaction_window.is_none() && model.is_some_and(has_no_compact_threshold) {
        return AutoCompactThreshold { tokens: window, action: AutoCompactAction::ApiRejectsPrompt };
    }
    let compaction_window = config
        .compaction_window
        .map_or(window, |tokens| tokens.max(MIN_COMPACTION_WINDOW_TOKENS).min(window));
    let compaction_window_without_reserve = compaction_window.saturating_sub(response_reserve);
    let default_threshold = compaction_window_without_reserve.saturating_sub(COMPACT_MARGIN_TOKENS);
    // The client uses the smaller of the two, so an override of 99 or 100 changes nothing (2.1.329).
    let override_threshold = config
        .percent_override
        .filter(|percent| (0.0..=100.0).contains(percent) && *percent > 0.0)
        .map_or(default_threshold, |percent| {
            (compaction_window_without_reserve as f64 * percent / 100.0) as u64
        });
    AutoCompactThreshold {
        tokens: default_threshold.min(override_threshold),
        action: AutoCompactAction::Compacts,
    }
}

fn has_no_compact_threshold(model: &str) -> bool {
    let name = model_name_without_prefix_date_and_suffix(model);
    let is_1m_without_threshold =
        model.ends_with("[1m]") && MODELS_WITHOUT_COMPACT_THRESHOLD_AT_1M.contains(&name);
    is_1m_without_threshold || MODELS_WITHOUT_COMPACT_THRESHOLD.contains(&name)
}

/// Computes the thresholds of the levels in a window: the configured percentages, lowered by the margins below the
/// auto-compact threshold.
///
/// Each threshold is where the shown percent changes to the one that is announced for the level, so rounding lowers it by
/// at most one percent. L2 also leaves room for `largest_step_tokens`, the largest step of this session so far (0 before
/// the first): a step that begins just below L2 must not end above the auto-compact threshold.
pub fn compute_thresholds(
    window: u64,
    auto_compact: AutoCompactThreshold,
    levels: &Levels,
    margins: &Margins,
    largest_step_tokens: u64,
) -> Thresholds {
    let tokens_at_percent = |percent: f64| (window as f64 * percent / 100.0).round() as u64;
    let round_to_shown_percent = |tokens: u64| {
        rounded_percent(tokens, window).map_or(0, |percent| min_tokens_for_percent(percent, window))
    };
    // A window that is too small for the margins is divided instead, so that the levels stay in order.
    let usable_tokens = auto_compact.tokens.min(window);
    let usable_tokens_minus_margin = |margin: u64, max_margin_in_tenths_of_usable: u64| {
        usable_tokens
            .saturating_sub(margin.min(usable_tokens.saturating_mul(max_margin_in_tenths_of_usable) / 10))
    };
    let l3 =
        round_to_shown_percent(tokens_at_percent(levels.l3).min(usable_tokens_minus_margin(margins.l3, 3)));
    let l2 = round_to_shown_percent(
        tokens_at_percent(levels.l2)
            .min(usable_tokens_minus_margin(margins.l2.max(largest_step_tokens.min(MAX_STEP_TOKENS)), 5))
            .min(l3.saturating_sub(1)),
    );
    let warning_lead_times_100 = window
        .saturating_mul(WARNING_LEAD_PERCENT)
        .min(usable_tokens.saturating_mul(MAX_WARNING_LEAD_PERCENT_OF_USABLE));
    let l1 = round_to_shown_percent(
        tokens_at_percent(levels.l1).min(l2.saturating_sub(warning_lead_times_100 / 100)),
    );
    let is_clamped = l3 < round_to_shown_percent(tokens_at_percent(levels.l3))
        || l2 < round_to_shown_percent(tokens_at_percent(levels.l2));
    Thresholds { window, l1, l2, l3, auto_compact, is_clamped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto_compact_with(
        window: u64,
        model: &str,
        configure: impl FnOnce(&mut CompactionConfig),
    ) -> (u64, AutoCompactAction) {
        let mut config = CompactionConfig::default();
        configure(&mut config);
        let auto_compact = compute_auto_compact_threshold_and_action(window, Some(model), &config);
        (auto_compact.tokens, auto_compact.action)
    }

    #[test]
    fn the_largest_windows_do_not_overflow() {
        for window in [u64::MAX, u64::MAX / 2, 1 << 62, 9_007_199_254_740_993] {
            let auto_compact =
                compute_auto_compact_threshold_and_action(window, None, &CompactionConfig::default());
            let thresholds =
                compute_thresholds(window, auto_compact, &Levels::default(), &Margins::default(), 0);
            assert!(
                [thresholds.l1, thresholds.l2, thresholds.l3, auto_compact.tokens].is_sorted(),
                "{thresholds:?}"
            );
        }
    }

    #[test]
    fn the_first_compaction_window_that_matches_the_model_counts() {
        let window_for =
            |model: Option<&str>, tokens| CompactionWindow { model: model.map(str::to_owned), tokens };
        let windows = [
            window_for(Some("claude-sonnet-4-5"), Some(150_000)),
            window_for(Some("us.anthropic.claude-opus-4-6-20260205-v1:0"), None),
            window_for(None, Some(300_000)),
            window_for(Some("claude-opus-5-5"), Some(400_000)),
            window_for(None, Some(500_000)),
        ];
        for (model, expected) in [
            (Some("claude-sonnet-4-5"), Some(150_000)),
            (Some("claude-sonnet-4-5-20250929"), Some(150_000)),
            (Some("claude-sonnet-4-5@20250929"), Some(150_000)),
            (Some("claude-sonnet-4-5[1m]"), Some(150_000)),
            (Some("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"), Some(150_000)),
            // This entry leaves the choice to the client, so later entries do not count.
            (Some("claude-opus-4-6[1m]"), None),
            // An entry for all models comes first, so a later one for this model does not count.
            (Some("claude-opus-5-5"), Some(300_000)),
            (Some("claude-sonnet-4"), Some(300_000)),
            (None, Some(300_000)),
        ] {
            assert_eq!(configured_compaction_window(&windows, model), expected, "{model:?}");
        }
        assert_eq!(configured_compaction_window(&windows[..2], Some("claude-opus-5-5")), None);
    }

    #[test]
    fn the_auto_compact_threshold_matches_the_observed_client() {
        use AutoCompactAction::{ApiRejectsPrompt, Compacts, Refuses};
        let (million, small) = (1_000_000, 200_000);
        let no_change = |_: &mut CompactionConfig| ();
        assert_eq!(auto_compact_with(million, "claude-opus-5-5", no_change), (967_000, Compacts));
        assert_eq!(auto_compact_with(small, "claude-opus-4-6", no_change), (167_000, Compacts));
        assert_eq!(auto_compact_with(small, "claude-haiku-4-5", no_change), (200_000, ApiRejectsPrompt));
        assert_eq!(
            auto_compact_with(million, "claude-sonnet-4-6[1m]", no_change),
            (1_000_000, ApiRejectsPrompt)
        );
        let with_window =
            |tokens| move |config: &mut CompactionConfig| config.compaction_window = Some(tokens);
        assert_eq!(auto_compact_with(small, "claude-haiku-4-5", with_window(200_000)), (167_000, Compacts));
        assert_eq!(auto_compact_with(small, "claude-opus-4-6", with_window(150_000)), (117_000, Compacts));
        assert_eq!(auto_compact_with(small, "claude-opus-4-6", with_window(100_000)), (67_000, Compacts));
        assert_eq!(auto_compact_with(small, "claude-opus-4-6", with_window(50_000)), (67_000, Compacts));
        assert_eq!(
            auto_compact_with(million, "claude-opus-5-5", |config| config.max_output_tokens = Some(8_000)),
            (979_000, Compacts)
        );
        assert_eq!(
            auto_compact_with(million, "claude-opus-5-5", |config| config.percent_override = Some(50.0)),
            (490_000, Compacts)
        );
        assert_eq!(
            auto_compact_with(million, "claude-opus-5-5", |config| config.percent_override = Some(99.0)),
            (967_000, Compacts)
        );
        assert_eq!(
            auto_compact_with(million, "claude-opus-5-5", |config| config.is_auto_compact_on = false),
            (977_000, Refuses)
        );
        assert_eq!(
            auto_compact_with(small, "claude-opus-4-6", |config| config.is_auto_compact_on = false),
            (177_000, Refuses)
        );
    }

    fn percents(window: u64, model: &str, config: CompactionConfig) -> [u64; 3] {
        let thresholds = compute_thresholds(
            window,
            compute_auto_compact_threshold_and_action(window, Some(model), &config),
            &Levels::default(),
            &Margins::default(),
            0,
        );
        [thresholds.l1, thresholds.l2, thresholds.l3].map(|tokens| thresholds.percent_of_window(tokens))
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
                CompactionConfig { compaction_window: Some(compact_window), ..CompactionConfig::default() };
            assert_eq!(percents(1_000_000, "claude-opus-5-5", config), expected, "{compact_window}");
        }
    }

    #[test]
    fn l2_leaves_room_for_the_largest_step_of_the_session() {
        let thousands = |margins: Margins, step: u64| {
            let auto_compact =
                compute_auto_compact_threshold_and_action(200_000, None, &CompactionConfig::default());
            let thresholds = compute_thresholds(200_000, auto_compact, &Levels::default(), &margins, step);
            assert_eq!(thresholds.auto_compact.tokens, 167_000);
            [thresholds.l1, thresholds.l2, thresholds.l3].map(|tokens| tokens / 1_000)
        };
        let default = Margins::default();
        assert_eq!(thousands(default, 0), [127, 147, 157]);
        assert_eq!(thousands(default, 20_000), [127, 147, 157], "less than the margin moves nothing");
        assert_eq!(thousands(default, 30_000), [117, 137, 157]);
        // A step above the cap lowers L2 no further.
        assert_eq!(thousands(default, 40_000), [107, 127, 157]);
        assert_eq!(thousands(default, 90_000), [107, 127, 157]);
        assert_eq!(
            thousands(Margins { l2: 50_000, ..default }, 30_000),
            [97, 117, 157],
            "the user's own is larger"
        );
        // In a large window the configured percent is lower than the margin requires.
        let large = compute_auto_compact_threshold_and_action(1_000_000, None, &CompactionConfig::default());
        let thresholds = compute_thresholds(1_000_000, large, &Levels::default(), &default, 90_000);
        assert_eq!(thresholds.percent_of_window(thresholds.l2), 85);
    }

    /// For every level, window and auto-compact threshold, the announced percent is the first one that is shown at or above the
    /// threshold.
    #[test]
    fn a_level_fires_exactly_at_its_announced_percent() {
        let mut seed: u64 = 0x5eed;
        let mut random_below = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        for _ in 0..20_000 {
            let window = [200_000, 1_000_000, 1_000 + random_below(3_000_000)][random_below(3) as usize];
            let auto_compact = AutoCompactThreshold {
                tokens: random_below(window + window / 10),
                action: AutoCompactAction::Compacts,
            };
            let share = |draw: u64| 30.0 + draw as f64 / 10.0;
            let levels = Levels {
                l1: share(random_below(300)),
                l2: share(300 + random_below(200)),
                l3: share(500 + random_below(200)),
            };
            let margins = Margins { l2: random_below(60_000), l3: random_below(30_000) };
            let thresholds = compute_thresholds(window, auto_compact, &levels, &margins, 0);
            for threshold in [thresholds.l1, thresholds.l2, thresholds.l3] {
                let announced = thresholds.percent_of_window(threshold);
                let shown = |tokens: u64| rounded_percent(tokens, window).unwrap();
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
    fn thresholds_are_in_order_for_every_window_and_auto_compact_threshold() {
        for window in (1_000..2_000_000).step_by(7_919) {
            for auto_compact_tokens in [0, window / 10, window / 3, window * 9 / 10, window, window * 2] {
                let auto_compact =
                    AutoCompactThreshold { tokens: auto_compact_tokens, action: AutoCompactAction::Compacts };
                let thresholds =
                    compute_thresholds(window, auto_compact, &Levels::default(), &Margins::default(), 0);
                let rising = thresholds.l1 <= thresholds.l2
                    && thresholds.l2 <= thresholds.l3
                    && thresholds.l3 <= auto_compact_tokens.max(1);
                assert!(rising, "{window} {auto_compact_tokens} {thresholds:?}");
            }
        }
    }
}
