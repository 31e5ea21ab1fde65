//! The table, state by state.

use super::table::View;
use plimsoll_domain::forecast::{Forecast, Outlook, Span};
use plimsoll_domain::level::{AutoCompact, AutoCompactAction, Thresholds};
use plimsoll_domain::reading::{UsedSource, Window, WindowSource};
use plimsoll_domain::size::ItemCost;
use plimsoll_domain::state::{Items, RunOptions};
use plimsoll_domain::{Reading, RunState, Settings};
use plimsoll_flows::context::forecast::SessionForecast;

const MILLION: u64 = 1_000_000;

fn reading(used: u64) -> Reading {
    Reading {
        used,
        output: 1_000,
        added: 0,
        window: Some(Window { tokens: MILLION, source: WindowSource::Assumed }),
        model: Some("claude-opus-5".into()),
        source: UsedSource::Transcript,
        message_id: None,
        at: None,
        behind: false,
    }
}

fn thresholds(l2: u64) -> Thresholds {
    let auto_compact = AutoCompact { tokens: 967_000, action: AutoCompactAction::Compacts };
    Thresholds {
        window: MILLION,
        l1: l2 - 150_000,
        l2,
        l3: l2 + 100_000,
        auto_compact,
        clamped: l2 != 850_000,
    }
}

fn run(item: &str) -> RunState {
    RunState {
        iteration: 5,
        options: RunOptions { task_name: "Auth".into(), max_iterations: 50, ..RunOptions::default() },
        items: Items { todo_items: vec![item.to_owned()], ..Items::default() },
        ..RunState::default()
    }
}

fn table(used: Option<u64>, l2: u64, run: Option<&RunState>) -> String {
    with_forecast(used, l2, run, &TOO_LITTLE)
}

/// One response is too few for a forecast.
const TOO_LITTLE: SessionForecast = SessionForecast { forecast: None, responses: 1 };

fn with_forecast(
    used: Option<u64>,
    l2: u64,
    run: Option<&RunState>,
    forecast_of_session: &SessionForecast,
) -> String {
    table_and_sentence(used, l2, run, forecast_of_session).0
}

fn sentence(used: Option<u64>, run: Option<&RunState>, forecast: Option<Forecast>) -> String {
    table_and_sentence(used, 850_000, run, &SessionForecast { forecast, responses: 1 }).1
}

fn table_and_sentence(
    used: Option<u64>,
    l2: u64,
    run: Option<&RunState>,
    forecast_of_session: &SessionForecast,
) -> (String, String) {
    let (reading, thresholds) = (used.map(reading), thresholds(l2));
    let view = View {
        session_id: "4f2a91bc",
        reading: reading.as_ref(),
        age_seconds: Some(3),
        thresholds: used.map(|_| &thresholds),
        forecast_of_session,
        trouble: None,
        run,
        lines: None,
        handoff: Some(".claude/handoffs/a.md"),
        settings: &Settings::default(),
    };
    (view.text(&[]), view.sentence())
}

