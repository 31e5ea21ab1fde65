use super::editor::{Editor, EditorAction};
use super::{draw, non_default_fields};
use plimsoll_domain::statusline::{StatusLine, Theme};
use plimsoll_policy::statusline::{ContextUsageView, GitView, StatusLineView};
use plimsoll_protocol::status::{StatusCost, StatusModel, StatusPayload};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

fn test_editor() -> Editor {
    let view = StatusLineView {
        payload: StatusPayload {
            model: StatusModel { display_name: Some("Opus 5.5".into()), id: None },
            cost: StatusCost { total_cost_usd: Some(1.84), ..StatusCost::default() },
            ..StatusPayload::default()
        },
        directory: Some("~/p".into()),
        git: Some(GitView { branch: "main\u{1b}[31m".into(), ..GitView::default() }),
        context_usage: ContextUsageView {
            used_percent: Some(43),
            used_tokens: Some(430_000),
            ..ContextUsageView::default()
        },
        use_color: true,
        ..StatusLineView::default()
    };
    Editor::new(StatusLine::default(), view)
}

fn press_keys(editor: &mut Editor, keys: &str) -> EditorAction {
    let mut action = EditorAction::Continue;
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
        action = editor.handle_key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    action
}

fn segment_lines(editor: &Editor) -> Vec<String> {
    editor.status_line().lines.iter().map(|names| names.join(" ")).collect()
}

#[test]
fn keys_hide_show_and_move_segments_and_break_lines() {
    let mut editor = test_editor();
    press_keys(&mut editor, "↓ ");
    assert_eq!(segment_lines(&editor), ["model git load run memory five_hour weekly spend cost health"]);
    assert_eq!(
        editor.shown_then_hidden_segment_rows()[editor.cursor].name,
        "directory",
        "the cursor stays with its segment"
    );
    press_keys(&mut editor, " ←");
    assert_eq!(
        segment_lines(&editor),
        ["model git load run memory five_hour weekly spend cost directory health"]
    );
    press_keys(&mut editor, "n→→");
    assert_eq!(
        segment_lines(&editor),
        ["model git load run memory five_hour weekly spend cost", "health directory"]
    );
    press_keys(&mut editor, "←←");
    assert_eq!(
        segment_lines(&editor),
        ["model git load run memory five_hour weekly spend cost directory", "health"]
    );
    press_keys(&mut editor, "↓ ");
    assert_eq!(
        segment_lines(&editor),
        ["model git load run memory five_hour weekly spend cost directory"],
        "no empty line stays"
    );
    press_keys(&mut editor, "tt");
    assert_eq!(editor.status_line().theme, Theme::Plain);
}

#[test]
fn typed_text_is_applied_only_if_it_is_valid() {
    let mut editor = test_editor();
    press_keys(&mut editor, "f⌫⌫⌫⌫⌫⌫{nam}⏎");
    assert!(editor.message.contains("{nam}, but its fields are name, id"), "{}", editor.message);
    assert_eq!(editor.text_input.as_ref().unwrap().text, "{nam}", "nothing that was typed is lost");
    press_keys(&mut editor, "⌫⌫⌫⌫id}⏎");
    assert_eq!(editor.text_input, None);
    press_keys(&mut editor, "c208⏎");
    let chosen = serde_json::Value::Object(non_default_fields(editor.status_line()));
    assert_eq!(chosen, serde_json::json!({"segments": {"model": {"format": "{id}", "colour": "208"}}}));
    press_keys(&mut editor, "f⌫⌫⎋");
    assert_eq!(
        serde_json::Value::Object(non_default_fields(editor.status_line())),
        chosen,
        "Esc leaves all as it was"
    );
    press_keys(&mut editor, "r");
    assert!(non_default_fields(editor.status_line()).is_empty());
}

#[test]
fn quitting_with_unsaved_changes_needs_a_second_key() {
    let mut editor = test_editor();
    assert_eq!(press_keys(&mut editor, "q"), EditorAction::Quit);
    assert_eq!(press_keys(&mut editor, "tq"), EditorAction::Continue);
    assert_eq!(press_keys(&mut editor, "↓q"), EditorAction::Continue, "another key in between asks again");
    assert_eq!(press_keys(&mut editor, "q"), EditorAction::Quit);
    assert_eq!(press_keys(&mut editor, "s"), EditorAction::Save);
    editor.mark_saved();
    assert_eq!(press_keys(&mut editor, "q"), EditorAction::Quit);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this terminal is a test's")]
fn the_screen_can_be_drawn_in_any_terminal_size() {
    for (columns, rows) in [(120, 40), (80, 24), (40, 12), (20, 6), (3, 2), (1, 1)] {
        let mut editor = test_editor();
        for keys in ["", "↓↓f", "⎋↓↓↓↓↓↓↓↓↓↓↓↓↓↓↓↓↓↓t"] {
            press_keys(&mut editor, keys);
            let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
            terminal.draw(|frame| draw::draw_editor(&editor, frame)).unwrap();
            let buffer = terminal.backend().buffer();
            let screen: String = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
            assert!(!screen.contains('\u{1b}'), "{screen:?}");
            if columns >= 80 {
                assert!(screen.contains("43%") && screen.contains("space show/hide"), "{screen}");
            }
        }
    }
}
