use super::draw::draw;
use super::keys::Look;
use super::scene::Scene;
use crate::journal_lines::Tone;
use crate::run_status::View;
use plimsoll_domain::forecast::{Outlook, Span};
use plimsoll_domain::level::{AutoCompact, AutoCompactAction, Level, Thresholds};
use plimsoll_domain::reading::{UsedSource, Window, WindowSource};
use plimsoll_domain::state::{AtStart, Items, Lifecycle, RunOptions, Spent};
use plimsoll_domain::state::{Checkpoint, IterationRecord};
use plimsoll_domain::text::one_line;
use plimsoll_domain::verdict::PauseKind;
use plimsoll_domain::{Reading, RunState, Status, Verdict};
use plimsoll_policy::run_activity::{ActivityEvidence, RunActivity, run_activity};
use plimsoll_policy::run_figures::figures_of_sessions;
use plimsoll_store::clock;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

const MILLION: u64 = 1_000_000;
const STARTED: &str = "2026-01-07T05:00:00Z";
const UNTIL: &str = "2026-01-07T08:05:00Z";

fn state() -> RunState {
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
        at_start: AtStart { started_at: STARTED.into(), ..AtStart::default() },
        items: Items {
            completed_items: vec!["Item one".into()],
            todo_items: vec!["Item two".into(), "Item three".into()],
            ..Items::default()
        },
        spent: Spent { cost_usd: 1.5, ..Spent::default() },
        ..RunState::default()
    }
}

fn scene(state: RunState) -> Scene {
    let window = Window { tokens: MILLION, source: WindowSource::Assumed };
    Scene {
        root: "/p".into(),
        view: Some(View {
            figures: figures_of_sessions(&state, None),
            activity: run_activity(&ActivityEvidence::from_state(&state, true)),
            stop_reason: None,
            state,
            context: None,
            pending_items: Vec::new(),
            journal: "journal.jsonl".into(),
            recorded: None,
            now: clock::parse("2026-01-07T07:00:00Z").unwrap(),
            width: 80,
        }),
        trouble: None,
        reading: Some(Reading {
            used: 430_000,
            output: 0,
            added: 0,
            window: Some(window),
            model: None,
            source: UsedSource::Transcript,
            message_id: None,
            at: None,
            behind: false,
        }),
        thresholds: Some(Thresholds {
            window: MILLION,
            l1: 700_000,
            l2: 850_000,
            l3: 947_000,
            auto_compact: AutoCompact { tokens: 967_000, action: AutoCompactAction::Compacts },
            clamped: false,
        }),
        checkpoint_in: Some(Outlook { turns: Span { soonest: 9, likely: 14, latest: 22 }, minutes: None }),
        log: (1..=40).map(|number| (format!("line {number} of the log"), Tone::Plain)).collect(),
    }
}

#[expect(clippy::disallowed_methods, reason = "this terminal is a test's")]
fn terminal(scene: &Scene, look: &Look, columns: u16, rows: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(scene, look, frame.area(), frame.buffer_mut())).unwrap();
    terminal
}

fn shown(scene: &Scene, look: &Look, columns: u16, rows: u16) -> String {
    let terminal = terminal(scene, look, columns, rows);
    let cells = terminal.backend().buffer().content();
    let row =
        |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    cells.chunks(usize::from(columns)).map(|cells| row(cells).trim_end().to_owned() + "\n").collect()
}

/// The screen with `[STARTED]` and `[UNTIL]` in place of what a wall clock in this time zone shows.
fn with_plain_times(screen: &str) -> String {
    [(STARTED, "[STARTED]"), (UNTIL, "[UNTIL]")].into_iter().fold(
        screen.to_owned(),
        |screen, (moment, name)| {
            let shown = clock::for_people(clock::parse(moment).expect("a moment"));
            screen.replace(&one_line(&shown), name)
        },
    )
}

