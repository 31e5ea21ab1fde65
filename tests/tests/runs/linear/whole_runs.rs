//! Runs that report to Linear: one comment each, whatever the network does.

use crate::linear::harness::{
    CHECKPOINT_SESSION, FINISH_ITEM_SESSION, PROMISE_SESSION, linear_journal_entries, project_store,
    run_linear_sync, run_scripted_sessions, undelivered_count, world_with_linear,
};
use plimsoll_store::outbox;
use plimsoll_testkit::linear::{API_KEY, LinearServer};
use plimsoll_testkit::scripted_model::Step;
use plimsoll_tests::{ScriptedAgent, honest_agent};
use std::net::TcpListener;

/// Returns an address on which nothing listens.
fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}/graphql", listener.local_addr().expect("its address"))
}

#[test]
fn a_run_is_one_comment_with_a_paragraph_per_checkpoint_and_the_end() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    let finished = run_scripted_sessions(&world, &[CHECKPOINT_SESSION, FINISH_ITEM_SESSION, PROMISE_SESSION]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "{comments:#?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&comments[0].body), @r"
    **Plimsoll: Dates** (run [COMMIT])

    **Session 1** · [DATE] [TIME] UTC · checkpoint (level, L2 at 87%). Current item: “Item one”. Progress: 50%. Summary: half of them. Next step: the rest. 0 items done, 2 open. Handoff: .claude/handoffs/[DATE-TIME].md

    **Session 3** · [DATE] [TIME] UTC · the run ended: completed (2 items). 2 items done, 0 open; 3 sessions, \$0.03, 0 tokens.
    ");
    assert_eq!(
        server.requested_operations(),
        ["commentCreate", "commentUpdate"],
        "after session 1, and at the end"
    );
    assert_eq!(undelivered_count(&world), 0);
    let entries = linear_journal_entries(&world);
    assert_eq!(entries.len(), 2, "{entries:#?}");
    assert!(entries.iter().all(|entry| entry["event"] == "linear_delivered"), "{entries:#?}");
    let log = world.plimsoll(&["log"]).run().expect_success().stdout;
    assert_eq!(log.matches("Linear notified: ENG-123").count(), 2, "{log}");
}

#[test]
fn a_question_is_in_the_comment_once() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    let finished =
        run_scripted_sessions(&world, &["begin; answers 30000; says \"$blocked\"\n", FINISH_ITEM_SESSION]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "{comments:#?}");
    let question = "“Item one” waits for an answer: no way (plimsoll status). 0 items done, 2 open.";
    assert_eq!(comments[0].body.matches(question).count(), 1, "{comments:#?}");
    assert!(comments[0].body.contains("the run ended: blocked"), "{comments:#?}");
}

#[test]
fn a_run_without_network_completes_and_one_sync_delivers_its_notes() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    world.set_env("LINEAR_API_URL", unused_address());
    let finished = run_scripted_sessions(&world, &[CHECKPOINT_SESSION, FINISH_ITEM_SESSION, PROMISE_SESSION]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let failure_message = "Linear was not notified: 127.0.0.1 cannot be reached";
    assert_eq!(
        finished.stdout.matches(failure_message).count(),
        1,
        "one line for all of it: {}",
        finished.stdout
    );
    let failures = linear_journal_entries(&world);
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert_eq!(failures[0]["event"], "linear_failed");
    assert!(server.requests().is_empty());
    let waiting_count = undelivered_count(&world);
    assert!(waiting_count >= 2, "a checkpoint and the end: {waiting_count}");

    world.set_env("LINEAR_API_URL", server.url());
    let synced = run_linear_sync(&world);
    assert_eq!(synced.code, Some(0), "{synced:?}");
    assert!(synced.stdout.contains("of the run \"Dates\": https://linear.app/"), "{synced:?}");
    let comments = server.comments();
    assert_eq!((comments.len(), undelivered_count(&world)), (1, 0));
    for part in ["**Session 1**", "half of them", "**Session 3**", "the run ended: completed"] {
        assert!(comments[0].body.contains(part), "{part} in {comments:#?}");
    }
    assert_eq!(run_linear_sync(&world).stdout, "no notes to deliver\n");
    assert_eq!(server.requested_operations(), ["commentCreate"]);
}

