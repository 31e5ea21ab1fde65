use super::draw::draw_screen;
use super::keys::WatchViewState;
use super::screen_content::{LastText, ScreenContent};
use crate::journal_lines::LineStyle;
use crate::run_status::RunStatusView;
use plimsoll_domain::forecast::{ForecastRange, ThresholdForecast};
use plimsoll_domain::level::{AutoCompactAction, AutoCompactThreshold, Level, Thresholds};
use plimsoll_domain::reading::{UsageSource, WindowSize, WindowSource};
use plimsoll_domain::state::{Checkpoint, IterationRecord};
use plimsoll_domain::state::{Lifecycle, PlanItems, ProjectAtStart, RunOptions, RunSpending};
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{RunState, RunStatus, UsageReading, Verdict};
use plimsoll_policy::run_activity::{ActivityEvidence, RunActivity, determine_activity};
use plimsoll_policy::run_figures::figures_of_sequential_run;
use plimsoll_store::clock;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

const MILLION: u64 = 1_000_000;
const STARTED: &str = "2026-01-07T05:00:00Z";
const UNTIL: &str = "2026-01-07T08:05:00Z";

fn run_state() -> RunState {
    RunState {
        run_id: "r1".into(),
        iteration: 3,
        context_checkpoint: Checkpoint {
            handoff_file: ".claude/handoffs/a.md".into(),
            iteration: 2,
            level: Level::L2,
            percent_at_checkpoint: Some(87),
            ..Checkpoint::default()
        },
        iteration_record: IterationRecord::default(),
        options: RunOptions { task_name: "Dates".into(), max_iterations: 50, ..RunOptions::default() },
        project_at_start: ProjectAtStart { started_at: STARTED.into(), ..ProjectAtStart::default() },
        plan_items: PlanItems {
            completed_items: vec!["Item one".into()],
            todo_items: vec!["Item two".into(), "Item three".into()],
            ..PlanItems::default()
        },
        spending: RunSpending { cost_usd: 1.5, ..RunSpending::default() },
        ..RunState::default()
    }
}

fn screen_content(state: RunState) -> ScreenContent {
    let window = WindowSize { tokens: MILLION, source: WindowSource::Assumed };
    ScreenContent {
        root: "/p".into(),
        view: Some(RunStatusView {
            figures: figures_of_sequential_run(&state, None),
            activity: determine_activity(&ActivityEvidence::from_state_without_process_checks(&state, true)),
            stop_reason: None,
            state,
            context_usage: None,
            pending_item_lines: Vec::new(),
            journal_path: "journal.jsonl".into(),
            disk_usage: None,
            now: clock::parse_rfc3339("2026-01-07T07:00:00Z").unwrap(),
            max_line_width: 80,
        }),
        state_error: None,
        reading: Some(UsageReading {
            used_tokens: 430_000,
            output_tokens: 0,
            estimated_added_tokens: 0,
            window: Some(window),
            model: None,
            usage_source: UsageSource::Transcript,
            message_id: None,
            responded_at: None,
            is_one_request_behind: false,
        }),
        thresholds: Some(Thresholds {
            window: MILLION,
            l1: 700_000,
            l2: 850_000,
            l3: 947_000,
            auto_compact: AutoCompactThreshold { tokens: 967_000, action: AutoCompactAction::Compacts },
            is_clamped: false,
        }),
        checkpoint_forecast: Some(ThresholdForecast {
            turns: ForecastRange { earliest: 9, median: 14, latest: 22 },
            minutes: None,
        }),
        last_texts: Vec::new(),
        log: (1..=40).map(|number| (format!("line {number} of the log"), LineStyle::Plain)).collect(),
    }
}

#[expect(clippy::disallowed_methods, reason = "this terminal is a test's")]
fn draw_to_terminal(
    content: &ScreenContent,
    view_state: &WatchViewState,
    columns: u16,
    rows: u16,
) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw_screen(content, view_state, frame.area(), frame.buffer_mut())).unwrap();
    terminal
}

