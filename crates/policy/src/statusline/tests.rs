use super::*;
use crate::thresholds::{CompactionConfig, auto_compact, thresholds};
use plimsoll_domain::Settings;
use plimsoll_domain::forecast::Fill;
use plimsoll_domain::memory::{Pressure, Register};
use plimsoll_domain::record::GitCounts;
use plimsoll_domain::statusline::{Background, Theme};
use plimsoll_protocol::status::{Cost, Effort, Model, StatusPayload};
use unicode_width::UnicodeWidthStr;

fn view(percent: u64) -> View {
    let settings = Settings::default();
    let thresholds = thresholds(
        1_000_000,
        auto_compact(1_000_000, None, &CompactionConfig::default()),
        &settings.levels,
        &settings.margins,
        0,
    );
    View {
        client: StatusPayload {
            model: Model { display_name: Some("Opus 5.5".into()), id: None },
            cost: Cost { total_cost_usd: Some(0.123), ..Cost::default() },
            ..StatusPayload::default()
        },
        directory: Some("~/work/project".into()),
        git: Some(GitView { branch: "main".into(), ..GitView::default() }),
        load: LoadView {
            percent: Some(percent),
            used: Some(percent * 10_000),
            thresholds: Some(thresholds),
            fills: Vec::new(),
        },
        run: Some(RunView { iteration: 2, max_iterations: 50, done: 1, items: 3, ..RunView::default() }),
        ..View::default()
    }
}

fn look(json: &str) -> StatusLine {
    let look: StatusLine = serde_json::from_str(json).unwrap();
    assert_eq!(look.problem(), None);
    look
}

/// One segment alone, as it is written.
fn shown(name: &str, view: &View) -> Result<String, Hidden> {
    let look = StatusLine { lines: vec![vec![name.to_owned().into()]], ..StatusLine::default() };
    explain(view, &look).into_iter().find(|explained| explained.name == name).unwrap().shown
}

#[test]
fn the_line_shows_usage_thresholds_and_auto_compaction() {
    assert_eq!(
        render(&view(43), &StatusLine::default()),
        "Opus 5.5 │ project │ ⎇ main │ ▕█████████░░░░░┆░░┆░┃▏ 43% 430k/1M · 537k left │ ralph 2/50 · 1/3 items │ $0.12"
    );
}

#[test]
fn unknown_is_a_question_mark_and_never_zero() {
    assert_eq!(render(&View::default(), &StatusLine::default()), "▕░░░░░░░░░░░░░░░░░░░░▏ ?");
    assert!(load_line(&view(0), 20).ends_with("0%"));
}

#[test]
fn each_segment_shows_what_it_has() {
    let mut view = view(43);
    view.load.fills = fills(&[100_000, 130_000, 170_000, 180_000, 430_000]);
    view.client.effort.level = Some("high".into());
    view.git = Some(GitView {
        branch: "a-fix".into(),
        worktree: Some("tree".into()),
        action: Some("rebase 2/5".into()),
        counts: Some(GitCounts { ahead: 1, behind: 2, conflicts: 3, staged: 4, modified: 5, untracked: 6 }),
        stale: true,
        ..GitView::default()
    });
    view.run = Some(RunView {
        iteration: 2,
        max_iterations: 50,
        done: 1,
        items: 3,
        item: Some("Convert src/report.rs".into()),
        checkpoint: Some(87),
        paused: Some("until 14:30".into()),
    });
    view.memory = Some(MemoryView {
        depth: 2,
        frame: "write-tests".into(),
        heap_percent: 92,
        pressure: Pressure::High,
        stale: vec![Register::Next, Register::Status],
    });
    view.cache = Some(CacheView { warm: Some(true), hit_ratio: Some(0.976), until: Some("14:05".into()) });
    view.client.cost.total_duration_ms = Some(1_800_000);
    view.five_hour = Some(LimitView { percent: Some(42.4), reset: Some("14:30".into()) });
    view.weekly = Some(LimitView { percent: Some(91.0), reset: None });
    view.spend = Some(LimitView { percent: Some(91.0), reset: Some("14:30".into()) });
    view.client.cost.total_lines_added = Some(12);
    view.client.cost.total_lines_removed = Some(3);
    view.client.version = Some("2.1.329".into());
    view.health = Some("plimsoll-post-tool failed at 14:02: disk full".into());
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
        assert_eq!(shown(name, &view).as_deref(), Ok(text));
    }
}

