//! What is gone is said to be gone, in every format.

use crate::export::{Transcript, export, judged, record};
use plimsoll_store::{Project, TurnLog};
use plimsoll_testkit::world::World;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const FORMATS: [&str; 3] = ["otel", "html", "jsonl"];

fn two_turns(long: &str) -> String {
    let first = Transcript::default()
        .prompt("begin")
        .turn("the first words", &[("Bash", json!({"command": "x"}), long)]);
    first.turn("the second words", &[]).lines
}

#[test]
fn an_erased_turn_says_so() {
    let world = World::without_git();
    record(&world, "erased", &two_turns("printed"), &[]);
    let log = TurnLog::for_session(&Project::with_local_files(&world.project()), &"erased".into()).unwrap();
    assert_eq!(log.erase_records(&BTreeSet::from([1, 2]), Duration::from_secs(5)).unwrap(), 2);
    for format in FORMATS {
        let text = export(&world, "erased", format);
        assert!(!text.contains("the first words") && !text.contains("begin\""), "{format}: {text}");
        assert!(text.contains("the second words"), "{format}");
        let said = if format == "jsonl" { "\"erased\":true" } else { "[erased]" };
        assert!(text.contains(said), "{format}: {text}");
    }
    judged(&world, "otlp.py", &export(&world, "erased", "otel"));
}

#[test]
fn a_missing_blob_is_named() {
    let world = World::without_git();
    record(&world, "missing", &two_turns(&"long ".repeat(2_000)), &[]);
    let blobs = world.path(".claude/plimsoll/turns/missing.blobs");
    assert!(std::fs::read_dir(&blobs).unwrap().count() > 0);
    std::fs::remove_dir_all(blobs).unwrap();
    for format in FORMATS {
        let text = export(&world, "missing", format);
        assert!(text.contains("missing or not what its name says"), "{format}: {text}");
        assert!(text.contains("the second words"), "{format}");
    }
    judged(&world, "otlp.py", &export(&world, "missing", "otel"));
}
