//! Faults during delivery to Linear: no note is lost, and none is delivered twice.

use crate::linear::harness::{
    COMMAND_TIMEOUT, add_note, linear_journal_entries, project_store, run_linear_sync, undelivered_count,
    world_with_linear, write_issue_setting,
};
use plimsoll_store::outbox;
use plimsoll_testkit::linear::{Fault, LinearServer, ReceivedRequest};
use plimsoll_testkit::world::World;
use std::time::Duration;

/// Returns a server whose first requests have these faults, one after another, and a project with one queued note.
fn world_with_faulty_server(faults: Vec<Fault>) -> (LinearServer, World) {
    let mut faults = faults.into_iter();
    let server = LinearServer::start_with_faults(move |_| faults.next());
    let world = world_with_linear(&server);
    add_note(&world, "r1", 1, "checkpoint");
    (server, world)
}

fn is_comment_creation(request: &ReceivedRequest) -> bool {
    request.operation == "commentCreate"
}

/// Asserts that everything is delivered, in one comment.
fn assert_delivered_once(server: &LinearServer, world: &World) {
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "{comments:#?}");
    assert!(comments[0].body.contains("**Session 1** · 2026-01-07 01:45 UTC · checkpoint"), "{comments:#?}");
    assert_eq!(undelivered_count(world), 0);
}

