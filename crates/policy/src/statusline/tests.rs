use super::*;
use crate::thresholds::{CompactionConfig, compute_auto_compact_threshold_and_action, compute_thresholds};
use plimsoll_domain::Settings;
use plimsoll_domain::forecast::UsageSample;
use plimsoll_domain::memory::{HeapPressure, Register};
use plimsoll_domain::record::GitCounts;
use plimsoll_domain::statusline::{Background, Theme};
use plimsoll_protocol::status::{ReasoningEffort, StatusCost, StatusModel, StatusPayload};
use unicode_width::UnicodeWidthStr;

fn view(percent: u64) -> StatusLineView {
    let settings = Settings::default();
    let thresholds = compute_thresholds(
        1_000_000,
        compute_auto_compact_threshold_and_action(1_000_000, None, &CompactionConfig::default()),
        &settings.levels,
        &settings.margins,
        0,
    );
    StatusLineView {
        payload: StatusPayload {
            model: StatusModel { display_name: Some("Opus 5.5".into()), id: None },
            cost: StatusCost { total_cost_usd: Some(0.123), ..StatusCost::default() },
            ..StatusPayload::default()
        },
        directory: Some("~/work/project".into()),
        git: Some(GitView { branch: "main".into(), ..GitView::default() }),
        context_usage: ContextUsageView {
            used_percent: Some(percent),
            used_tokens: Some(percent * 10_000),
            thresholds: Some(thresholds),
            usage_samples: Vec::new(),
        },
        run: Some(RunView {
            iteration: 2,
            max_iterations: 50,
            done_count: 1,
            item_count: 3,
            ..RunView::default()
        }),
        ..StatusLineView::default()
    }
}

fn parse_settings(json: &str) -> StatusLine {
    let settings: StatusLine = serde_json::from_str(json).unwrap();
    assert_eq!(settings.find_validation_error(), None);
    settings
}

/// Renders one segment alone.
fn render_alone(name: &str, view: &StatusLineView) -> Result<String, HiddenReason> {
    let settings = StatusLine { lines: vec![vec![name.to_owned().into()]], ..StatusLine::default() };
    explain_segments(view, &settings).into_iter().find(|explained| explained.name == name).unwrap().rendered
}

#[test]
fn the_line_shows_usage_thresholds_and_auto_compaction() {
    assert_eq!(
        render_lines_or_program_name(&view(43), &StatusLine::default()),
        "Opus 5.5 │ project │ ⎇ main │ ▕█████████░░░░░┆░░┆░┃▏ 43% 430k/1M · 537k left │ ralph 2/50 · 1/3 items │ $0.12"
    );
}

#[test]
fn an_unknown_usage_is_a_question_mark_and_not_zero() {
    assert_eq!(
        render_lines_or_program_name(&StatusLineView::default(), &StatusLine::default()),
        "▕░░░░░░░░░░░░░░░░░░░░▏ ?"
    );
    assert!(render_bar_and_percent_in_level_color(&view(0), 20).ends_with("0%"));
}