#[test]
fn no_line_is_wider_than_the_client_shows_it_whatever_it_would_say() {
    let mut view = view(43);
    view.health = Some("a failure with a long story behind it, told whole ".repeat(2));
    view.colour = true;
    let powerline = look(r#"{"theme": "powerline", "lines": [["model", "load", "run", "health"]]}"#);
    let worded =
        look(r#"{"segments": {"load": {"format": "the window of this session holds {percent} {bar}"}}}"#);
    let bare = |line: String| {
        let mut parts = line.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |bare, part| bare + part.split_once('m').map_or("", |(_, text)| text))
    };
    for look in [&StatusLine::default(), &powerline, &worded] {
        for columns in 8..160 {
            view.columns = Some(columns);
            let line = bare(render(&view, look));
            assert!(line.width() <= columns - 4 && !line.trim().is_empty(), "{columns}: {line:?}");
        }
    }
    view.columns = Some(60);
    let line = bare(render(&view, &StatusLine::default()));
    assert_eq!(line, "▕█████░░┆┆┃▏ 43% │ ⚠ a failure with a long story behind…");
}

#[test]
fn no_foreign_word_steers_the_terminal() {
    let mut view = view(43);
    view.git = Some(GitView {
        branch: "a\u{1b}[2Jb".into(),
        worktree: Some("c\u{7}".into()),
        action: Some("rebase 1/\u{1b}]0;x".into()),
        ..GitView::default()
    });
    assert!(!render(&view, &StatusLine::default()).contains(char::is_control));
}

#[test]
fn a_segment_without_a_value_is_hidden_and_says_why() {
    let nothing = View::default();
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
    let reasons = names.map(|name| format!("{name}: {}", shown(name, &nothing).expect_err("a reason")));
    insta::assert_snapshot!(reasons.join("\n"), @"
    model: the client reports no model
    effort: the client reports no effort (some models have none)
    git: the working directory is in no git repository
    run: no run is active in this project
    memory: this session does not use the working memory
    growth: fewer than two responses since the window was empty
    cache: the client reports no prompt cache before the first answer
    burn: the client reports no cost
    five_hour: the client reports no such limit (it does with a subscription, after the first answer)
    lines: the client reports no lines
    health: nothing is wrong
    ");
    let cost = Cost {
        total_cost_usd: Some(1.0),
        total_duration_ms: Some(5_000),
        total_lines_added: Some(0),
        total_lines_removed: Some(0),
    };
    let calm = View { client: StatusPayload { cost, ..StatusPayload::default() }, ..nothing };
    assert_eq!(shown("lines", &calm), Err(Hidden::Nothing("no line has changed")));
    assert_eq!(shown("burn", &calm), Err(Hidden::Nothing("the session is younger than a minute")));
    let absent = explain(&calm, &look(r#"{"lines": [["load"]]}"#));
    let cost = absent.iter().find(|explained| explained.name == "cost").unwrap();
    assert_eq!(cost.shown, Err(Hidden::Nothing("it is in no line of the settings")));
}

fn fills(used: &[u64]) -> Vec<Fill> {
    used.iter().zip(0..).map(|(used, minute)| Fill { used: *used, at: Some(minute * 60) }).collect()
}

#[test]
fn turns_and_minutes_to_each_mark_are_shown_where_the_format_names_them() {
    let even: Vec<u64> = (0..25).map(|step| 190_000 + step * 10_000).collect();
    for (known, turns) in [
        (&even[22..], None),
        (&even[..], Some("~")),
        // Nothing was added: there is no end in sight.
        (&[430_000; 4], None),
    ] {
        let mut view = view(43);
        view.load.fills = fills(known);
        let said = shown("load", &view).unwrap();
        let found = said.split_once("left · ").map(|(_, turns)| turns.trim_end_matches(" turns"));
        assert_eq!(found.map(|found| &found[..1]), turns, "{said}");
    }
    let mut view = view(43);
    view.load.fills = fills(&even);
    let look = look(r#"{"segments": {"load": {"format": "{turns_l1} {minutes_l1}, {turns_l2}, {turns}"}}}"#);
    let said =
        explain(&view, &look).into_iter().find(|explained| explained.name == "load").unwrap().shown.unwrap();
    let number = |place: usize| -> u64 {
        said.split([' ', ',']).filter(|word| word.starts_with('~')).nth(place).unwrap()[1..].parse().unwrap()
    };
    // 270k, 420k and 537k tokens ahead, by some 10k each.
    assert!((25..45).contains(&number(0)) && number(0) == number(1), "{said}");
    assert!(number(0) < number(2) && number(2) < number(3), "{said}");
}

#[test]
fn names_cannot_smuggle_escapes_or_line_breaks_into_the_line() {
    let bad = "a\u{1b}[31m\nb\u{7}\u{202e}".to_owned();
    let mut view = View {
        client: StatusPayload {
            model: Model { display_name: Some(bad.clone()), id: None },
            effort: Effort { level: Some(bad.clone()) },
            version: Some(bad.clone()),
            ..StatusPayload::default()
        },
        directory: Some(bad.clone()),
        git: Some(GitView { branch: bad.clone(), worktree: Some(bad.clone()), ..GitView::default() }),
        run: Some(RunView { item: Some(bad.clone()), ..RunView::default() }),
        health: Some(bad.clone()),
        ..View::default()
    };
    view.own.insert("own".into(), Ok(bad));
    let all = r#"{"lines": [["model", "effort", "directory", "git", "run", "version", "health", "own"]],
        "segments": {"own": {"pointer": "/x"}}}"#;
    let line = render(&view, &look(all));
    assert!(!line.contains(|letter: char| letter.is_control() || letter == '\u{202e}'), "{line:?}");
}

#[test]
fn a_line_that_is_too_long_leaves_out_the_least_important_first_and_never_the_load() {
    let mut view = view(43);
    view.client.effort.level = Some("high".into());
    view.client.version = Some("2.1.329".into());
    let look =
        look(r#"{"lines": [["model", "effort", "directory", "git", "load", "run", "cost", "version"]]}"#);
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
        assert_eq!(render(&view, &look), line, "{columns}");
    }
    view.columns = Some(40);
    let model = explain(&view, &look).remove(0);
    assert_eq!(model.shown.unwrap_err().to_string(), "the line is too long for 40 columns");
}

#[test]
fn long_names_are_truncated_before_they_go_and_free_columns_are_used() {
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
        assert_eq!(render(&view, &StatusLine::default()), line, "{columns}");
    }
    let path = look(r#"{"lines": [["directory", "load"]], "segments": {"directory": {"format": "{path}"}}}"#);
    view.columns = Some(60);
    assert_eq!(render(&view, &path), "…-a-rather-long-name │ ▕███████░░░┆░┆░┃▏ 43% · 537k left");
}

#[test]
fn wide_letters_count_twice() {
    let mut view = view(43);
    view.directory = Some("项目项目项目项目".into());
    let look = look(r#"{"lines": [["directory", "load"]], "segments": {"load": {"format": "{percent}"}}}"#);
    view.columns = Some(26);
    assert_eq!(render(&view, &look), "项目项目项目项目 │ 43%");
    view.columns = Some(25);
    assert_eq!(render(&view, &look), "项目项目… │ 43%");
}

#[test]
fn settings_choose_lines_formats_and_widths() {
    let mut view = view(43);
    view.own.insert("box".into(), Ok("on".into()));
    view.own.insert("gone".into(), Err(Hidden::Exited(3)));
    let json = r#"{"lines": [["load", "box", "gone"], ["run"], ["memory"], ["directory"]], "separator": " ~ ",
        "segments": {"load": {"format": "{percent}[ {level}]"}, "box": {"pointer": "/b", "format": "<{value}>"},
                     "gone": {"command": ["false"]}, "directory": {"format": "{path}", "min_columns": 90}}}"#;
    assert_eq!(render(&view, &look(json)), "43% L0 ~ <on>\nralph 2/50 · 1/3 items\n~/work/project");
    view.columns = Some(80);
    assert_eq!(render(&view, &look(json)), "43% L0 ~ <on>\nralph 2/50 · 1/3 items");
    let why =
        |name: &str| explain(&view, &look(json)).into_iter().find(|one| one.name == name).unwrap().shown;
    assert_eq!(why("gone").unwrap_err().to_string(), "it exited with 3");
    assert_eq!(why("directory").unwrap_err().to_string(), "it needs 90 columns, and there are 80");
    assert_eq!(render(&view, &look(r#"{"lines": [[]]}"#)), "plimsoll");
}

#[test]
fn colour_tells_the_level_and_what_asks_for_attention() {
    let painted = |view: View| render(&View { colour: true, ..view }, &StatusLine::default());
    for (percent, code) in [(10, "32"), (72, "33"), (87, "35"), (97, "1;31")] {
        assert!(painted(view(percent)).contains(&format!("\u{1b}[{code}m▕")), "{percent}");
    }
    let mut late = view(10);
    late.weekly = Some(LimitView { percent: Some(80.0), reset: None });
    assert!(painted(late.clone()).contains("\u{1b}[33m7d 80%"));
    late.weekly = Some(LimitView { percent: Some(90.0), reset: None });
    assert!(painted(late.clone()).contains("\u{1b}[1;31m7d 90%"));
    let dear =
        look(r#"{"lines": [["cost"]], "segments": {"cost": {"warn": 0.1, "alarm": 5, "colour": "blue"}}}"#);
    late.colour = true;
    assert_eq!(render(&late, &dear), "\u{1b}[33m$0.12\u{1b}[0m");
    late.client.cost.total_cost_usd = Some(0.05);
    assert_eq!(render(&late, &dear), "\u{1b}[34m$0.05\u{1b}[0m");
}

#[test]
fn each_theme_paints_and_without_colours_none_does() {
    let of = |theme, background| StatusLine {
        theme,
        background,
        lines: vec![vec!["model".into(), "load".into()]],
        ..StatusLine::default()
    };
    let (mut plain, mut coloured) = (view(43), view(43));
    coloured.colour = true;
    plain.colour = false;
    for background in [Background::Dark, Background::Light] {
        let powerline = render(&coloured, &of(Theme::Powerline, background));
        assert!(
            powerline.contains('\u{e0b0}')
                && powerline.contains("\u{1b}[48;5;") | powerline.contains(";48;5;")
        );
        assert!(powerline.ends_with("\u{1b}[0m"));
        for theme in [Theme::Plain, Theme::Colour, Theme::Powerline] {
            let line = render(&plain, &of(theme, background));
            assert!(!line.contains('\u{1b}') && !line.contains('\u{e0b0}'), "{line}");
        }
    }
    let ascii = render(&coloured, &of(Theme::Plain, Background::Dark));
    assert_eq!(ascii, "Opus 5.5 | [#########.....:..:.|] 43% 430k/1M - 537k left");
    assert_ne!(
        render(&coloured, &of(Theme::Colour, Background::Dark)),
        render(&coloured, &of(Theme::Colour, Background::Light))
    );
}

#[test]
fn a_folder_far_down_is_named_by_its_own_name() {
    let mut view = view(43);
    view.directory = Some(format!("~/{}/project", "deep/".repeat(30)));
    assert_eq!(shown("directory", &view), Ok("project".into()));
    let whole = look(r#"{"lines": [["directory"]], "segments": {"directory": {"format": "{path}"}}}"#);
    let line = render(&view, &whole);
    assert!(line.starts_with('…') && line.ends_with("/project") && line.chars().count() == 80, "{line}");
}

#[test]
fn a_repository_that_is_a_strangers_paints_nothing_of_its_own() {
    let mut view = view(43);
    let evil = "\u{1b}[31mrebase\u{1b}]0;title\u{7}\nx 2/5";
    view.git = Some(GitView { branch: evil.into(), worktree: Some(evil.into()), ..GitView::default() });
    view.git.as_mut().unwrap().action = Some(evil.into());
    let line = render(&view, &look(r#"{"lines": [["git"]]}"#));
    assert!(!line.contains(char::is_control), "{line:?}");
}

#[test]
fn blocks_of_colour_fit_where_the_rest_does() {
    for separator in ["null", r#""""#, r#"" a long one ""#] {
        let look = look(&format!(r#"{{"theme": "powerline", "separator": {separator}}}"#));
        for (columns, colour) in (30..130).flat_map(|columns| [(columns, true), (columns, false)]) {
            let line = render(&View { columns: Some(columns), colour, ..view(43) }, &look);
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
fn a_figure_that_makes_no_sense_does_not_fill_the_line() {
    let mut view = view(43);
    view.client.cost.total_cost_usd = Some(1e300);
    view.weekly = Some(LimitView { percent: Some(1e300), reset: None });
    assert!(render(&view, &StatusLine::default()).chars().count() < 140);
}

#[test]
fn what_one_acts_upon_stays_in_80_columns() {
    let mut view = view(43);
    view.load.fills = fills(&(1..=30).map(|n| n * 14_000).collect::<Vec<u64>>());
    let limit = |percent: f64| LimitView { percent: Some(percent), reset: Some("03:00".into()) };
    (view.five_hour, view.weekly) = (Some(limit(31.0)), Some(limit(91.0)));
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
        assert_eq!(render(&view, &StatusLine::default()), line, "{columns}");
    }
    view.weekly = Some(limit(20.0));
    view.columns = Some(80);
    assert!(!render(&view, &StatusLine::default()).contains("7d"), "a limit that is far goes early");
}
