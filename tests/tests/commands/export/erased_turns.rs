//! Every export format marks erased turns and missing blobs.

use crate::export::{TranscriptBuilder, export_session, record_session, run_judge};
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const FORMATS: [&str; 3] = ["otel", "html", "jsonl"];

fn transcript_with_two_turns(tool_output: &str) -> String {
    let first = TranscriptBuilder::default()
        .with_prompt("begin")
        .with_turn("the first words", &[("Bash", json!({"command": "x"}), tool_output)]);
    first.with_turn("the second words", &[]).lines
}

#[test]
fn an_erased_turn_is_marked_as_erased() {
    let world = World::without_git();
    record_session(&world, "erased", &transcript_with_two_turns("printed"), &[]);
    let log = TurnLog::for_session_where_started_or_current(
        &Project::with_local_files(&world.project()),
        &"erased".into(),
    )
    .unwrap();
    assert_eq!(
        log.erase_records_and_finish_interrupted(&BTreeSet::from([1, 2]), Duration::from_secs(5)).unwrap(),
        2
    );
    for format in FORMATS {
        let text = export_session(&world, "erased", format);
        assert!(!text.contains("the first words") && !text.contains("begin\""), "{format}: {text}");
        assert!(text.contains("the second words"), "{format}");
        let marker = if format == "jsonl" { "\"erased\":true" } else { "[erased]" };
        assert!(text.contains(marker), "{format}: {text}");
    }
    run_judge(&world, "otlp.py", &export_session(&world, "erased", "otel"));
}

#[test]
fn a_missing_blob_is_named() {
    let world = World::without_git();
    record_session(&world, "missing", &transcript_with_two_turns(&"long ".repeat(2_000)), &[]);
    let blobs = world.path(".claude/plimsoll/turns/missing.blobs");
    assert!(std::fs::read_dir(&blobs).unwrap().count() > 0);
    std::fs::remove_dir_all(blobs).unwrap();
    for format in FORMATS {
        let text = export_session(&world, "missing", format);
        assert!(text.contains("missing or not what its name says"), "{format}: {text}");
        assert!(text.contains("the second words"), "{format}");
    }
    run_judge(&world, "otlp.py", &export_session(&world, "missing", "otel"));
}
