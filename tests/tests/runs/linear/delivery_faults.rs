//! What can go wrong on the way, and that nothing is lost and nothing told twice.

use crate::linear::harness::{LIMIT, note, project, set_issue, sync, told, undelivered, world};
use plimsoll_store::outbox;
use plimsoll_testkit::linear::{Asked, Fault, LinearServer};
use plimsoll_testkit::world::World;
use std::time::Duration;

/// A server whose first requests have these faults, one after another, and a project with one note.
fn with(faults: Vec<Fault>) -> (LinearServer, World) {
    let mut faults = faults.into_iter();
    let server = LinearServer::with_faults(move |_| faults.next());
    let world = world(&server);
    note(&world, "r1", 1, "checkpoint");
    (server, world)
}

fn is_creation(asked: &Asked) -> bool {
    asked.operation == "commentCreate"
}

/// All is delivered now, and stands there once.
fn assert_told_once(server: &LinearServer, world: &World) {
    let comments = server.comments();
    assert_eq!(comments.len(), 1, "{comments:#?}");
    assert!(
        comments[0].body.contains("**Iteration 1** · 2026-01-07 01:45 UTC · checkpoint"),
        "{comments:#?}"
    );
    assert_eq!(undelivered(world), 0);
}

#[test]
fn a_key_that_linear_does_not_know_is_named_and_the_notes_stay() {
    let (server, mut world) = with(vec![]);
    world.set_env("LINEAR_API_KEY", "lin_api_wrong");
    let finished = sync(&world);
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(finished.stderr, @"
    plimsoll: Linear rejects the key: Authentication required, not authenticated (AUTHENTICATION_ERROR); 1 note not delivered yet
    hint: make a new key in Linear (Settings, Security & access, Personal API keys) and set LINEAR_API_KEY
    ");
    assert_eq!((server.comments().len(), undelivered(&world)), (0, 1));
}

#[test]
fn what_linear_refuses_is_shown_in_its_own_words() {
    let (server, world) = with(vec![Fault::Refused("INPUT_ERROR", "body is too rude".into())]);
    let finished = sync(&world);
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(finished.stderr, @"
    plimsoll: Linear refuses: body is too rude (INPUT_ERROR); 1 note not delivered yet
    hint: check linear.issue; `plimsoll linear check` checks each part
    ");
    assert_eq!(server.operations(), ["commentCreate", "comment"], "it is looked whether it is there already");
    assert_eq!(sync(&world).code, Some(0));
    assert_told_once(&server, &world);
}

#[test]
fn an_issue_that_is_not_there_is_named() {
    let server = LinearServer::new();
    let world = world(&server);
    set_issue(&world, "ENG-999");
    let note = plimsoll_domain::linear::LinearNote {
        run_id: "r1".into(),
        issue_name: "ENG-999".into(),
        ..Default::default()
    };
    outbox::append_note(&project(&world), &note).expect("the outbox is writable");
    let finished = sync(&world);
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(finished.stderr, @"
    plimsoll: Linear refuses: Entity not found: Issue - Could not find referenced Issue. (INPUT_ERROR, at commentCreate); 1 note not delivered yet
    hint: check linear.issue; `plimsoll linear check` checks each part
    ");
}

/// An agent can write to the outbox.
#[test]
fn notes_for_an_issue_that_the_user_does_not_name_are_left() {
    let (server, world) = with(vec![]);
    let note = plimsoll_domain::linear::LinearNote {
        run_id: "r2".into(),
        issue_name: "ENG-999".into(),
        ..Default::default()
    };
    outbox::append_note(&project(&world), &note).expect("the outbox is writable");
    let finished = sync(&world);
    insta::assert_snapshot!(finished.stderr, @"plimsoll: left: notes of run r2 are for ENG-999, and your settings name another issue (`linear.issue`)");
    assert_eq!((server.comments().len(), undelivered(&world)), (1, 1));
    assert_eq!(server.operations(), ["commentCreate"]);
}

/// Who may write the record may name any comment in it, also one of a person's.
#[test]
fn a_record_that_names_another_comment_changes_none_but_our_own() {
    let (server, world) = with(vec![]);
    assert_eq!(sync(&world).code, Some(0));
    let ours = outbox::load_comment(&project(&world), &"r1".into()).expect("a record");
    note(&world, "r2", 2, "a lie");
    let forged = plimsoll_domain::linear::LinearComment { delivered_note_count: 0, ..ours.clone() };
    outbox::save_comment(&project(&world), &"r2".into(), &forged).expect("the outbox is writable");
    let before = server.comments()[0].body.clone();
    sync(&world);
    assert!(server.comments().iter().any(|comment| comment.body == before), "{:#?}", server.comments());
    assert_eq!(outbox::load_comment(&project(&world), &"r1".into()), Some(ours));
}

#[test]
fn an_error_beside_the_data_is_shown_and_the_note_is_delivered() {
    let (server, world) = with(vec![Fault::Partial]);
    let finished = sync(&world);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    insta::assert_snapshot!(finished.stderr, @"plimsoll: Linear also says: the url could not be made (at comment.url)");
    assert_told_once(&server, &world);
}

#[test]
fn a_limit_is_honoured_until_its_moment() {
    let hour = Duration::from_secs(3_600);
    let in_an_hour =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time") + hour;
    let until = u64::try_from(in_an_hour.as_millis()).expect("it fits");
    for fault in [Fault::Limited(until), Fault::TooMany(until)] {
        let (server, world) = with(vec![fault]);
        let finished = sync(&world);
        assert_eq!(finished.code, Some(1));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.stable_text(&finished.stderr), @"
            plimsoll: Linear asks us to wait: too many requests; 1 note not delivered yet
            hint: try again after that time
            ");
        }
        let again = sync(&world);
        assert_eq!(again.code, Some(1));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.stable_text(&again.stderr), @"
            plimsoll: Linear asked us to wait until [TIME]; 1 note not delivered yet
            hint: try again then
            ");
        }
        assert_eq!(server.asked().len(), 1, "before that time nobody is asked");
        let wait = outbox::load_backoff(&project(&world)).expect("it is remembered");
        let moment = plimsoll_store::clock::parse_rfc3339(wait.retry_at.as_str())
            .expect("a moment")
            .timestamp_millis();
        assert!((0..=1_000).contains(&(moment - i64::try_from(until).expect("it fits"))), "{wait:?}");
        outbox::save_backoff(&project(&world), None).expect("the hour is over");
        assert_eq!(sync(&world).code, Some(0));
        assert_told_once(&server, &world);
    }
    // A moment that is over keeps nobody waiting.
    let (server, world) = with(vec![Fault::Limited(1)]);
    assert_eq!((sync(&world).code, sync(&world).code), (Some(1), Some(0)));
    assert_told_once(&server, &world);
}

#[test]
fn a_trouble_that_passes_is_tried_again_at_once() {
    for faults in [
        vec![Fault::Cut],
        vec![Fault::Status(503, "busy".into()), Fault::Cut],
        // Done, and not heard of: the next try is refused as a duplicate, found, and taken for ours.
        vec![Fault::CutAfter],
        vec![Fault::CutAfter, Fault::Cut, Fault::Cut],
    ] {
        let words = format!("{faults:?}");
        let (server, world) = with(faults);
        let finished = sync(&world);
        assert_eq!(finished.code, Some(0), "{words}: {finished:?}");
        assert_told_once(&server, &world);
    }
}

#[test]
fn a_trouble_that_lasts_is_told_and_noted_once() {
    let server = LinearServer::with_faults(|_| Some(Fault::Cut));
    let world = world(&server);
    note(&world, "r1", 1, "checkpoint");
    for _ in 0..2 {
        let finished = sync(&world);
        assert_eq!(finished.code, Some(1));
        let error = finished.stderr.lines().next().unwrap_or_default();
        assert!(error.ends_with("; 1 note not delivered yet"), "{finished:?}");
    }
    assert_eq!(told(&world).len(), 1);
    assert_eq!(outbox::load_backoff(&project(&world)).expect("it is remembered").failure_count, 2);
}

#[test]
fn what_does_not_speak_as_linear_does_is_told_and_no_redirect_is_followed() {
    let errors = [200, 302].map(|status| {
        let (server, world) = with(vec![Fault::Status(status, "hello".into())]);
        let finished = sync(&world);
        assert_eq!((finished.code, server.asked().len()), (Some(1), 1), "{finished:?}");
        finished.stderr
    });
    insta::assert_snapshot!(errors.concat(), @r#"
    plimsoll: 127.0.0.1 does not answer as Linear does: status 200: "hello"; 1 note not delivered yet
    hint: check LINEAR_API_URL and the proxy
    plimsoll: 127.0.0.1 does not answer as Linear does: a redirect, which is not followed; 1 note not delivered yet
    hint: check LINEAR_API_URL and the proxy
    "#);
}

#[test]
fn a_crash_between_sending_and_the_answer_makes_no_second_comment() {
    let mut is_first = true;
    let server = LinearServer::with_faults(move |asked| {
        (is_creation(asked) && std::mem::take(&mut is_first)).then_some(Fault::Late(LIMIT))
    });
    let world = world(&server);
    note(&world, "r1", 1, "checkpoint");
    let mut running = world.plimsoll(&["linear", "sync"]).spawn();
    world.wait_until(|| server.comments().len() == 1, "the comment is made");
    running.kill();
    assert_eq!(running.wait(LIMIT).signal, Some(9));
    assert_eq!(undelivered(&world), 1, "nobody has heard of it");
    note(&world, "r1", 2, "another one");
    assert_eq!(sync(&world).code, Some(0));
    assert_told_once(&server, &world);
    assert!(server.comments()[0].body.contains("**Iteration 2**"), "{:#?}", server.comments());
}

#[test]
fn of_two_deliverers_one_waits_and_then_has_nothing_to_do() {
    let server = LinearServer::with_faults(|asked| {
        is_creation(asked).then_some(Fault::Late(Duration::from_millis(300)))
    });
    let world = world(&server);
    note(&world, "r1", 1, "checkpoint");
    let both = [0, 1].map(|_| world.plimsoll(&["linear", "sync"]).spawn());
    for running in both {
        let finished = running.wait(LIMIT);
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    assert_told_once(&server, &world);
    assert_eq!(server.operations(), ["commentCreate"]);
}

#[test]
fn a_comment_that_somebody_has_deleted_is_made_anew_with_all_its_notes() {
    let (server, world) = with(vec![]);
    assert_eq!(sync(&world).code, Some(0));
    let first = server.comments()[0].id.clone();
    server.delete_comments();
    note(&world, "r1", 2, "another one");
    assert_eq!(sync(&world).code, Some(0));
    assert_told_once(&server, &world);
    assert_ne!(server.comments()[0].id, first);
}

#[test]
fn what_is_known_of_the_comment_may_be_lost_and_it_is_still_one() {
    let (server, world) = with(vec![]);
    assert_eq!(sync(&world).code, Some(0));
    let known = outbox::outbox_folder(&project(&world)).join("r1.comment.json");
    std::fs::remove_file(known).expect("it was there");
    note(&world, "r1", 2, "another one");
    assert_eq!(sync(&world).code, Some(0));
    assert_told_once(&server, &world);
    assert_eq!(server.comments()[0].edits, 1);
}
