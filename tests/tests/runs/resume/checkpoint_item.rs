//! A checkpoint is credited to the item that its session was about: in Linear, in the journal and in the report.

use crate::resume::harness::{TWO, full, low, make, play, run, said, save, tick, world};
use plimsoll_testkit::linear::{ISSUE, KEY, LinearServer};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{events, journal};
use serde_json::json;

/// The parser is finished before L2; nobody has begun the printer.
fn finishes_the_parser() -> Vec<Step> {
    let work =
        format!("{}; {}; {}", make("src/parser.rs", 30), tick("Write the parser"), save("Write the parser"));
    vec![low(work), full("ls"), said("the parser reads all of it", "done", "src/parser.rs line 30")]
}

#[test]
fn the_note_in_linear_is_about_the_item_that_the_session_did() {
    let server = LinearServer::new();
    let mut world = world(TWO);
    world.write_user_settings(&json!({ "linear": { "issue": ISSUE } }));
    world.set_env("LINEAR_API_KEY", KEY);
    world.set_env("LINEAR_API_URL", server.url());
    let _model = play(&mut world, vec![finishes_the_parser()]);
    let finished = run(&world, 2, &[]);
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "{finished:?}");
    let paragraphs: Vec<&str> = comments[0].body.split("\n\n").collect();
    let note = paragraphs.iter().find(|part| part.starts_with("**Iteration 1**")).expect("a note");
    let credited = note.split("Write the printer").next().unwrap_or_default();
    assert!(credited.contains("Write the parser"), "nobody has begun the printer: {note}");
    assert!(!note.contains("Item in hand: “Write the printer”"), "nobody has begun the printer: {note}");
}

#[test]
fn the_journal_and_the_report_credit_the_item_that_the_session_did() {
    let mut world = world(TWO);
    let _model = play(&mut world, vec![finishes_the_parser()]);
    run(&world, 2, &[]);
    let journal = journal(&world);
    let checkpoint = events(&journal, "checkpoint")[0];
    assert_eq!(checkpoint["item"], "Write the parser", "{checkpoint}");
    let page = world.plimsoll(&["report", "-o", "-"]).run().expect_success().stdout;
    let handoffs = page.split_once("class=\"handoffs\"").expect("the handoffs").1;
    let claims = handoffs.split_once("class=\"claim\"").expect("what the session said").0;
    assert!(claims.contains("Write the parser") && !claims.contains("Write the printer"), "{claims}");
}

#[test]
fn the_progress_file_credits_the_item_that_the_session_did() {
    let mut world = world(TWO);
    let _model = play(&mut world, vec![finishes_the_parser()]);
    run(&world, 2, &[]);
    let progress = world.read(".claude/plimsoll/progress.txt");
    let first = progress.split("\n\n").find(|part| part.contains("Iteration 1:")).expect("its paragraph");
    assert!(first.contains("ticked \"Write the parser\"") && !first.contains("Write the printer"), "{first}");
}
