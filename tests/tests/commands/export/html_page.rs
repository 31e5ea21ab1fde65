//! The exported HTML page in a browser.

use crate::export::{
    TranscriptBuilder, export_session, open_in_browser, record_fixture, record_session, record_subagent,
};
use plimsoll_testkit::target_dir;
use plimsoll_testkit::world::World;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Writes a session's page beside its screenshots, where people can look at it, and returns its path.
fn write_page(world: &World, session: &str) -> PathBuf {
    let path = target_dir().join("artifacts").join(format!("{session}.html"));
    world.write(&path, &export_session(world, session, "html"));
    path
}

fn take_screenshot(world: &World, page: &Path, fragment: &str, name: &str, options: &[&str]) {
    let path = target_dir().join("artifacts").join(name);
    let _ = std::fs::remove_file(&path);
    let screenshot = format!("--screenshot={}", path.display());
    open_in_browser(world, &[options, &[screenshot.as_str()]].concat(), page, fragment);
    assert!(std::fs::metadata(&path).unwrap().len() > 10_000, "{}", path.display());
}

fn rendered_dom(world: &World, page: &Path) -> String {
    open_in_browser(world, &["--dump-dom"], page, "").stdout
}

fn count_occurrences(text: &str, pattern: &str) -> usize {
    text.matches(pattern).count()
}

#[test]
fn an_exported_session_is_readable_in_a_browser() {
    let world = World::without_git();
    record_fixture(&world, "compaction");
    let entry = json!({"at": "2026-11-21T03:36:26.900Z", "event": "checkpoint", "session_id": "compaction",
        "level": "L2", "percent": 87});
    let other = json!({"at": "2026-11-21T03:36:26.900Z", "event": "checkpoint", "session_id": "other", "level": "L3"});
    let journal = world.path(".claude/plimsoll/journal.jsonl");
    let before = std::fs::read_to_string(&journal).unwrap_or_default();
    world.write(&journal, &format!("{before}{entry}\n{other}\n"));
    let page = write_page(&world, "compaction");
    let dom = rendered_dom(&world, &page);
    assert_eq!(count_occurrences(&dom, "data-turn="), 4);
    assert!(dom.contains("L2 87%") && dom.contains("% of 1M"), "{dom}");
    assert!(!dom.contains("L3"), "not the other session's: {dom}");
    assert!(dom.contains("<div id=\"search\">"), "its script ran: the search is shown");
    for foreign in ["http://", "https://", "src=", "@import", "url("] {
        assert_eq!(count_occurrences(&std::fs::read_to_string(&page).unwrap(), foreign), 0, "{foreign}");
    }
    take_screenshot(&world, &page, "", "compaction.png", &["--window-size=1100,1200"]);
    let dark = ["--window-size=500,1400", "--blink-settings=preferredColorScheme=0"];
    take_screenshot(&world, &page, "", "compaction-phone-dark.png", &dark);
}

#[test]
fn a_subagent_is_folded_into_the_turn_that_started_it() {
    let world = World::without_git();
    let agent = record_subagent(&world);
    let page = write_page(&world, "subagent");
    let dom = rendered_dom(&world, &page);
    let subagent_position = dom.find(&format!("Subagent {agent}")).unwrap();
    let (first, second) = (dom.find("id=\"t1\"").unwrap(), dom.find("id=\"t2\"").unwrap());
    assert!(first < subagent_position && subagent_position < second, "in turn 1");
    // A turn opened by its anchor is unfolded together with everything around it.
    let turn = dom[subagent_position..]
        .split("id=\"s")
        .find_map(|rest| rest.split_once("\" data-turn").map(|(id, _)| id))
        .unwrap();
    take_screenshot(&world, &page, &format!("#s{turn}"), "subagent.png", &["--window-size=1100,1200"]);
}

#[test]
fn hostile_text_is_shown_as_plain_text() {
    let world = World::without_git();
    let hostile = [
        "</script><script>document.title='owned'</script>",
        "\"><img src=x onerror=\"document.title='owned'\">",
        "</pre></details></main><h1>owned</h1>",
        "&lt;b&gt; &amp;",
        "<!-- --><svg onload=alert(1)>",
        "\u{0}\u{7}\u{1b}]0;owned\u{7}\u{202e}txt.exe\u{2066}",
        "' onmouseover='x",
    ];
    let text = hostile.join("\n");
    let transcript = TranscriptBuilder::default()
        .with_prompt(&text)
        .with_turn(
            &text,
            &[
                ("Bash", json!({"command": text, "\"><b>": [text]}), &text),
                (hostile[1], json!({"x": text}), &text),
            ],
        )
        .with_turn(&text, &[]);
    record_session(&world, "hostile", &transcript.lines, &[]);
    let page = write_page(&world, "hostile");
    let dom = rendered_dom(&world, &page);
    assert!(dom.contains("<title>Session hostile</title>"), "{dom}");
    // In the browser's output, `<` and `>` occur only around tags.
    let tags: Vec<&str> = dom.split('<').skip(1).filter_map(|rest| rest.split('>').next()).collect();
    for tag in tags.iter().filter(|tag| !tag.starts_with("/") && !tag.starts_with("meta")) {
        let forbidden = ["img", "svg onload", "h1>owned", "onerror", "onmouseover"];
        assert!(
            forbidden.iter().all(|word| !tag.starts_with(word) && !tag.contains(" on")) && *tag != "b",
            "{tag}"
        );
    }
    assert_eq!(count_occurrences(&dom, "<h1>owned"), 0);
    assert_eq!(
        (
            count_occurrences(&dom, "<script"),
            count_occurrences(&dom, "</script>"),
            count_occurrences(&dom, "data-turn=")
        ),
        (1, 1, 2)
    );
    assert!(dom.contains("&amp;lt;b&amp;gt; &amp;amp;"), "what was escaped is shown as it was");
    assert!(dom.contains(r"\u{0}\u{7}\u{1b}]0;owned\u{7}\u{202e}txt.exe\u{2066}"));
}

#[test]
fn an_image_from_a_tool_is_shown_and_nothing_else_is_loaded() {
    let world = World::without_git();
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let source = |kind: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}});
    let mut transcript = TranscriptBuilder::default()
        .with_prompt("look")
        .with_turn("I look.", &[("Read", json!({}), "RESULT")]);
    let content = json!([
        source("image/png", pixel),
        source("image/svg+xml", pixel),
        source("image/png", "\"><script>")
    ]);
    transcript.lines = transcript.lines.replace("\"content\":\"RESULT\"", &format!("\"content\":{content}"));
    record_session(&world, "picture", &transcript.lines, &[]);
    let dom = rendered_dom(&world, &write_page(&world, "picture"));
    assert_eq!(count_occurrences(&dom, "<img"), 1, "{dom}");
    assert!(dom.contains(&format!("data:image/png;base64,{pixel}")));
}