#[test]
fn a_second_run_gets_its_own_comment() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    let finished = run_scripted_sessions(&world, &[FINISH_ITEM_SESSION, PROMISE_SESSION]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(server.comments().len(), 1);
    // Another run gets another comment.
    world.write("fix_plan.md", "- [ ] Item three\n");
    for number in [3, 4] {
        world.write(world.home().join(format!("sessions/{number}")), PROMISE_SESSION);
    }
    let client = world.home().join("stand-in").display().to_string();
    let arguments =
        ["run", "--objective", "Do the rest.", "--name", "More", "--no-wait", "--client", &client];
    let finished = world.plimsoll(&arguments).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 2, "{comments:#?}");
    let titles = [0, 1].map(|index: usize| comments[index].body.lines().next().unwrap_or_default());
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&titles.join("\n")), @"
    **Plimsoll: Dates** (run [COMMIT])
    **Plimsoll: More** (run [COMMIT])
    ");
}

#[test]
fn without_a_key_the_run_completes_and_the_key_is_reported_missing_once() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    world.set_env("LINEAR_API_KEY", "");
    let finished = run_scripted_sessions(&world, &[CHECKPOINT_SESSION, FINISH_ITEM_SESSION, PROMISE_SESSION]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout.matches("there is no key for Linear").count(), 1, "{}", finished.stdout);
    let doctor = world.plimsoll(&["doctor", "--json"]).run().stdout;
    assert!(doctor.contains("linear.no_key") && doctor.contains("linear.undelivered"), "{doctor}");
    world.set_env("LINEAR_API_KEY", API_KEY);
    assert_eq!(run_linear_sync(&world).code, Some(0));
    assert_eq!(server.comments().len(), 1);
}

#[test]
fn without_an_issue_no_note_is_queued_and_no_request_is_sent() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    world.write_plimsoll_user_settings(&serde_json::json!({}));
    let finished = run_scripted_sessions(&world, &[CHECKPOINT_SESSION, FINISH_ITEM_SESSION, PROMISE_SESSION]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(server.requests().is_empty());
    assert!(!plimsoll_store::disk::exists(&outbox::outbox_folder(&project_store(&world))));
}

#[test]
fn with_the_real_client_the_end_of_the_run_is_delivered() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    world.write("fix_plan.md", "- [ ] Item three\n");
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    let finished = plimsoll_tests::run_with_objective(&world, &["--json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 1);
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&comments[0].body), @r"
    **Plimsoll: Dates** (run [COMMIT])

    **Session 1** · [DATE] [TIME] UTC · the run ended: completed (1 item). 1 item done, 0 open; 1 session, \$0.01, 61k tokens.
    ");
}

#[test]
fn a_run_of_several_workers_is_one_comment_with_a_paragraph_for_each_item() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    let _model = ScriptedAgent::new(|turn| {
        let item = turn.item_text.clone().unwrap_or_default();
        match turn.assistant_message_count {
            _ if item == "Item two" => {
                Step::from_text(turn.promise_line.replace("COMPLETE", "BLOCKED").replace("</", " Which format?</"))
            }
            0 => Step::bash_call(
                "sed -i 's/\\[ \\]/[x]/' plimsoll-item.md && echo 1 > one.txt && git add -A && git commit -qm One",
            ),
            _ => Step::from_text(format!("{item} is done.\n\n{}", turn.promise_line)),
        }
    }).start(&mut world);
    let run_arguments =
        ["run", "--objective", "Do the plan.", "--name", "Dates", "--workers", "2", "--no-wait"];
    let client_arguments = ["--", "--model", "opus", "--allowedTools", "Bash"];
    let arguments: Vec<&str> = run_arguments.into_iter().chain(client_arguments).collect();
    let finished = world.plimsoll(&arguments).run();
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "the runs of the items write none: {comments:#?}");
    let body = &comments[0].body;
    let paragraphs: Vec<&str> = body.split("\n\n").collect();
    assert_eq!(paragraphs.len(), 4, "{paragraphs:#?}");
    for (beginning, end) in [
        ("**Item 1** · 20", "“Item one” was merged ("),
        ("**Item 2** · 20", "“Item two” waits for an answer: Which format? (plimsoll status)."),
        ("**Session 2** · 20", "the run ended: blocked"),
    ] {
        let is_expected_paragraph = |one: &&&str| one.starts_with(beginning) && one.contains(end);
        assert_eq!(
            paragraphs.iter().filter(is_expected_paragraph).count(),
            1,
            "{beginning} {end}: {paragraphs:#?}"
        );
    }
    assert!(body.contains("1 item done, 1 open; 2 sessions"), "{body}");
    assert_eq!(undelivered_count(&world), 0);
}