#[test]
fn each_segment_shows_its_fields() {
    let mut view = view(43);
    view.context_usage.usage_samples = fills(&[100_000, 130_000, 170_000, 180_000, 430_000]);
    view.payload.effort.level = Some("high".into());
    view.git = Some(GitView {
        branch: "a-fix".into(),
        worktree: Some("tree".into()),
        operation_in_progress: Some("rebase 2/5".into()),
        counts: Some(GitCounts { ahead: 1, behind: 2, conflicts: 3, staged: 4, modified: 5, untracked: 6 }),
        is_stale: true,
        ..GitView::default()
    });
    view.run = Some(RunView {
        iteration: 2,
        max_iterations: 50,
        done_count: 1,
        item_count: 3,
        current_item: Some("Convert src/report.rs".into()),
        checkpoint_percent: Some(87),
        paused_until: Some("until 14:30".into()),
    });
    view.memory = Some(MemoryView {
        frame_depth: 2,
        frame_name: "write-tests".into(),
        heap_percent: 92,
        pressure: HeapPressure::High,
        stale_registers: vec![Register::Next, Register::Status],
    });
    view.prompt_cache =
        Some(CacheView { is_warm: Some(true), hit_ratio: Some(0.976), expires_at: Some("14:05".into()) });
    view.payload.cost.total_duration_ms = Some(1_800_000);
    view.five_hour_limit = Some(LimitView { used_percent: Some(42.4), resets_at: Some("14:30".into()) });
    view.weekly_limit = Some(LimitView { used_percent: Some(91.0), resets_at: None });
    view.spend_limit = Some(LimitView { used_percent: Some(91.0), resets_at: Some("14:30".into()) });
    view.payload.cost.total_lines_added = Some(12);
    view.payload.cost.total_lines_removed = Some(3);
    view.payload.version = Some("2.1.329".into());
    view.health_problem = Some("plimsoll-post-tool failed at 14:02: disk full".into());
    for (name, text) in [
        ("model", "Opus 5.5"),
        ("effort", "high"),
        ("directory", "project"),
        ("git", "⎇ a-fix worktree tree rebase 2/5 ↑1 ↓2 =3 +4 !5 ?6 ~"),
        ("load", "▕█████████░░░░░┆░░┆░┃▏ 43% 430k/1M · 537k left · ~16 turns"),
        ("run", "ralph 2/50 · 1/3 items · Convert src/report.rs · checkpoint 87% · paused until 14:30"),
        ("memory", "memory 2 write-tests · stale R2 R7 · heap 92% high"),
        ("growth", "▁▂▁█ +250k"),
        ("cache", "cache warm 98% until 14:05"),
        ("cost", "$0.12"),
        ("burn", "$0.25/h"),
        ("five_hour", "5h 42% ↻14:30"),
        ("weekly", "7d 91%"),
        ("spend", "spend 91% ↻14:30"),
        ("lines", "+12 −3"),
        ("version", "v2.1.329"),
        ("health", "⚠ plimsoll-post-tool failed at 14:02: disk full"),
    ] {
        assert_eq!(render_alone(name, &view).as_deref(), Ok(text));
    }
}

#[test]
fn no_line_is_wider_than_the_client_shows() {
    let mut view_with_long_problem = view(43);
    view_with_long_problem.health_problem =
        Some("a failure with a long story behind it, told whole ".repeat(2));
    view_with_long_problem.use_color = true;
    let powerline =
        parse_settings(r#"{"theme": "powerline", "lines": [["model", "load", "run", "health"]]}"#);
    let long_format = parse_settings(
        r#"{"segments": {"load": {"format": "the window of this session holds {percent} {bar}"}}}"#,
    );
    let strip_escapes = |line: String| {
        let mut parts = line.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |bare, part| bare + part.split_once('m').map_or("", |(_, text)| text))
    };
    for settings in [&StatusLine::default(), &powerline, &long_format] {
        for columns in 8..160 {
            view_with_long_problem.columns = Some(columns);
            let line = strip_escapes(render_lines_or_program_name(&view_with_long_problem, settings));
            assert!(line.width() <= columns - 4 && !line.trim().is_empty(), "{columns}: {line:?}");
        }
    }
    view_with_long_problem.columns = Some(60);
    let line = strip_escapes(render_lines_or_program_name(&view_with_long_problem, &StatusLine::default()));
    assert_eq!(line, "▕█████░░┆┆┃▏ 43% │ ⚠ a failure with a long story behind…");
}

#[test]
fn escape_sequences_in_git_names_are_not_printed() {
    let mut view = view(43);
    view.git = Some(GitView {
        branch: "a\u{1b}[2Jb".into(),
        worktree: Some("c\u{7}".into()),
        operation_in_progress: Some("rebase 1/\u{1b}]0;x".into()),
        ..GitView::default()
    });
    assert!(!render_lines_or_program_name(&view, &StatusLine::default()).contains(char::is_control));
}

