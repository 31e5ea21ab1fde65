//! The table, state by state.

use super::table::ContextView;
use plimsoll_domain::forecast::{Forecast, ForecastRange, ThresholdForecast};
use plimsoll_domain::level::{AutoCompactAction, AutoCompactThreshold, Thresholds};
use plimsoll_domain::reading::{UsageSource, WindowSize, WindowSource};
use plimsoll_domain::size::ItemCost;
use plimsoll_domain::state::{PlanItems, RunOptions};
use plimsoll_domain::{RunState, Settings, UsageReading};
use plimsoll_flows::context::forecast::SessionForecast;

const MILLION: u64 = 1_000_000;

fn test_reading(used: u64) -> UsageReading {
    UsageReading {
        used_tokens: used,
        output_tokens: 1_000,
        estimated_added_tokens: 0,
        window: Some(WindowSize { tokens: MILLION, source: WindowSource::Assumed }),
        model: Some("claude-opus-5".into()),
        usage_source: UsageSource::Transcript,
        message_id: None,
        responded_at: None,
        is_one_request_behind: false,
    }
}

fn test_thresholds(l2: u64) -> Thresholds {
    let auto_compact = AutoCompactThreshold { tokens: 967_000, action: AutoCompactAction::Compacts };
    Thresholds {
        window: MILLION,
        l1: l2 - 150_000,
        l2,
        l3: l2 + 100_000,
        auto_compact,
        is_clamped: l2 != 850_000,
    }
}

fn run_with_item(item: &str) -> RunState {
    RunState {
        iteration: 5,
        options: RunOptions { task_name: "Auth".into(), max_iterations: 50, ..RunOptions::default() },
        plan_items: PlanItems { todo_items: vec![item.to_owned()], ..PlanItems::default() },
        ..RunState::default()
    }
}

fn render_table(used: Option<u64>, l2: u64, run: Option<&RunState>) -> String {
    render_table_with_forecast(used, l2, run, &ONE_RESPONSE)
}

/// One response is too few for a forecast.
const ONE_RESPONSE: SessionForecast = SessionForecast { forecast: None, response_count: 1 };

fn render_table_with_forecast(
    used: Option<u64>,
    l2: u64,
    run: Option<&RunState>,
    session_forecast: &SessionForecast,
) -> String {
    render_table_and_sentence(used, l2, run, session_forecast).0
}

fn render_sentence(used: Option<u64>, run: Option<&RunState>, forecast: Option<Forecast>) -> String {
    render_table_and_sentence(used, 850_000, run, &SessionForecast { forecast, response_count: 1 }).1
}

fn render_table_and_sentence(
    used: Option<u64>,
    l2: u64,
    run: Option<&RunState>,
    session_forecast: &SessionForecast,
) -> (String, String) {
    let (reading, thresholds) = (used.map(test_reading), test_thresholds(l2));
    let view = ContextView {
        session_id: "4f2a91bc",
        reading: reading.as_ref(),
        age_seconds: Some(3),
        thresholds: used.map(|_| &thresholds),
        session_forecast,
        transcript_error: None,
        run,
        item_file_lines: None,
        handoff: Some(".claude/handoffs/a.md"),
        settings: &Settings::default(),
    };
    (view.render_table_and_advice(&[]), view.render_usage_and_next_event_sentence())
}