#[test]
fn a_rejected_key_is_reported_and_the_notes_stay_queued() {
    let (server, mut world) = world_with_faulty_server(vec![]);
    world.set_env("LINEAR_API_KEY", "lin_api_wrong");
    let finished = run_linear_sync(&world);
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(finished.stderr, @"
    error: Linear rejects the key: Authentication required, not authenticated (AUTHENTICATION_ERROR); 1 note not delivered yet
    hint: make a new key in Linear (Settings, Security & access, Personal API keys) and set LINEAR_API_KEY
    ");
    assert_eq!((server.comments().len(), undelivered_count(&world)), (0, 1));
}

#[test]
fn a_rejection_by_linear_is_shown_with_its_message() {
    let (server, world) =
        world_with_faulty_server(vec![Fault::GraphqlErrors("INPUT_ERROR", "body is too rude".into())]);
    let finished = run_linear_sync(&world);
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(finished.stderr, @"
    error: Linear refuses: body is too rude (INPUT_ERROR); 1 note not delivered yet
    hint: check linear.issue; `plimsoll linear check` checks each part
    ");
    assert_eq!(
        server.requested_operations(),
        ["commentCreate", "comment"],
        "it is looked whether it is there already"
    );
    assert_eq!(run_linear_sync(&world).code, Some(0));
    assert_delivered_once(&server, &world);
}

#[test]
fn a_missing_issue_is_named() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    write_issue_setting(&world, "ENG-999");
    let note = plimsoll_domain::linear::LinearNote {
        run_id: "r1".into(),
        issue_name: "ENG-999".into(),
        ..Default::default()
    };
    outbox::append_note_with_best_effort_lock(&project_store(&world), &note).expect("the outbox is writable");
    let finished = run_linear_sync(&world);
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(finished.stderr, @"
    error: Linear refuses: Entity not found: Issue - Could not find referenced Issue. (INPUT_ERROR, at commentCreate); 1 note not delivered yet
    hint: check linear.issue; `plimsoll linear check` checks each part
    ");
}

/// An agent can write to the outbox.
#[test]
fn notes_for_an_issue_outside_the_user_settings_are_not_sent() {
    let (server, world) = world_with_faulty_server(vec![]);
    let note = plimsoll_domain::linear::LinearNote {
        run_id: "r2".into(),
        issue_name: "ENG-999".into(),
        ..Default::default()
    };
    outbox::append_note_with_best_effort_lock(&project_store(&world), &note).expect("the outbox is writable");
    let finished = run_linear_sync(&world);
    insta::assert_snapshot!(finished.stderr, @"warning: notes of run r2 were not delivered: they are for ENG-999, and your settings name another issue (`linear.issue`)");
    assert_eq!((server.comments().len(), undelivered_count(&world)), (1, 1));
    assert_eq!(server.requested_operations(), ["commentCreate"]);
}

/// A process that can write the record can name any comment in it, even a person's comment.
#[test]
fn a_forged_comment_record_does_not_change_another_comment() {
    let (server, world) = world_with_faulty_server(vec![]);
    assert_eq!(run_linear_sync(&world).code, Some(0));
    let own_comment = outbox::load_comment_state(&project_store(&world), &"r1".into()).expect("a record");
    add_note(&world, "r2", 2, "a lie");
    let forged = plimsoll_domain::linear::LinearComment { delivered_note_count: 0, ..own_comment.clone() };
    outbox::save_comment_state(&project_store(&world), &"r2".into(), &forged)
        .expect("the outbox is writable");
    let body_before = server.comments()[0].body.clone();
    run_linear_sync(&world);
    assert!(server.comments().iter().any(|comment| comment.body == body_before), "{:#?}", server.comments());
    assert_eq!(outbox::load_comment_state(&project_store(&world), &"r1".into()), Some(own_comment));
}

#[test]
fn a_partial_error_is_shown_and_the_note_is_delivered() {
    let (server, world) = world_with_faulty_server(vec![Fault::PartialResponse]);
    let finished = run_linear_sync(&world);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(finished.stderr, @"warning: Linear reports: the url could not be made (at comment.url)");
    assert_delivered_once(&server, &world);
}

#[test]
fn after_a_rate_limit_no_request_is_sent_until_it_resets() {
    let hour = Duration::from_secs(3_600);
    let in_an_hour =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time") + hour;
    let reset_at_ms = u64::try_from(in_an_hour.as_millis()).expect("it fits");
    for fault in [Fault::RateLimited(reset_at_ms), Fault::RateLimitedWith429(reset_at_ms)] {
        let (server, world) = world_with_faulty_server(vec![fault]);
        let finished = run_linear_sync(&world);
        assert_eq!(finished.code, Some(1));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&finished.stderr), @"
            error: Linear asks to wait: too many requests; 1 note not delivered yet
            hint: try again after that time
            ");
        }
        let second_sync = run_linear_sync(&world);
        assert_eq!(second_sync.code, Some(1));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&second_sync.stderr), @"
            error: Linear asked to wait until [TIME]; 1 note not delivered yet
            hint: try again then
            ");
        }
        assert_eq!(server.requests().len(), 1, "before that time nobody is asked");
        let wait = outbox::load_backoff(&project_store(&world)).expect("it is remembered");
        let retry_at_ms = plimsoll_store::clock::parse_rfc3339(wait.retry_at.as_str())
            .expect("a moment")
            .timestamp_millis();
        assert!(
            (0..=1_000).contains(&(retry_at_ms - i64::try_from(reset_at_ms).expect("it fits"))),
            "{wait:?}"
        );
        outbox::save_or_remove_backoff(&project_store(&world), None).expect("the hour is over");
        assert_eq!(run_linear_sync(&world).code, Some(0));
        assert_delivered_once(&server, &world);
    }
    // A limit that has already ended delays nothing.
    let (server, world) = world_with_faulty_server(vec![Fault::RateLimited(1)]);
    assert_eq!((run_linear_sync(&world).code, run_linear_sync(&world).code), (Some(1), Some(0)));
    assert_delivered_once(&server, &world);
}

#[test]
fn a_temporary_fault_is_retried_within_the_same_sync() {
    for faults in [
        vec![Fault::ConnectionCut],
        vec![Fault::HttpStatus(503, "busy".into()), Fault::ConnectionCut],
        // Linear created the comment, but its response was lost: the retry is rejected as a duplicate, and the comment
        // is found and recognized as ours.
        vec![Fault::CutAfterOperation],
        vec![Fault::CutAfterOperation, Fault::ConnectionCut, Fault::ConnectionCut],
    ] {
        let fault_list = format!("{faults:?}");
        let (server, world) = world_with_faulty_server(faults);
        let finished = run_linear_sync(&world);
        assert_eq!(finished.code, Some(0), "{fault_list}: {finished:?}");
        assert_delivered_once(&server, &world);
    }
}

