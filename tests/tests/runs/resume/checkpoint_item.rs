//! A checkpoint is credited to the item that its session worked on: in Linear, in the journal and in the report.

use crate::resume::harness::{
    TWO_ITEM_PLAN, commit_command, final_claims_step, l2_usage_step, low_usage_step, make_file_command,
    play_sessions, run_sessions, tick_command, world_with_code,
};
use plimsoll_testkit::linear::{API_KEY, ISSUE_IDENTIFIER, LinearServer};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{events_named, read_journal};
use serde_json::json;

/// Returns the steps of a session that finishes the parser before L2; no session has started the printer.
fn parser_session_steps() -> Vec<Step> {
    let work = format!(
        "{}; {}; {}",
        make_file_command("src/parser.rs", 30),
        tick_command("Write the parser"),
        commit_command("Write the parser")
    );
    vec![
        low_usage_step(work),
        l2_usage_step("ls"),
        final_claims_step("the parser reads all of it", "done", "src/parser.rs line 30"),
    ]
}

#[test]
fn the_linear_note_names_the_item_that_the_session_did() {
    let server = LinearServer::new();
    let mut world = world_with_code(TWO_ITEM_PLAN);
    world.write_plimsoll_user_settings(&json!({ "linear": { "issue": ISSUE_IDENTIFIER } }));
    world.set_env("LINEAR_API_KEY", API_KEY);
    world.set_env("LINEAR_API_URL", server.url());
    let _model = play_sessions(&mut world, vec![parser_session_steps()]);
    let finished = run_sessions(&world, 2, &[]);
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "{finished:?}");
    let paragraphs: Vec<&str> = comments[0].body.split("\n\n").collect();
    let note = paragraphs.iter().find(|part| part.starts_with("**Session 1**")).expect("a note");
    let credited = note.split("Write the printer").next().unwrap_or_default();
    assert!(credited.contains("Write the parser"), "nobody has begun the printer: {note}");
    assert!(!note.contains("Item in hand: “Write the printer”"), "nobody has begun the printer: {note}");
}

#[test]
fn the_journal_and_the_report_credit_the_item_that_the_session_did() {
    let mut world = world_with_code(TWO_ITEM_PLAN);
    let _model = play_sessions(&mut world, vec![parser_session_steps()]);
    run_sessions(&world, 2, &[]);
    let journal = read_journal(&world);
    let checkpoint = events_named(&journal, "checkpoint")[0];
    assert_eq!(checkpoint["item"], "Write the parser", "{checkpoint}");
    let page = world.plimsoll(&["report", "-o", "-"]).run().expect_success().stdout;
    let handoffs = page.split_once("class=\"handoffs\"").expect("the handoffs").1;
    let claims = handoffs.split_once("class=\"claim\"").expect("what the session said").0;
    assert!(claims.contains("Write the parser") && !claims.contains("Write the printer"), "{claims}");
}

#[test]
fn the_progress_file_credits_the_item_that_the_session_did() {
    let mut world = world_with_code(TWO_ITEM_PLAN);
    let _model = play_sessions(&mut world, vec![parser_session_steps()]);
    run_sessions(&world, 2, &[]);
    let progress = world.read(".claude/plimsoll/progress.txt");
    let first_paragraph =
        progress.split("\n\n").find(|part| part.contains("Iteration 1:")).expect("its paragraph");
    assert!(
        first_paragraph.contains("ticked \"Write the parser\"")
            && !first_paragraph.contains("Write the printer"),
        "{first_paragraph}"
    );
}
