//! Sessions that begin, go on, and begin anew.

use crate::memory_in_requests::harness::{Stage, alloc, done, look, note};
use plimsoll_testkit::scripted_model::{Request, Step};
use plimsoll_testkit::terminal::Terminal;
use std::time::Duration;

/// How often hooks have told something of the memory.
fn blocks(request: &Request) -> usize {
    let text = request.text();
    text.matches("<plimsoll-memory ").count() + text.matches("<plimsoll-chunk ").count()
}

fn blocks_of_last(stage: &Stage) -> usize {
    stage.seen("main", |seen| blocks(&seen.last().expect("a request").request))
}

#[test]
fn a_session_that_goes_on_is_told_what_is_new_and_nothing_it_knows() {
    let stage = Stage::new(&[("main", vec![look(), done()])]);
    let finished = stage.play("Work.", &[]);
    assert_eq!(blocks_of_last(&stage), 0, "nothing is written, and nothing told");
    let id = finished.result()["session_id"].as_str().expect("an id").to_owned();

    let own = alloc(Step::default(), "spec", "add(a, b)");
    stage.then(&[("main", vec![note(&[("R0_GOAL", "Build it")]), own.into(), done()])]);
    stage.play("Work on.", &["--resume", &id]);
    assert_eq!(blocks_of_last(&stage), 0, "the model's own words are in its calls");

    stage.then(&[("main", vec![look(), done()])]);
    stage.play("Go on.", &["--resume", &id]);
    assert_eq!(blocks_of_last(&stage), 0, "it knows everything: {:?}", stage.memory());

    stage.write(&["set", "R4", "keep the API"]);
    stage.then(&[("main", vec![look(), done()])]);
    stage.play("Go on.", &["--resume", &id]);
    assert_eq!(blocks_of_last(&stage), 2, "the snapshot: an overview and a chunk");
    stage.then(&[("main", vec![done()])]);
    stage.play("Go on.", &["--resume", &id]);
    assert_eq!(blocks_of_last(&stage), 2, "once");

    stage.write(&["free", "spec"]);
    stage.then(&[("main", vec![done()])]);
    stage.play("Go on.", &["--resume", &id]);
    assert_eq!(blocks_of_last(&stage), 3, "the new overview no longer names the chunk");
}

#[test]
fn a_new_session_is_told_everything_in_its_first_request() {
    let stage = Stage::new(&[("main", vec![done(), look(), done()])]);
    stage.write(&["set", "R0", "Build it"]);
    stage.write(&["alloc", "spec", "add(a, b)"]);
    stage.play("Work.", &[]);
    stage.play("Work, all others.", &[]);
    let told = stage.seen("main", |seen| seen.iter().map(|seen| blocks(&seen.request)).collect::<Vec<_>>());
    assert_eq!(told, [2, 2, 2]);
}

#[test]
fn a_session_that_was_killed_is_told_everything_when_it_goes_on() {
    let hang = Step::text("…").hang(Duration::from_secs(20));
    let stage = Stage::new(&[("main", vec![look().meanwhile(&["set", "R4", "keep the API"]), hang.into()])]);
    let id = "11111111-2222-4333-8444-555555555555";
    let mut running = stage.client("Work.", &["--session-id", id]).spawn();
    let came = || stage.seen("main", |seen| seen.len() == 2);
    stage.world.wait_until(came, "the second request");
    running.kill();
    running.wait(Duration::from_secs(10));
    stage.then(&[("main", vec![look(), done()])]);
    stage.play("Go on.", &["--resume", id]);
    // Whether the client had kept what the hook said cannot be known: it is said again.
    let first = stage.seen("main", |seen| seen[2].request.text());
    assert!(first.contains("R4 CONSTRAINTS: keep the API") && first.contains("(of a frame's blocks"));
}

#[test]
fn a_prompt_tells_what_others_wrote_before_it_and_a_cleared_conversation_is_told_everything() {
    let stage =
        Stage::new(&[("main", vec![note(&[("R0_GOAL", "Build it")]), Step::text("FIRST-IS-DONE").into()])]);
    stage.then(&[("main", vec![Step::text("SECOND-IS-DONE").into(), Step::text("THIRD-IS-DONE").into()])]);
    // A screen would ask whether to use the project's server.
    let mut settings = stage.world.json(".claude/settings.local.json");
    settings["enabledMcpjsonServers"] = serde_json::json!(["plimsoll"]);
    stage.world.write(".claude/settings.local.json", &settings.to_string());
    let mut terminal = Terminal::claude(&stage.world, &["--model", "opus"], 100, 40);
    terminal.wait_for("❯");
    let mut say = |words: &str, wait: &str| {
        terminal.type_text(words);
        std::thread::sleep(Duration::from_millis(300));
        terminal.press_enter();
        terminal.wait_for(wait);
    };
    say("Work.", "FIRST-IS-DONE");
    stage.write(&["set", "R4", "keep the API"]);
    say("Work on.", "SECOND-IS-DONE");
    say("/clear", "❯");
    std::thread::sleep(Duration::from_secs(1));
    say("Work anew.", "THIRD-IS-DONE");
    terminal.close();
    stage.check();
    stage.seen("main", |seen| {
        let second = &seen[seen.len() - 2].request;
        assert!(second.text().contains("FIRST-IS-DONE") && blocks(second) == 1, "{}", second.text());
        let last = &seen.last().expect("a request").request;
        assert!(!last.text().contains("FIRST-IS-DONE"), "it was cleared");
        assert_eq!(blocks(last), 1, "{}", last.text());
    });
}