#[test]
fn a_lasting_fault_is_journaled_only_once() {
    let server = LinearServer::start_with_faults(|_| Some(Fault::ConnectionCut));
    let world = world_with_linear(&server);
    add_note(&world, "r1", 1, "checkpoint");
    for _ in 0..2 {
        let finished = run_linear_sync(&world);
        assert_eq!(finished.code, Some(1));
        let error = finished.stderr.lines().next().unwrap_or_default();
        assert!(error.ends_with("; 1 note not delivered yet"), "{finished:?}");
    }
    assert_eq!(linear_journal_entries(&world).len(), 1);
    assert_eq!(outbox::load_backoff(&project_store(&world)).expect("it is remembered").failure_count, 2);
}

#[test]
fn an_unexpected_response_is_reported_and_no_redirect_is_followed() {
    let errors = [200, 302].map(|status| {
        let (server, world) = world_with_faulty_server(vec![Fault::HttpStatus(status, "hello".into())]);
        let finished = run_linear_sync(&world);
        assert_eq!((finished.code, server.requests().len()), (Some(1), 1), "{finished:?}");
        finished.stderr
    });
    insta::assert_snapshot!(errors.concat(), @r#"
    error: 127.0.0.1 does not answer as Linear does: status 200: "hello"; 1 note not delivered yet
    hint: check LINEAR_API_URL and the proxy
    error: 127.0.0.1 does not answer as Linear does: a redirect, which is not followed; 1 note not delivered yet
    hint: check LINEAR_API_URL and the proxy
    "#);
}

#[test]
fn a_crash_before_the_response_creates_no_second_comment() {
    let mut is_first = true;
    let server = LinearServer::start_with_faults(move |asked| {
        (is_comment_creation(asked) && std::mem::take(&mut is_first))
            .then_some(Fault::DelayedResponse(COMMAND_TIMEOUT))
    });
    let world = world_with_linear(&server);
    add_note(&world, "r1", 1, "checkpoint");
    let mut running = world.plimsoll(&["linear", "sync"]).spawn();
    world.wait_until(|| server.comments().len() == 1, "the comment is made");
    running.kill();
    assert_eq!(running.wait_or_kill_and_panic(COMMAND_TIMEOUT).signal, Some(9));
    assert_eq!(undelivered_count(&world), 1, "nobody has heard of it");
    add_note(&world, "r1", 2, "another one");
    assert_eq!(run_linear_sync(&world).code, Some(0));
    assert_delivered_once(&server, &world);
    assert!(server.comments()[0].body.contains("**Session 2**"), "{:#?}", server.comments());
}

#[test]
fn two_simultaneous_syncs_create_only_one_comment() {
    let server = LinearServer::start_with_faults(|asked| {
        is_comment_creation(asked).then_some(Fault::DelayedResponse(Duration::from_millis(300)))
    });
    let world = world_with_linear(&server);
    add_note(&world, "r1", 1, "checkpoint");
    let syncs = [0, 1].map(|_| world.plimsoll(&["linear", "sync"]).spawn());
    for running in syncs {
        let finished = running.wait_or_kill_and_panic(COMMAND_TIMEOUT);
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    assert_delivered_once(&server, &world);
    assert_eq!(server.requested_operations(), ["commentCreate"]);
}

#[test]
fn a_deleted_comment_is_created_again_with_all_its_notes() {
    let (server, world) = world_with_faulty_server(vec![]);
    assert_eq!(run_linear_sync(&world).code, Some(0));
    let first = server.comments()[0].id.clone();
    server.delete_comments();
    add_note(&world, "r1", 2, "another one");
    assert_eq!(run_linear_sync(&world).code, Some(0));
    assert_delivered_once(&server, &world);
    assert_ne!(server.comments()[0].id, first);
}

#[test]
fn a_lost_comment_record_leads_to_no_second_comment() {
    let (server, world) = world_with_faulty_server(vec![]);
    assert_eq!(run_linear_sync(&world).code, Some(0));
    let comment_record = outbox::outbox_folder(&project_store(&world)).join("r1.comment.json");
    std::fs::remove_file(comment_record).expect("it was there");
    add_note(&world, "r1", 2, "another one");
    assert_eq!(run_linear_sync(&world).code, Some(0));
    assert_delivered_once(&server, &world);
    assert_eq!(server.comments()[0].edit_count, 1);
}
