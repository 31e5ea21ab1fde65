//! Nights: one comment each, whatever the network does.

use crate::linear::harness::{CHECKPOINTS, FINISHES, PROMISES, project, run, sync, told, undelivered, world};
use plimsoll_store::outbox;
use plimsoll_testkit::linear::{KEY, LinearServer};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{ScriptedAgent, honest};
use std::net::TcpListener;

/// An address where nobody listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}/graphql", listener.local_addr().expect("its address"))
}

#[test]
fn a_night_is_one_comment_with_a_paragraph_for_each_checkpoint_and_the_end() {
    let server = LinearServer::new();
    let world = world(&server);
    let finished = run(&world, &[CHECKPOINTS, FINISHES, PROMISES]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "{comments:#?}");
    insta::assert_snapshot!(world.stable_text(&comments[0].body), @r"
    **Plimsoll: Dates** (run [COMMIT])

    **Iteration 1** · [DATE] [TIME] UTC · checkpoint (level, L2 at 87 %). Current item: “Item one”. Progress: 50%. Summary: half of them. Next step: the rest. 0 items done, 2 open. Handoff: .claude/handoffs/[DATE-TIME].md

    **Iteration 3** · [DATE] [TIME] UTC · the run ended: completed (2 items). 2 items done, 0 open; 3 sessions, \$0.03, 0 tokens.
    ");
    assert_eq!(server.operations(), ["commentCreate", "commentUpdate"], "after session 1, and at the end");
    assert_eq!(undelivered(&world), 0);
    let told = told(&world);
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told.iter().all(|entry| entry["event"] == "linear_delivered"), "{told:#?}");
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    assert_eq!(log.matches("Linear notified: ENG-123").count(), 2, "{log}");
}

#[test]
fn a_question_is_in_the_comment_once() {
    let server = LinearServer::new();
    let world = world(&server);
    let finished = run(&world, &["begin; answers 30000; says \"$blocked\"\n", FINISHES]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "{comments:#?}");
    let asked = "“Item one” waits for an answer: no way (plimsoll status). 0 items done, 2 open.";
    assert_eq!(comments[0].body.matches(asked).count(), 1, "{comments:#?}");
    assert!(comments[0].body.contains("the run ended: blocked"), "{comments:#?}");
}