#[test]
fn the_table_of_a_run_matches_the_original_example() {
    let text =
        render_table(Some(669_000), 850_000, Some(&run_with_item("Implement OAuth callback (simple)")));
    insta::assert_snapshot!(text, @r#"
    ## Ralph Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 67% (669k of 1M tokens) |
    | Level               | L0 (Normal) |
    | Estimated Remaining | ~180k tokens to the checkpoint, ~297k to the auto-compact threshold (97%: Claude Code compacts) |
    | Forecast            | too little data yet (1 turn) |
    | Current Item        | "Implement OAuth callback (simple)" |
    | Item Complexity     | Simple (est. 20% of the window) |
    | Run Session         | 5 of 50 ("Auth") |
    | Session             | 4f2a91bc |
    | Next Request        | about 670k tokens, with the answer and what has been added since |
    | Source              | transcript, 3 s old |
    | Window              | 1M tokens (assumed: Claude Code's default for unknown models), claude-opus-5 |
    | Thresholds          | L1 70%, L2 85%, L3 95% |

    **Recommendation**: Continue with work that has begun. An item of this size will probably not fit before the checkpoint: if it has not begun, leave it to a fresh session.

    Checkpoint will trigger automatically at 85%.
    "#);
}

/// Checks the width in 80 columns, in a terminal and in the client's table.
#[test]
fn each_threshold_ahead_has_a_row_and_ranges_are_explained_once() {
    let span = |soonest, likely, latest| ForecastRange { earliest: soonest, median: likely, latest };
    let far = ThresholdForecast { turns: span(84, 130, 200), minutes: Some(span(28, 43, 68)) };
    let near = ThresholdForecast { turns: span(9, 14, 22), minutes: None };
    let forecast = Forecast { sample_count: 120, l1: None, l2: Some(near), auto_compact: Some(far) };
    let session_forecast = SessionForecast { forecast: Some(forecast), response_count: 121 };
    let text = render_table_with_forecast(
        Some(720_000),
        850_000,
        Some(&run_with_item("Parse dates")),
        &session_forecast,
    );
    let rows: Vec<&str> =
        text.lines().filter(|row| row.starts_with("| Forecast") || row.starts_with("| To ")).collect();
    insta::assert_snapshot!(rows.join("\n"), @"
    | Forecast            | from 120 turns; the ranges hold in 8 of 10 cases |
    | To L2               | 14 turns (9 to 22) |
    | To auto-compact     | 130 turns (84 to over 200), 43 min (28 to over 68) |
    ");
    assert!(rows.iter().all(|row| row.len() <= 80), "{rows:?}");
}

#[test]
fn there_is_no_forecast_row_if_every_threshold_is_passed() {
    let text = render_table_with_forecast(Some(980_000), 850_000, None, &ONE_RESPONSE);
    insta::assert_snapshot!(text, @"
    ## Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 98% (980k of 1M tokens) |
    | Level               | L3 (Emergency) |
    | Estimated Remaining | ~0 tokens to the checkpoint, ~0 to the auto-compact threshold (97%: Claude Code compacts) |
    | Session             | 4f2a91bc |
    | Next Request        | about 981k tokens, with the answer and what has been added since |
    | Source              | transcript, 3 s old |
    | Window              | 1M tokens (assumed: Claude Code's default for unknown models), claude-opus-5 |
    | Thresholds          | L1 70%, L2 85%, L3 95% |

    **Recommendation**: Stop now: the next large result may not fit.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/a.md.
    ");
}

#[test]
fn the_complexity_is_stated_by_the_item_or_learned_from_others() {
    let grown = |item: &str, tokens: &[u64]| {
        let growth = tokens.iter().map(|tokens| ItemCost { size: None, tokens: *tokens }).collect();
        RunState {
            plan_items: PlanItems { item_costs: growth, ..run_with_item(item).plan_items },
            ..run_with_item(item)
        }
    };
    for (state, row) in [
        (run_with_item("Parse dates (medium)"), Some("Medium (est. 40% of the window) |")),
        (run_with_item("All of it (very complex)"), Some("Very complex (fits no window: split it) |")),
        (
            grown("Parse dates", &[120_000; 4]),
            Some("Not stated (est. 12% of the window, from 4 items of this project) |"),
        ),
        (run_with_item("Parse dates"), None),
    ] {
        let text = render_table(Some(100_000), 850_000, Some(&state));
        let actual = text.lines().find_map(|line| line.strip_prefix("| Item Complexity     | "));
        assert_eq!(actual, row, "{text}");
    }
}

/// Returns the text below the table.
fn recommendation(used: u64, l2: u64, run: Option<&RunState>) -> String {
    let text = render_table(Some(used), l2, run);
    let (_, advice) = text.split_once("\n\n**Recommendation**: ").expect("a recommendation");
    advice.to_owned()
}

#[test]
fn the_advice_follows_the_level_and_names_the_actual_threshold() {
    let state = run_with_item("Parse dates");
    insta::assert_snapshot!(recommendation(100_000, 850_000, Some(&state)), @"
    Safe to continue.

    Checkpoint will trigger automatically at 85%.
    ");
    insta::assert_snapshot!(recommendation(100_000, 730_000, Some(&state)), @"
    Safe to continue.

    Checkpoint will trigger automatically at 73%.
    ");
    insta::assert_snapshot!(recommendation(710_000, 850_000, Some(&state)), @"
    Continue with the current item; start nothing large.

    Checkpoint will trigger automatically at 85%.
    ");
    insta::assert_snapshot!(recommendation(860_000, 850_000, Some(&state)), @"
    Finish the current edit, commit, and end the turn.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/a.md.
    ");
    insta::assert_snapshot!(recommendation(960_000, 850_000, Some(&state)), @"
    Stop now: the next large result may not fit.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/a.md.
    ");
    insta::assert_snapshot!(recommendation(100_000, 850_000, None), @"
    Safe to continue.

    A handoff will be written automatically at 85%; the session continues.
    ");
    insta::assert_snapshot!(recommendation(860_000, 850_000, None), @"
    Finish the current edit and start a fresh session.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/a.md.
    ");
    for l2 in [730_000, 850_000] {
        let text = render_table(Some(100_000), l2, Some(&state));
        assert_eq!(text.contains("lowered from 70/85/95%"), l2 != 850_000, "{text}");
    }
}

#[test]
fn rows_of_a_run_need_a_run_and_unknown_values_are_marked() {
    let text = render_table(Some(100_000), 850_000, None);
    insta::assert_snapshot!(text, @"
    ## Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 10% (100k of 1M tokens) |
    | Level               | L0 (Normal) |
    | Estimated Remaining | ~749k tokens to the checkpoint, ~866k to the auto-compact threshold (97%: Claude Code compacts) |
    | Forecast            | too little data yet (1 turn) |
    | Session             | 4f2a91bc |
    | Next Request        | about 101k tokens, with the answer and what has been added since |
    | Source              | transcript, 3 s old |
    | Window              | 1M tokens (assumed: Claude Code's default for unknown models), claude-opus-5 |
    | Thresholds          | L1 70%, L2 85%, L3 95% |

    **Recommendation**: Safe to continue.

    A handoff will be written automatically at 85%; the session continues.
    ");
    let text = render_table(None, 850_000, Some(&run_with_item("Parse dates (medium)")));
    insta::assert_snapshot!(text, @r#"
    ## Ralph Context Status

    | Metric          | Value |
    |-----------------|-------|
    | Current Context | ? (nothing has been answered yet, or the transcript cannot be read) |
    | Current Item    | "Parse dates (medium)" |
    | Item Complexity | Medium (est. 40% of the window) |
    | Run Session     | 5 of 50 ("Auth") |
    | Session         | 4f2a91bc |

    **Recommendation**: none; the usage will be known after the next answer.
    "#);
}

#[test]
fn the_sentence_gives_the_usage_and_the_next_threshold() {
    let turns = ForecastRange { earliest: 9, median: 14, latest: 22 };
    let l2 = Some(ThresholdForecast { turns, minutes: None });
    let forecast = Forecast { sample_count: 120, l1: None, l2, auto_compact: None };
    let state = run_with_item("Parse dates");
    for (used, run, forecast, expected) in [
        (Some(430_000), None, None, "43% (430k of 1M tokens); handoff at 85%"),
        (
            Some(720_000),
            Some(&state),
            Some(forecast),
            "72% (720k of 1M tokens), L1 (warn); checkpoint at 85% in 14 turns (9 to 22)",
        ),
        (
            Some(860_000),
            Some(&state),
            None,
            "86% (860k of 1M tokens), L2 (checkpoint); the checkpoint was due at 85%",
        ),
        (None, None, None, "? (nothing has been answered yet, or the transcript cannot be read)"),
    ] {
        assert_eq!(render_sentence(used, run, forecast), expected);
    }
}

#[test]
fn an_item_text_does_not_break_the_table() {
    let text = render_table(Some(100_000), 850_000, Some(&run_with_item("a | b\nc\u{1b}[31m")));
    let row = text.lines().find(|row| row.starts_with("| Current Item")).expect("a row");
    insta::assert_snapshot!(row, @r#"| Current Item        | "a \| b c\u{1b}[31m" |"#);
}