fn render_screen(content: &ScreenContent, view_state: &WatchViewState, columns: u16, rows: u16) -> String {
    let terminal = draw_to_terminal(content, view_state, columns, rows);
    let cells = terminal.backend().buffer().content();
    let row_text =
        |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    cells.chunks(usize::from(columns)).map(|cells| row_text(cells).trim_end().to_owned() + "\n").collect()
}

/// Replaces local times, which depend on the time zone, with `[STARTED]` and `[UNTIL]`.
fn replace_local_times(screen: &str) -> String {
    [(STARTED, "[STARTED]"), (UNTIL, "[UNTIL]")].into_iter().fold(
        screen.to_owned(),
        |screen, (moment, name)| {
            let local_time =
                clock::format_local_time_with_seconds(clock::parse_rfc3339(moment).expect("a moment"));
            screen.replace(&to_safe_single_line(&local_time), name)
        },
    )
}

/// Returns the rows of the screen above the log.
fn rows_above_log(screen: &str) -> String {
    let lines = screen.lines().take_while(|line| !line.contains("── log ──"));
    replace_local_times(&lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn an_80_by_24_terminal_shows_everything() {
    let text = render_screen(&screen_content(run_state()), &WatchViewState::default(), 80, 24);
    insta::assert_snapshot!(replace_local_times(&text), @r#"
    Dates · session 3 · running
    Load         ▕██████████████████░░░░░░░░░░░░┆░░░░░░┆░░░┆┃░▏ 43% 430k L0 (normal)
                 L1 70% · L2 85% · L3 95% · auto-compact 97%
                 L2 in about 14 turns (9 to 22)
    Status       running: a `plimsoll run` is active
    Current item "Item two", session 3
    Items        1 of 3 done, 2 open
      [x] Item one
      [ ] Item two
      [ ] Item three
    Cost         $1.50, 0 tokens
    Handoff      the last: .claude/handoffs/a.md (L2 at 87%, session 2)
    Time         started [STARTED], 2 h ago
    Left         no estimate yet
    ── log ─────────────────────────────────────────────────────────────────────────
    line 33 of the log
    line 34 of the log
    line 35 of the log
    line 36 of the log
    line 37 of the log
    line 38 of the log
    line 39 of the log
    line 40 of the log
     q quit   ↑↓ PgUp PgDn log   ? help
    "#);
    let usage_row = text.lines().find(|line| line.contains('█')).unwrap();
    assert!(
        usage_row.find('█') < usage_row.find('┆') && usage_row.find('┆') < usage_row.find('┃'),
        "{usage_row}"
    );
}

#[test]
fn any_size_and_hostile_names_are_drawn_safely() {
    let hostile = "認証\u{1b}[2J\u{7}\r\n a\u{301}\u{200d}👩‍👩‍👧 \u{202e}evil | ".repeat(20);
    let hostile_state = RunState {
        options: RunOptions { task_name: hostile.clone(), ..run_state().options },
        plan_items: PlanItems {
            completed_items: vec![hostile.clone(); 200],
            todo_items: vec![hostile.clone(); 3],
            ..run_state().plan_items
        },
        lifecycle: Lifecycle::from_verdict(&Verdict::Stop {
            status: RunStatus::FatalError,
            reason: hostile.clone(),
        }),
        spending: RunSpending { cost_usd: f64::MAX, tokens: u64::MAX, ..run_state().spending },
        ..run_state()
    };
    let mut hostile_content = screen_content(hostile_state);
    hostile_content.log = vec![(hostile.clone(), LineStyle::Bad); 3];
    hostile_content.reading.as_mut().unwrap().used_tokens = u64::MAX;
    let without_run = ScreenContent { view: None, state_error: Some(hostile), ..screen_content(run_state()) };
    for content in [&hostile_content, &without_run, &screen_content(run_state())] {
        for (columns, rows) in [(20, 6), (1, 1), (3, 3), (40, 10), (80, 24), (200, 60)] {
            for view_state in [
                WatchViewState::default(),
                WatchViewState { lines_below: 2, shows_help: true, use_colors: true },
            ] {
                let text = render_screen(content, &view_state, columns, rows);
                assert_eq!(text.lines().count(), usize::from(rows));
                assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
            }
        }
    }
}

#[test]
fn the_last_words_of_the_running_sessions_are_shown() {
    let mut content = screen_content(run_state());
    let last_words_lines = |content: &ScreenContent| {
        let screen = render_screen(content, &WatchViewState::default(), 60, 40);
        let lines = screen.lines().skip_while(|line| !line.starts_with("It says"));
        lines.take_while(|line| !line.contains("── log")).map(str::to_owned).collect::<Vec<_>>()
    };
    let text =
        "first\n\nsecond line \u{1b}[2J which is so long that it has to be wrapped at a space\n4\n5\n6\n";
    content.last_texts = vec![LastText { worker_number: None, text: text.into() }];
    assert_eq!(
        last_words_lines(&content),
        [
            "It says      second line \\u{1b}[2J which is so long that it",
            "             has to be wrapped at a space",
            "             4",
            "             5",
            "             6"
        ]
    );
    let of_worker = |number, text: &str| LastText { worker_number: Some(number), text: text.into() };
    content.last_texts = vec![of_worker(1, "one\ntwo"), of_worker(2, &"long ".repeat(20))];
    assert_eq!(
        last_words_lines(&content),
        ["It says      worker 1: two", "             worker 2: long long long long long long long l…"]
    );
}

#[test]
fn a_small_terminal_shows_the_most_important_rows() {
    let text = render_screen(&screen_content(run_state()), &WatchViewState::default(), 30, 6);
    insta::assert_snapshot!(text, @"
    Dates · session 3 · running
    Load         ▕███░░┆┆┃▏ 43% 4…
                 L1 70% · L2 85% …
                 L2 in about 14 t…
    Status       running: a `plim…
     q quit   ↑↓ PgUp PgDn log   …
    ");
    // There is room for some lines of the log, too.
    let text = render_screen(&screen_content(run_state()), &WatchViewState::default(), 40, 12);
    insta::assert_snapshot!(replace_local_times(&text), @r#"
    Dates · session 3 · running
    Load         ▕███░░┆┆┃▏ 43% 430k L0 (no…
                 L1 70% · L2 85% · L3 95% ·…
                 L2 in about 14 turns (9 to…
    Status       running: a `plimsoll run` …
    Current item "Item two", session 3
    Items        1 of 3 done, 2 open
    ── log ─────────────────────────────────
    line 38 of the log
    line 39 of the log
    line 40 of the log
     q quit   ↑↓ PgUp PgDn log   ? help
    "#);
}

#[test]
fn a_pause_counts_down_and_the_end_is_shown() {
    let kind = PauseKind::Limit;
    let paused = RunState {
        lifecycle: Lifecycle::from_verdict(&Verdict::Pause {
            kind,
            pause_end: Some(UNTIL.into()),
            reason: "usage limit".into(),
        }),
        ..run_state()
    };
    let text = render_screen(&screen_content(paused), &WatchViewState::default(), 100, 24);
    insta::assert_snapshot!(rows_above_log(&text), @r#"
    Dates · session 3 · waiting
    Load         ▕█████████████████████████░░░░░░░░░░░░░░░░░┆░░░░░░░░┆░░░░┆░┃░▏ 43% 430k L0 (normal)
                 L1 70% · L2 85% · L3 95% · auto-compact 97%
                 L2 in about 14 turns (9 to 22)
    Status       waiting until [UNTIL]: usage limit
    Pause        1 h 5 min left, until [UNTIL]
    Current item "Item two", session 3
    Items        1 of 3 done, 2 open
      [x] Item one
      [ ] Item two
      [ ] Item three
    Cost         $1.50, 0 tokens
    Handoff      the last: .claude/handoffs/a.md (L2 at 87%, session 2)
    Time         started [STARTED], 2 h ago
    Left         no estimate yet
    "#);
    let completed = RunState {
        lifecycle: Lifecycle::from_verdict(&Verdict::Stop {
            status: RunStatus::Completed,
            reason: "3 items".into(),
        }),
        ..run_state()
    };
    let mut ended_content = screen_content(completed);
    ended_content.view.as_mut().unwrap().activity = RunActivity::Ended;
    let text = render_screen(&ended_content, &WatchViewState::default(), 100, 24);
    insta::assert_snapshot!(rows_above_log(&text), @"
    Dates · session 3 · completed
    Load         ▕█████████████████████████░░░░░░░░░░░░░░░░░┆░░░░░░░░┆░░░░┆░┃░▏ 43% 430k L0 (normal)
                 L1 70% · L2 85% · L3 95% · auto-compact 97%
                 L2 in about 14 turns (9 to 22)
    Status       completed: 3 items
    Items        1 of 3 done, 2 open
      [x] Item one
      [ ] Item two
      [ ] Item three
    Cost         $1.50, 0 tokens
    Handoff      the last: .claude/handoffs/a.md (L2 at 87%, session 2)
    Time         started [STARTED], 2 h ago
    Next         nothing: the run is done; see git log and plimsoll report
    ");
}

#[test]
fn keys_scroll_the_log_show_help_and_quit() {
    let content = screen_content(run_state());
    let mut view_state = WatchViewState::default();
    let press = |look: &mut WatchViewState, code| {
        look.handle_key_and_check_quit(KeyEvent::new(code, KeyModifiers::NONE), 40)
    };
    let last_log_line = |look: &WatchViewState| {
        let text = render_screen(&content, look, 80, 24);
        text.lines().rev().find(|line| line.starts_with("line ")).unwrap_or_default().to_owned()
    };
    assert_eq!(last_log_line(&view_state), "line 40 of the log");
    press(&mut view_state, KeyCode::Up);
    press(&mut view_state, KeyCode::PageUp);
    assert_eq!(last_log_line(&view_state), "line 29 of the log");
    view_state.keep_scroll_position(3);
    assert_eq!(view_state.lines_below, 14);
    press(&mut view_state, KeyCode::Home);
    assert!(render_screen(&content, &view_state, 80, 24).contains("\nline 1 of the log\n"));
    press(&mut view_state, KeyCode::End);
    view_state.keep_scroll_position(3);
    assert_eq!(view_state.lines_below, 0, "who follows goes on following");
    press(&mut view_state, KeyCode::Char('?'));
    let help = render_screen(&content, &view_state, 80, 24);
    insta::assert_snapshot!(replace_local_times(&help), @r#"
    Dates · session 3 · running
    Load         ▕██████████████████░░░░░░░░░░░░┆░░░░░░┆░░░┆┃░▏ 43% 430k L0 (normal)
                 L1 70% · L2 85% · L3 95% · auto-compact 97%
                 L2 in about 14 turns (9 to 22)
    Status       running: a `plimsoll run` is active
    Current item "Item two", session 3
    Items        1 of 3 done, 2 open
      [x] Item one
      [ ] Item two
      [ ] Item three
    Cost         $1.50, 0 tokens
    Handoff      the last: .claude/handoffs/a.md (L2 at 87%, session 2)
    Time         started [STARTED], 2 h ago
    Left         no estimate yet
    ── keys
     q, Esc, Ctrl-C  quit; the run continues
     Up, Down        scroll the log by one line
     PgUp, PgDn      scroll by ten lines
     Home, End       to the beginning of the log; to its end, and follow it




     q quit   ↑↓ PgUp PgDn log   ? help
    "#);
    assert!(!press(&mut view_state, KeyCode::Esc) && !view_state.shows_help);
    for (code, modifiers) in [
        (KeyCode::Char('q'), KeyModifiers::NONE),
        (KeyCode::Esc, KeyModifiers::NONE),
        (KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert!(view_state.handle_key_and_check_quit(KeyEvent::new(code, modifiers), 40), "{code:?}");
    }
}

#[test]
fn cells_have_colors_only_if_colors_are_on() {
    let mut content = screen_content(run_state());
    content.log.push(("bad news".into(), LineStyle::Bad));
    for use_colors in [true, false] {
        let terminal =
            draw_to_terminal(&content, &WatchViewState { use_colors, ..WatchViewState::default() }, 80, 24);
        let cells = terminal.backend().buffer().content();
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), use_colors);
    }
}