#[test]
fn a_night_without_network_ends_the_same_and_one_sync_tells_all_of_it() {
    let server = LinearServer::new();
    let mut world = world(&server);
    world.set_env("LINEAR_API_URL", nowhere());
    let finished = run(&world, &[CHECKPOINTS, FINISHES, PROMISES]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let said = "Linear was not notified: 127.0.0.1 cannot be reached";
    assert_eq!(finished.stdout.matches(said).count(), 1, "one line for all of it: {}", finished.stdout);
    let failures = told(&world);
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert_eq!(failures[0]["event"], "linear_failed");
    assert!(server.asked().is_empty());
    let waiting = undelivered(&world);
    assert!(waiting >= 2, "a checkpoint and the end: {waiting}");

    world.set_env("LINEAR_API_URL", server.url());
    let synced = sync(&world);
    assert_eq!(synced.code, Some(0), "{synced:?}");
    assert!(synced.stdout.contains("of the run \"Dates\": https://linear.app/"), "{synced:?}");
    let comments = server.comments();
    assert_eq!((comments.len(), undelivered(&world)), (1, 0));
    for part in ["**Iteration 1**", "half of them", "**Iteration 3**", "the run ended: completed"] {
        assert!(comments[0].body.contains(part), "{part} in {comments:#?}");
    }
    assert_eq!(sync(&world).stdout, "no notes to deliver\n");
    assert_eq!(server.operations(), ["commentCreate"]);
}

#[test]
fn a_run_that_a_bound_ended_and_a_person_resumed_stays_in_its_comment() {
    let server = LinearServer::new();
    let world = world(&server);
    let finished = run(&world, &[FINISHES, PROMISES]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(server.comments().len(), 1);
    // Another run is another comment.
    world.write("fix_plan.md", "- [ ] Item three\n");
    for number in [3, 4] {
        world.write(world.home().join(format!("sessions/{number}")), PROMISES);
    }
    let client = world.home().join("stand-in").display().to_string();
    let words = ["run", "--objective", "Do the rest.", "--name", "More", "--no-wait", "--client", &client];
    let finished = world.plimsoll(&words).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 2, "{comments:#?}");
    let titles = [0, 1].map(|place: usize| comments[place].body.lines().next().unwrap_or_default());
    insta::assert_snapshot!(world.stable_text(&titles.join("\n")), @"
    **Plimsoll: Dates** (run [COMMIT])
    **Plimsoll: More** (run [COMMIT])
    ");
}

#[test]
fn without_a_key_the_night_is_the_same_and_it_is_said_once() {
    let server = LinearServer::new();
    let mut world = world(&server);
    world.set_env("LINEAR_API_KEY", "");
    let finished = run(&world, &[CHECKPOINTS, FINISHES, PROMISES]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout.matches("there is no key for Linear").count(), 1, "{}", finished.stdout);
    let doctor = world.plimsoll(&["doctor", "--json"]).run().stdout;
    assert!(doctor.contains("linear.no_key") && doctor.contains("linear.undelivered"), "{doctor}");
    world.set_env("LINEAR_API_KEY", KEY);
    assert_eq!(sync(&world).code, Some(0));
    assert_eq!(server.comments().len(), 1);
}

#[test]
fn without_an_issue_nothing_is_noted_and_nobody_is_asked() {
    let server = LinearServer::new();
    let world = world(&server);
    world.write_user_settings(&serde_json::json!({}));
    let finished = run(&world, &[CHECKPOINTS, FINISHES, PROMISES]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(server.asked().is_empty());
    assert!(!plimsoll_store::disk::exists(&outbox::outbox_folder(&project(&world))));
}

#[test]
fn with_the_real_client_the_end_of_the_run_is_told() {
    let server = LinearServer::new();
    let mut world = world(&server);
    world.write("fix_plan.md", "- [ ] Item three\n");
    let _model = ScriptedAgent::new(honest).start(&mut world);
    let finished = plimsoll_tests::run(&world, &["--json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 1);
    insta::assert_snapshot!(world.stable_text(&comments[0].body), @r"
    **Plimsoll: Dates** (run [COMMIT])

    **Iteration 1** · [DATE] [TIME] UTC · the run ended: completed (1 item). 1 item done, 0 open; 1 session, \$0.01, 61k tokens.
    ");
}

#[test]
fn a_run_of_several_workers_is_one_comment_with_a_paragraph_for_each_item() {
    let server = LinearServer::new();
    let mut world = world(&server);
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item.clone().unwrap_or_default();
        match turn.step {
            _ if item == "Item two" => {
                Step::text(turn.promise.replace("COMPLETE", "BLOCKED").replace("</", " Which format?</"))
            }
            0 => Step::bash(
                "sed -i 's/\\[ \\]/[x]/' plimsoll-item.md && echo 1 > one.txt && git add -A && git commit -qm One",
            ),
            _ => Step::text(format!("{item} is done.\n\n{}", turn.promise)),
        }
    }).start(&mut world);
    let words = ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers", "2", "--no-wait"];
    let client = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let all: Vec<&str> = words.into_iter().chain(client).collect();
    let finished = world.plimsoll(&all).run();
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "the runs of the items write none: {comments:#?}");
    let body = &comments[0].body;
    let paragraphs: Vec<&str> = body.split("\n\n").collect();
    assert_eq!(paragraphs.len(), 4, "{paragraphs:#?}");
    for (beginning, end) in [
        ("**Item 1** · 20", "“Item one” was merged ("),
        ("**Item 2** · 20", "“Item two” waits for an answer: Which format? (plimsoll status)."),
        ("**Iteration 2** · 20", "the run ended: blocked"),
    ] {
        let is_it = |one: &&&str| one.starts_with(beginning) && one.contains(end);
        assert_eq!(paragraphs.iter().filter(is_it).count(), 1, "{beginning} {end}: {paragraphs:#?}");
    }
    assert!(body.contains("1 item done, 1 open; 2 sessions"), "{body}");
    assert_eq!(undelivered(&world), 0);
}
