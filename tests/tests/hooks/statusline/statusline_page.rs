//! `docs/statusline.md`: its table matches the program, and its example works.

use super::full_payload;
use plimsoll_domain::statusline::{SegmentKind, StatusLine};
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use serde_json::Value;
use std::fmt::Write;

const BEGIN: &str = "with PLIMSOLL_UPDATE_GOLDEN=1 -->\n";
const END: &str = "<!-- /segments -->";

fn render_segment_table() -> String {
    let default_line = StatusLine::default();
    let mut table = String::from("| segment | what it shows | fields |\n| --- | --- | --- |\n");
    for kind in SegmentKind::ALL {
        let name = kind.name();
        let mark = if default_line.has_segment(*kind) { "" } else { "\\*" };
        let fields: Vec<String> =
            kind.fields().iter().map(|(field, what)| format!("`{field}` {what}")).collect();
        let cell = |text: &str| text.replace('|', "\\|");
        let _ = writeln!(
            table,
            "| `{name}`{mark} | {} | {} |",
            cell(kind.description()),
            cell(&fields.join("; "))
        );
    }
    table
}

#[test]
fn the_documented_table_lists_every_segment_with_its_fields() {
    let path = workspace_root().join("docs/statusline.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (_, tail) = rest.split_once(END).expect("where it ends");
    let expected_page = format!("{head}{BEGIN}{}{END}{tail}", render_segment_table());
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &expected_page).unwrap();
    } else {
        assert!(
            page == expected_page,
            "docs/statusline.md is not what the program has: PLIMSOLL_UPDATE_GOLDEN=1"
        );
    }
}

#[test]
fn the_documented_example_is_valid_and_shows_all_its_segments() {
    let page = std::fs::read_to_string(workspace_root().join("docs/statusline.md")).unwrap();
    let example_for = |file: &str| {
        let rest = page.split(&format!("```json {file}\n")).nth(1)?;
        rest.split("```").next()
    };
    let example = example_for(".claude/plimsoll.json").expect("an example");
    let user_example = example_for("~/.config/plimsoll/settings.json").expect("an example");
    let world = World::new();
    world.write(".claude/plimsoll.json", example);
    world.write_plimsoll_user_settings(&serde_json::from_str(user_example).expect("JSON"));
    let explained =
        world.plimsoll(&["statusline", "explain", "--json"]).stdin(full_payload(&world).to_string());
    let explained = explained.run().expect_success();
    assert_eq!(explained.stderr, "");
    let explained = explained.stdout_json();
    let segments = explained["segments"].as_array().unwrap();
    let shown =
        |name: &str| segments.iter().find(|segment| segment["name"] == name).unwrap()["shown"].clone();
    assert_eq!(shown("style"), "default");
    assert_eq!(shown("burn"), "$1.50/h");
    assert!(
        shown("clock").as_str().is_some_and(|text| text.starts_with("at ") && text.len() == 8),
        "{}",
        shown("clock")
    );
    assert_ne!(shown("load"), Value::Null);
    assert_eq!(explained["line"].as_str().unwrap().lines().count(), 2);
}