#[test]
fn a_segment_without_a_value_is_hidden_with_a_reason() {
    let empty_view = StatusLineView::default();
    let names = [
        "model",
        "effort",
        "git",
        "run",
        "memory",
        "growth",
        "cache",
        "burn",
        "five_hour",
        "lines",
        "health",
    ];
    let reasons =
        names.map(|name| format!("{name}: {}", render_alone(name, &empty_view).expect_err("a reason")));
    insta::assert_snapshot!(reasons.join("\n"), @"
    model: Claude Code reports no model
    effort: Claude Code reports no effort (some models have none)
    git: the working directory is in no git repository
    run: no run is active in this project
    memory: this session does not use the working memory
    growth: fewer than two responses since the window was empty
    cache: Claude Code reports no prompt cache before the first answer
    burn: Claude Code reports no cost
    five_hour: Claude Code reports no such limit (it does with a subscription, after the first answer)
    lines: Claude Code reports no lines
    health: nothing is wrong
    ");
    let cost = StatusCost {
        total_cost_usd: Some(1.0),
        total_duration_ms: Some(5_000),
        total_lines_added: Some(0),
        total_lines_removed: Some(0),
    };
    let young_session =
        StatusLineView { payload: StatusPayload { cost, ..StatusPayload::default() }, ..empty_view };
    assert_eq!(
        render_alone("lines", &young_session),
        Err(HiddenReason::NothingToShow("no line has changed"))
    );
    assert_eq!(
        render_alone("burn", &young_session),
        Err(HiddenReason::NothingToShow("the session is younger than a minute"))
    );
    let explanations = explain_segments(&young_session, &parse_settings(r#"{"lines": [["load"]]}"#));
    let cost = explanations.iter().find(|explained| explained.name == "cost").unwrap();
    assert_eq!(cost.rendered, Err(HiddenReason::NothingToShow("it is in no line of the settings")));
}

fn fills(used: &[u64]) -> Vec<UsageSample> {
    used.iter()
        .zip(0..)
        .map(|(used, minute)| UsageSample { used_tokens: *used, unix_seconds: Some(minute * 60) })
        .collect()
}

#[test]
fn turns_and_minutes_to_a_threshold_are_shown_if_the_format_names_them() {
    let even_growth: Vec<u64> = (0..25).map(|step| 190_000 + step * 10_000).collect();
    for (used_tokens, expected) in [
        (&even_growth[22..], None),
        (&even_growth[..], Some("~")),
        // Nothing was added, so no forecast is possible.
        (&[430_000; 4], None),
    ] {
        let mut view = view(43);
        view.context_usage.usage_samples = fills(used_tokens);
        let text = render_alone("load", &view).unwrap();
        let shown_turns = text.split_once("left · ").map(|(_, turns)| turns.trim_end_matches(" turns"));
        assert_eq!(shown_turns.map(|found| &found[..1]), expected, "{text}");
    }
    let mut view = view(43);
    view.context_usage.usage_samples = fills(&even_growth);
    let settings = parse_settings(
        r#"{"segments": {"load": {"format": "{turns_l1} {minutes_l1}, {turns_l2}, {turns}"}}}"#,
    );
    let text = explain_segments(&view, &settings)
        .into_iter()
        .find(|explained| explained.name == "load")
        .unwrap()
        .rendered
        .unwrap();
    let number = |place: usize| -> u64 {
        text.split([' ', ',']).filter(|word| word.starts_with('~')).nth(place).unwrap()[1..].parse().unwrap()
    };
    // 270k, 420k and 537k tokens remain, at about 10k per turn.
    assert!((25..45).contains(&number(0)) && number(0) == number(1), "{text}");
    assert!(number(0) < number(2) && number(2) < number(3), "{text}");
}

#[test]
fn values_cannot_put_escapes_or_line_breaks_into_the_line() {
    let bad = "a\u{1b}[31m\nb\u{7}\u{202e}".to_owned();
    let mut view = StatusLineView {
        payload: StatusPayload {
            model: StatusModel { display_name: Some(bad.clone()), id: None },
            effort: ReasoningEffort { level: Some(bad.clone()) },
            version: Some(bad.clone()),
            ..StatusPayload::default()
        },
        directory: Some(bad.clone()),
        git: Some(GitView { branch: bad.clone(), worktree: Some(bad.clone()), ..GitView::default() }),
        run: Some(RunView { current_item: Some(bad.clone()), ..RunView::default() }),
        health_problem: Some(bad.clone()),
        ..StatusLineView::default()
    };
    view.custom_values.insert("own".into(), Ok(bad));
    let json = r#"{"lines": [["model", "effort", "directory", "git", "run", "version", "health", "own"]],
        "segments": {"own": {"pointer": "/x"}}}"#;
    let line = render_lines_or_program_name(&view, &parse_settings(json));
    assert!(!line.contains(|letter: char| letter.is_control() || letter == '\u{202e}'), "{line:?}");
}

#[test]
fn a_long_line_drops_the_least_important_first_and_never_the_usage() {
    let mut view = view(43);
    view.payload.effort.level = Some("high".into());
    view.payload.version = Some("2.1.329".into());
    let settings = parse_settings(
        r#"{"lines": [["model", "effort", "directory", "git", "load", "run", "cost", "version"]]}"#,
    );
    for (columns, line) in [
        (
            140,
            "Opus 5.5 │ high │ project │ ⎇ main │ ▕█████████░░░░░┆░░┆░┃▏ 43% 430k/1M · 537k left │ ralph 2/50 · 1/3 items │ $0.12 │ v2.1.329",
        ),
        (
            120,
            "Opus 5.5 │ high │ project │ ⎇ main │ ▕████████░░░┆░░┆░┃▏ 43% · 537k left │ ralph 2/50 · 1/3 items │ $0.12 │ v2.1.329",
        ),
        (
            100,
            "Opus 5.5 │ project │ ⎇ main │ ▕███████░░░┆░┆░┃▏ 43% · 537k left │ ralph 2/50 · 1/3 items │ $0.12",
        ),
        (80, "Opus 5.5 │ project │ ⎇ main │ ▕███████░░░┆░┆░┃▏ 43% · 537k left │ ralph 2/50"),
        (60, "⎇ main │ ▕███████░░░░┆░┆░┃▏ 43% · 537k left │ ralph 2/50"),
        (40, "high │ ▕█████░░┆┆┃▏ 43% │ ralph 2/50"),
        (20, "▕█████░░┆┆┃▏ 43%"),
        (10, "43%"),
        (5, "…"),
    ] {
        view.columns = Some(columns);
        assert_eq!(render_lines_or_program_name(&view, &settings), line, "{columns}");
    }
    view.columns = Some(40);
    let model = explain_segments(&view, &settings).remove(0);
    assert_eq!(model.rendered.unwrap_err().to_string(), "the line is too long for 40 columns");
}

#[test]
fn long_names_are_truncated_before_dropped_and_free_columns_used() {
    let mut view = view(43);
    view.directory = Some("~/work/a-folder-with-a-rather-long-name".into());
    view.git = Some(GitView { branch: "feature/a-branch-for-totals".into(), ..GitView::default() });
    for (columns, line) in [
        (
            150,
            "Opus 5.5 │ a-folder-with-a-rather-long-name │ ⎇ feature/a-branch-for-totals │ ▕████████░░░┆░░┆░┃▏ 43% · 537k left │ ralph 2/50 · 1/3 items │ $0.12",
        ),
        (
            120,
            "Opus 5.5 │ a-folder-with-a-rat… │ ⎇ feature/a-branch-for-totals │ ▕█████░░┆░┆┃▏ 43% · 537k left │ ralph 2/50 │ $0.12",
        ),
        (90, "Opus 5.5 │ a-folder-… │ ⎇ feature/a-b… │ ▕███████░░┆░┆░┃▏ 43% · 537k left │ ralph 2/50"),
        (72, "⎇ feature/a-b… │ ▕██████░░┆░┆┃▏ 43% · 537k left │ ralph 2/50 │ $0.12"),
        // The branch was dropped, which leaves room for the model.
        (56, "Opus 5.5 │ ▕█████░░┆┆┃▏ 43% · 537k left │ ralph 2/50"),
    ] {
        view.columns = Some(columns);
        assert_eq!(render_lines_or_program_name(&view, &StatusLine::default()), line, "{columns}");
    }
    let path = parse_settings(
        r#"{"lines": [["directory", "load"]], "segments": {"directory": {"format": "{path}"}}}"#,
    );
    view.columns = Some(60);
    assert_eq!(
        render_lines_or_program_name(&view, &path),
        "…-a-rather-long-name │ ▕███████░░░┆░┆░┃▏ 43% · 537k left"
    );
}

#[test]
fn wide_letters_count_twice() {
    let mut view = view(43);
    view.directory = Some("项目项目项目项目".into());
    let settings = parse_settings(
        r#"{"lines": [["directory", "load"]], "segments": {"load": {"format": "{percent}"}}}"#,
    );
    view.columns = Some(26);
    assert_eq!(render_lines_or_program_name(&view, &settings), "项目项目项目项目 │ 43%");
    view.columns = Some(25);
    assert_eq!(render_lines_or_program_name(&view, &settings), "项目项目… │ 43%");
}

#[test]
fn settings_choose_lines_formats_and_widths() {
    let mut view = view(43);
    view.custom_values.insert("box".into(), Ok("on".into()));
    view.custom_values.insert("gone".into(), Err(HiddenReason::CommandExitedWithError(3)));
    let json = r#"{"lines": [["load", "box", "gone"], ["run"], ["memory"], ["directory"]], "separator": " ~ ",
        "segments": {"load": {"format": "{percent}[ {level}]"}, "box": {"pointer": "/b", "format": "<{value}>"},
                     "gone": {"command": ["false"]}, "directory": {"format": "{path}", "min_columns": 90}}}"#;
    assert_eq!(
        render_lines_or_program_name(&view, &parse_settings(json)),
        "43% L0 ~ <on>\nralph 2/50 · 1/3 items\n~/work/project"
    );
    view.columns = Some(80);
    assert_eq!(
        render_lines_or_program_name(&view, &parse_settings(json)),
        "43% L0 ~ <on>\nralph 2/50 · 1/3 items"
    );
    let rendered = |name: &str| {
        explain_segments(&view, &parse_settings(json))
            .into_iter()
            .find(|one| one.name == name)
            .unwrap()
            .rendered
    };
    assert_eq!(rendered("gone").unwrap_err().to_string(), "it exited with 3");
    assert_eq!(rendered("directory").unwrap_err().to_string(), "it needs 90 columns, and there are 80");
    assert_eq!(render_lines_or_program_name(&view, &parse_settings(r#"{"lines": [[]]}"#)), "plimsoll");
}

#[test]
fn the_color_shows_the_level_and_reached_limits() {
    let render_colored = |view: StatusLineView| {
        render_lines_or_program_name(&StatusLineView { use_color: true, ..view }, &StatusLine::default())
    };
    for (percent, code) in [(10, "32"), (72, "33"), (87, "35"), (97, "1;31")] {
        assert!(render_colored(view(percent)).contains(&format!("\u{1b}[{code}m▕")), "{percent}");
    }
    let mut view_with_limit = view(10);
    view_with_limit.weekly_limit = Some(LimitView { used_percent: Some(80.0), resets_at: None });
    assert!(render_colored(view_with_limit.clone()).contains("\u{1b}[33m7d 80%"));
    view_with_limit.weekly_limit = Some(LimitView { used_percent: Some(90.0), resets_at: None });
    assert!(render_colored(view_with_limit.clone()).contains("\u{1b}[1;31m7d 90%"));
    let cost_with_limits = parse_settings(
        r#"{"lines": [["cost"]], "segments": {"cost": {"warn": 0.1, "alarm": 5, "colour": "blue"}}}"#,
    );
    view_with_limit.use_color = true;
    assert_eq!(render_lines_or_program_name(&view_with_limit, &cost_with_limits), "\u{1b}[33m$0.12\u{1b}[0m");
    view_with_limit.payload.cost.total_cost_usd = Some(0.05);
    assert_eq!(render_lines_or_program_name(&view_with_limit, &cost_with_limits), "\u{1b}[34m$0.05\u{1b}[0m");
}

#[test]
fn each_theme_adds_colors_only_if_they_are_enabled() {
    let settings_for = |theme, background| StatusLine {
        theme,
        background,
        lines: vec![vec!["model".into(), "load".into()]],
        ..StatusLine::default()
    };
    let (mut plain, mut colored) = (view(43), view(43));
    colored.use_color = true;
    plain.use_color = false;
    for background in [Background::Dark, Background::Light] {
        let powerline = render_lines_or_program_name(&colored, &settings_for(Theme::Powerline, background));
        assert!(
            powerline.contains('\u{e0b0}')
                && powerline.contains("\u{1b}[48;5;") | powerline.contains(";48;5;")
        );
        assert!(powerline.ends_with("\u{1b}[0m"));
        for theme in [Theme::Plain, Theme::Colour, Theme::Powerline] {
            let line = render_lines_or_program_name(&plain, &settings_for(theme, background));
            assert!(!line.contains('\u{1b}') && !line.contains('\u{e0b0}'), "{line}");
        }
    }
    let ascii = render_lines_or_program_name(&colored, &settings_for(Theme::Plain, Background::Dark));
    assert_eq!(ascii, "Opus 5.5 | [#########.....:..:.|] 43% 430k/1M - 537k left");
    assert_ne!(
        render_lines_or_program_name(&colored, &settings_for(Theme::Colour, Background::Dark)),
        render_lines_or_program_name(&colored, &settings_for(Theme::Colour, Background::Light))
    );
}

#[test]
fn a_deeply_nested_folder_is_shown_by_its_own_name() {
    let mut view = view(43);
    view.directory = Some(format!("~/{}/project", "deep/".repeat(30)));
    assert_eq!(render_alone("directory", &view), Ok("project".into()));
    let whole =
        parse_settings(r#"{"lines": [["directory"]], "segments": {"directory": {"format": "{path}"}}}"#);
    let line = render_lines_or_program_name(&view, &whole);
    assert!(line.starts_with('…') && line.ends_with("/project") && line.chars().count() == 80, "{line}");
}

#[test]
fn escape_sequences_in_a_git_operation_are_not_printed() {
    let mut view = view(43);
    let evil = "\u{1b}[31mrebase\u{1b}]0;title\u{7}\nx 2/5";
    view.git = Some(GitView { branch: evil.into(), worktree: Some(evil.into()), ..GitView::default() });
    view.git.as_mut().unwrap().operation_in_progress = Some(evil.into());
    let line = render_lines_or_program_name(&view, &parse_settings(r#"{"lines": [["git"]]}"#));
    assert!(!line.contains(char::is_control), "{line:?}");
}

#[test]
fn powerline_blocks_fit_into_the_terminal() {
    for separator in ["null", r#""""#, r#"" a long one ""#] {
        let settings = parse_settings(&format!(r#"{{"theme": "powerline", "separator": {separator}}}"#));
        for (columns, use_color) in (30..130).flat_map(|columns| [(columns, true), (columns, false)]) {
            let line = render_lines_or_program_name(
                &StatusLineView { columns: Some(columns), use_color, ..view(43) },
                &settings,
            );
            let letters: String = line
                .split('\u{1b}')
                .enumerate()
                .map(|(part, text)| if part == 0 { text } else { text.split_once('m').unwrap().1 })
                .collect();
            assert!(letters.width() <= columns - 4, "{columns} {separator}: {letters}");
        }
    }
}

#[test]
fn an_absurdly_large_value_does_not_fill_the_line() {
    let mut view = view(43);
    view.payload.cost.total_cost_usd = Some(1e300);
    view.weekly_limit = Some(LimitView { used_percent: Some(1e300), resets_at: None });
    assert!(render_lines_or_program_name(&view, &StatusLine::default()).chars().count() < 140);
}

#[test]
fn the_actionable_segments_stay_in_80_columns() {
    let mut view = view(43);
    view.context_usage.usage_samples = fills(&(1..=30).map(|n| n * 14_000).collect::<Vec<u64>>());
    let limit = |percent: f64| LimitView { used_percent: Some(percent), resets_at: Some("03:00".into()) };
    (view.five_hour_limit, view.weekly_limit) = (Some(limit(31.0)), Some(limit(91.0)));
    for (columns, line) in [
        (
            160,
            "Opus 5.5 │ project │ ⎇ main │ ▕█████████░░░░░┆░░┆░┃▏ 43% 430k/1M · 537k left · ~39 turns │ ralph 2/50 · 1/3 items │ 5h 31% ↻03:00 │ 7d 91% ↻03:00 │ $0.12",
        ),
        (
            100,
            "Opus 5.5 │ ⎇ main │ ▕████████░░░┆░░┆░┃▏ 43% · 537k left · ~39 turns │ ralph 2/50 │ 7d 91% ↻03:00",
        ),
        (80, "▕████████░░░┆░░┆░┃▏ 43% · 537k left · ~39 turns │ ralph 2/50 │ 7d 91% ↻03:00"),
        (60, "▕███████░░░░┆░┆░┃▏ 43% · 537k left │ ralph 2/50 │ 7d 91%"),
        (40, "▕████████░░░┆░░┆░┃▏ 43% │ ralph 2/50"),
    ] {
        view.columns = Some(columns);
        assert_eq!(render_lines_or_program_name(&view, &StatusLine::default()), line, "{columns}");
    }
    view.weekly_limit = Some(limit(20.0));
    view.columns = Some(80);
    assert!(
        !render_lines_or_program_name(&view, &StatusLine::default()).contains("7d"),
        "a limit that is far goes early"
    );
}