#[test]
fn in_a_run_it_shows_what_the_originals_example_shows() {
    let text = table(Some(669_000), 850_000, Some(&run("Implement OAuth callback (simple)")));
    insta::assert_snapshot!(text, @r#"
    ## Ralph Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 67% (669k of 1M tokens) |
    | Level               | L0 (Normal) |
    | Estimated Remaining | ~180k tokens to the checkpoint, ~297k to the auto-compact threshold (97%: the client compacts) |
    | Forecast            | too little data yet (1 turn) |
    | Current Item        | "Implement OAuth callback (simple)" |
    | Item Complexity     | Simple (est. 20% of the window) |
    | Iteration           | 5 of 50 ("Auth") |
    | Session             | 4f2a91bc |
    | Next Request        | about 670k tokens, with the answer and what has been added since |
    | Source              | transcript, 3 s old |
    | Window              | 1M tokens (assumed: the client's default for unknown models), claude-opus-5 |
    | Thresholds          | L1 70%, L2 85%, L3 95% |

    **Recommendation**: Continue with work that has begun. An item of this size will probably not fit before the checkpoint: if it has not begun, leave it to a fresh session.

    Checkpoint will trigger automatically at 85%.
    "#);
}

/// As it is shown in 80 columns, in a terminal and in the client's table.
#[test]
fn each_mark_that_is_ahead_has_a_row_and_the_brackets_are_explained_once() {
    let span = |soonest, likely, latest| Span { soonest, likely, latest };
    let far = Outlook { turns: span(84, 130, 200), minutes: Some(span(28, 43, 68)) };
    let near = Outlook { turns: span(9, 14, 22), minutes: None };
    let forecast = Forecast { samples: 120, l1: None, l2: Some(near), auto_compact: Some(far) };
    let forecast_of_session = SessionForecast { forecast: Some(forecast), responses: 121 };
    let text = with_forecast(Some(720_000), 850_000, Some(&run("Parse dates")), &forecast_of_session);
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
fn where_nothing_is_ahead_nothing_is_said_of_a_forecast() {
    let text = with_forecast(Some(980_000), 850_000, None, &TOO_LITTLE);
    insta::assert_snapshot!(text, @"
    ## Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 98% (980k of 1M tokens) |
    | Level               | L3 (Emergency) |
    | Estimated Remaining | ~0 tokens to the checkpoint, ~0 to the auto-compact threshold (97%: the client compacts) |
    | Session             | 4f2a91bc |
    | Next Request        | about 981k tokens, with the answer and what has been added since |
    | Source              | transcript, 3 s old |
    | Window              | 1M tokens (assumed: the client's default for unknown models), claude-opus-5 |
    | Thresholds          | L1 70%, L2 85%, L3 95% |

    **Recommendation**: Stop now: the next large result may not fit.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/a.md.
    ");
}

#[test]
fn the_complexity_is_what_the_item_states_or_what_items_took() {
    let grown = |item: &str, tokens: &[u64]| {
        let growth = tokens.iter().map(|tokens| ItemCost { size: None, tokens: *tokens }).collect();
        RunState { items: Items { growth, ..run(item).items }, ..run(item) }
    };
    for (state, row) in [
        (run("Parse dates (medium)"), Some("Medium (est. 40% of the window) |")),
        (run("All of it (very complex)"), Some("Very complex (fits no window: split it) |")),
        (
            grown("Parse dates", &[120_000; 4]),
            Some("Not stated (est. 12% of the window, from 4 items of this project) |"),
        ),
        (run("Parse dates"), None),
    ] {
        let text = table(Some(100_000), 850_000, Some(&state));
        let found = text.lines().find_map(|line| line.strip_prefix("| Item Complexity     | "));
        assert_eq!(found, row, "{text}");
    }
}

/// What stands below the table.
fn advice(used: u64, l2: u64, run: Option<&RunState>) -> String {
    let text = table(Some(used), l2, run);
    let (_, advice) = text.split_once("\n\n**Recommendation**: ").expect("a recommendation");
    advice.to_owned()
}

#[test]
fn the_advice_follows_the_level_and_names_the_mark_as_it_is() {
    let state = run("Parse dates");
    insta::assert_snapshot!(advice(100_000, 850_000, Some(&state)), @"
    Safe to continue.

    Checkpoint will trigger automatically at 85%.
    ");
    insta::assert_snapshot!(advice(100_000, 730_000, Some(&state)), @"
    Safe to continue.

    Checkpoint will trigger automatically at 73%.
    ");
    insta::assert_snapshot!(advice(710_000, 850_000, Some(&state)), @"
    Continue with the current item; start nothing large.

    Checkpoint will trigger automatically at 85%.
    ");
    insta::assert_snapshot!(advice(860_000, 850_000, Some(&state)), @"
    Finish the current edit, commit, and end the turn.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/a.md.
    ");
    insta::assert_snapshot!(advice(960_000, 850_000, Some(&state)), @"
    Stop now: the next large result may not fit.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/a.md.
    ");
    insta::assert_snapshot!(advice(100_000, 850_000, None), @"
    Safe to continue.

    A handoff will be written automatically at 85%; the session continues.
    ");
    insta::assert_snapshot!(advice(860_000, 850_000, None), @"
    Finish the current edit and start a fresh session.

    The checkpoint was due at 85%. The handoff is .claude/handoffs/a.md.
    ");
    for l2 in [730_000, 850_000] {
        let text = table(Some(100_000), l2, Some(&state));
        assert_eq!(text.contains("lowered from 70/85/95%"), l2 != 850_000, "{text}");
    }
}

#[test]
fn outside_of_a_run_its_rows_are_left_out_and_what_is_unknown_says_so() {
    let text = table(Some(100_000), 850_000, None);
    insta::assert_snapshot!(text, @"
    ## Context Status

    | Metric              | Value |
    |---------------------|-------|
    | Current Context     | 10% (100k of 1M tokens) |
    | Level               | L0 (Normal) |
    | Estimated Remaining | ~749k tokens to the checkpoint, ~866k to the auto-compact threshold (97%: the client compacts) |
    | Forecast            | too little data yet (1 turn) |
    | Session             | 4f2a91bc |
    | Next Request        | about 101k tokens, with the answer and what has been added since |
    | Source              | transcript, 3 s old |
    | Window              | 1M tokens (assumed: the client's default for unknown models), claude-opus-5 |
    | Thresholds          | L1 70%, L2 85%, L3 95% |

    **Recommendation**: Safe to continue.

    A handoff will be written automatically at 85%; the session continues.
    ");
    let text = table(None, 850_000, Some(&run("Parse dates (medium)")));
    insta::assert_snapshot!(text, @r#"
    ## Ralph Context Status

    | Metric          | Value |
    |-----------------|-------|
    | Current Context | ? (nothing has been answered yet, or the transcript cannot be read) |
    | Current Item    | "Parse dates (medium)" |
    | Item Complexity | Medium (est. 40% of the window) |
    | Iteration       | 5 of 50 ("Auth") |
    | Session         | 4f2a91bc |

    **Recommendation**: none; the usage will be known after the next answer.
    "#);
}

#[test]
fn one_sentence_says_how_full_it_is_and_what_comes_next() {
    let turns = Span { soonest: 9, likely: 14, latest: 22 };
    let l2 = Some(Outlook { turns, minutes: None });
    let forecast = Forecast { samples: 120, l1: None, l2, auto_compact: None };
    let state = run("Parse dates");
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
        assert_eq!(sentence(used, run, forecast), expected);
    }
}

#[test]
fn an_item_breaks_no_table() {
    let text = table(Some(100_000), 850_000, Some(&run("a | b\nc\u{1b}[31m")));
    let row = text.lines().find(|row| row.starts_with("| Current Item")).expect("a row");
    insta::assert_snapshot!(row, @r#"| Current Item        | "a \| b c\u{1b}[31m" |"#);
}