/// The rows of the screen above the log.
fn above_log(screen: &str) -> String {
    let lines = screen.lines().take_while(|line| !line.contains("── log ──"));
    with_plain_times(&lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn an_ordinary_terminal_has_all_of_it() {
    let text = shown(&scene(state()), &Look::default(), 80, 24);
    insta::assert_snapshot!(with_plain_times(&text), @r#"
    Dates · session 3/50 · running
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
    ── log ─────────────────────────────────────────────────────────────────────────
    line 32 of the log
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
    let bar = text.lines().find(|line| line.contains('█')).unwrap();
    assert!(bar.find('█') < bar.find('┆') && bar.find('┆') < bar.find('┃'), "{bar}");
}

#[test]
fn nothing_breaks_on_any_size_nor_by_hostile_names() {
    let hostile = "認証\u{1b}[2J\u{7}\r\n a\u{301}\u{200d}👩‍👩‍👧 \u{202e}evil | ".repeat(20);
    let evil = RunState {
        options: RunOptions { task_name: hostile.clone(), ..state().options },
        items: Items {
            completed_items: vec![hostile.clone(); 200],
            todo_items: vec![hostile.clone(); 3],
            ..state().items
        },
        lifecycle: Lifecycle::after(&Verdict::Stop { status: Status::FatalError, reason: hostile.clone() }),
        spent: Spent { cost_usd: f64::MAX, tokens: u64::MAX, ..state().spent },
        ..state()
    };
    let mut spoiled = scene(evil);
    spoiled.log = vec![(hostile.clone(), Tone::Bad); 3];
    spoiled.reading.as_mut().unwrap().used = u64::MAX;
    let nothing = Scene { view: None, trouble: Some(hostile), ..scene(state()) };
    for scene in [&spoiled, &nothing, &scene(state())] {
        for (columns, rows) in [(20, 6), (1, 1), (3, 3), (40, 10), (80, 24), (200, 60)] {
            for look in [Look::default(), Look { above: 2, help: true, colours: true }] {
                let text = shown(scene, &look, columns, rows);
                assert_eq!(text.lines().count(), usize::from(rows));
                assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
            }
        }
    }
}

#[test]
fn a_small_terminal_shows_what_matters_most() {
    let text = shown(&scene(state()), &Look::default(), 30, 6);
    insta::assert_snapshot!(text, @"
    Dates · session 3/50 · running
    Load         ▕███░░┆┆┃▏ 43% 4…
                 L1 70% · L2 85% …
                 L2 in about 14 t…
    Status       running: a `plim…
     q quit   ↑↓ PgUp PgDn log   …
    ");
    // There is room for some of the log, too.
    let text = shown(&scene(state()), &Look::default(), 40, 12);
    insta::assert_snapshot!(with_plain_times(&text), @r#"
    Dates · session 3/50 · running
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
fn a_pause_counts_down_and_the_end_is_told() {
    let kind = PauseKind::Limit;
    let paused = RunState {
        lifecycle: Lifecycle::after(&Verdict::Pause {
            kind,
            until: Some(UNTIL.into()),
            reason: "usage limit".into(),
        }),
        ..state()
    };
    let text = shown(&scene(paused), &Look::default(), 100, 24);
    insta::assert_snapshot!(above_log(&text), @r#"
    Dates · session 3/50 · waiting
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
    "#);
    let completed = RunState {
        lifecycle: Lifecycle::after(&Verdict::Stop { status: Status::Completed, reason: "3 items".into() }),
        ..state()
    };
    let mut over = scene(completed);
    over.view.as_mut().unwrap().activity = RunActivity::Over;
    let text = shown(&over, &Look::default(), 100, 24);
    insta::assert_snapshot!(above_log(&text), @"
    Dates · session 3/50 · completed
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
fn the_log_is_scrolled_and_keeps_its_place() {
    let scene = scene(state());
    let mut look = Look::default();
    let press = |look: &mut Look, code| look.press(KeyEvent::new(code, KeyModifiers::NONE), 40);
    let last = |look: &Look| {
        let text = shown(&scene, look, 80, 24);
        text.lines().rev().find(|line| line.starts_with("line ")).unwrap_or_default().to_owned()
    };
    assert_eq!(last(&look), "line 40 of the log");
    press(&mut look, KeyCode::Up);
    press(&mut look, KeyCode::PageUp);
    assert_eq!(last(&look), "line 29 of the log");
    look.keep_place(3);
    assert_eq!(look.above, 14);
    press(&mut look, KeyCode::Home);
    assert!(shown(&scene, &look, 80, 24).contains("\nline 1 of the log\n"));
    press(&mut look, KeyCode::End);
    look.keep_place(3);
    assert_eq!(look.above, 0, "who follows goes on following");
    press(&mut look, KeyCode::Char('?'));
    let help = shown(&scene, &look, 80, 24);
    insta::assert_snapshot!(with_plain_times(&help), @r#"
    Dates · session 3/50 · running
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
    ── keys
     q, Esc, Ctrl-C  quit; the run continues
     Up, Down        scroll the log by one line
     PgUp, PgDn      scroll by ten lines
     Home, End       to the beginning of the log; to its end, and follow it





     q quit   ↑↓ PgUp PgDn log   ? help
    "#);
    assert!(!press(&mut look, KeyCode::Esc) && !look.help);
    for (code, modifiers) in [
        (KeyCode::Char('q'), KeyModifiers::NONE),
        (KeyCode::Esc, KeyModifiers::NONE),
        (KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert!(look.press(KeyEvent::new(code, modifiers), 40), "{code:?}");
    }
}

#[test]
fn without_colours_there_are_none() {
    let mut scene = scene(state());
    scene.log.push(("bad news".into(), Tone::Bad));
    for colours in [true, false] {
        let terminal = terminal(&scene, &Look { colours, ..Look::default() }, 80, 24);
        let cells = terminal.backend().buffer().content();
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), colours);
    }
}
