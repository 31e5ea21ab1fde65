use super::editor::{Action, Editor};
use super::{differing, draw};
use plimsoll_domain::statusline::{StatusLine, Theme};
use plimsoll_policy::statusline::{GitView, LoadView, View};
use plimsoll_protocol::status::{Cost, Model, StatusPayload};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

fn desk() -> Editor {
    let view = View {
        client: StatusPayload {
            model: Model { display_name: Some("Opus 5.5".into()), id: None },
            cost: Cost { total_cost_usd: Some(1.84), ..Cost::default() },
            ..StatusPayload::default()
        },
        directory: Some("~/p".into()),
        git: Some(GitView { branch: "main\u{1b}[31m".into(), ..GitView::default() }),
        load: LoadView { percent: Some(43), used: Some(430_000), ..LoadView::default() },
        colour: true,
        ..View::default()
    };
    Editor::new(StatusLine::default(), view)
}

fn press(desk: &mut Editor, keys: &str) -> Action {
    let mut wish = Action::Stay;
    for letter in keys.chars() {
        let code = match letter {
            '↑' => KeyCode::Up,
            '↓' => KeyCode::Down,
            '←' => KeyCode::Left,
            '→' => KeyCode::Right,
            '⏎' => KeyCode::Enter,
            '⌫' => KeyCode::Backspace,
            '⎋' => KeyCode::Esc,
            letter => KeyCode::Char(letter),
        };
        wish = desk.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
    wish
}

fn lines(desk: &Editor) -> Vec<String> {
    desk.look().lines.iter().map(|names| names.join(" ")).collect()
}

#[test]
fn keys_hide_show_move_and_break_lines() {
    let mut desk = desk();
    press(&mut desk, "↓ ");
    assert_eq!(lines(&desk), ["model git load run memory five_hour weekly spend cost health"]);
    assert_eq!(desk.rows()[desk.at].name, "directory", "the cursor stays with its segment");
    press(&mut desk, " ←");
    assert_eq!(lines(&desk), ["model git load run memory five_hour weekly spend cost directory health"]);
    press(&mut desk, "n→→");
    assert_eq!(lines(&desk), ["model git load run memory five_hour weekly spend cost", "health directory"]);
    press(&mut desk, "←←");
    assert_eq!(lines(&desk), ["model git load run memory five_hour weekly spend cost directory", "health"]);
    press(&mut desk, "↓ ");
    assert_eq!(
        lines(&desk),
        ["model git load run memory five_hour weekly spend cost directory"],
        "no empty line stays"
    );
    press(&mut desk, "tt");
    assert_eq!(desk.look().theme, Theme::Plain);
}

#[test]
fn what_is_typed_is_taken_when_it_makes_sense() {
    let mut desk = desk();
    press(&mut desk, "f⌫⌫⌫⌫⌫⌫{nam}⏎");
    assert!(desk.word.contains("{nam}, but its fields are name, id"), "{}", desk.word);
    assert_eq!(desk.typing.as_ref().unwrap().text, "{nam}", "nothing that was typed is lost");
    press(&mut desk, "⌫⌫⌫⌫id}⏎");
    assert_eq!(desk.typing, None);
    press(&mut desk, "c208⏎");
    let chosen = serde_json::Value::Object(differing(desk.look()));
    assert_eq!(chosen, serde_json::json!({"segments": {"model": {"format": "{id}", "colour": "208"}}}));
    press(&mut desk, "f⌫⌫⎋");
    assert_eq!(serde_json::Value::Object(differing(desk.look())), chosen, "Esc leaves all as it was");
    press(&mut desk, "r");
    assert!(differing(desk.look()).is_empty());
}

#[test]
fn what_is_not_written_is_not_left_by_chance() {
    let mut desk = desk();
    assert_eq!(press(&mut desk, "q"), Action::Leave);
    assert_eq!(press(&mut desk, "tq"), Action::Stay);
    assert_eq!(press(&mut desk, "↓q"), Action::Stay, "another key in between asks again");
    assert_eq!(press(&mut desk, "q"), Action::Leave);
    assert_eq!(press(&mut desk, "s"), Action::Save);
    desk.saved();
    assert_eq!(press(&mut desk, "q"), Action::Leave);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this terminal is a test's")]
fn the_screen_shows_line_list_and_keys_in_any_terminal() {
    for (columns, rows) in [(120, 40), (80, 24), (40, 12), (20, 6), (3, 2), (1, 1)] {
        let mut desk = desk();
        for keys in ["", "↓↓f", "⎋↓↓↓↓↓↓↓↓↓↓↓↓↓↓↓↓↓↓t"] {
            press(&mut desk, keys);
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
            terminal.draw(|frame| draw::draw(&desk, frame)).unwrap();
            let buffer = terminal.backend().buffer();
            let screen: String = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
            assert!(!screen.contains('\u{1b}'), "{screen:?}");
            if columns >= 80 {
                assert!(screen.contains("43%") && screen.contains("space show/hide"), "{screen}");
            }
        }
    }
}
