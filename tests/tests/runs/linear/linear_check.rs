//! `plimsoll linear check`: each part of the connection, and what to do if one fails.
//!
//! Tests commands shown in docs/linear.md.

use crate::linear::harness::{add_note, world_with_linear, write_issue_setting};
use plimsoll_testkit::linear::{API_KEY, Fault, LinearServer};
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::json;

fn run_linear_check(world: &World) -> FinishedProgram {
    world.plimsoll(&["linear", "check"]).run()
}

/// Returns the text of the only line with this mark, without the mark.
fn single_line_with_mark(finished: &FinishedProgram, mark: &str) -> String {
    let lines: Vec<&str> = finished.stdout.lines().filter_map(|line| line.strip_prefix(mark)).collect();
    assert_eq!(lines.len(), 1, "{mark} once in\n{}", finished.stdout);
    lines[0].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn linear_check_reports_every_part_as_ok_and_writes_nothing() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    let finished = run_linear_check(&world);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let expected = "\
ok       Setting  notes go to ENG-123
ok       Key      from LINEAR_API_KEY: a personal API key
ok       Network  Linear answers
ok       Account  Ada, in the workspace Test
ok       Issue    ENG-123 “Convert the dates”, team Engineering
ok       Rights   the key may write comments
ok       Outbox   no notes to deliver
";
    assert_eq!(finished.stdout, expected);
    assert!(server.comments().is_empty());
}

#[test]
fn the_key_can_come_from_a_command() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    world.set_env("LINEAR_API_KEY", "");
    let commands = [
        (format!("echo {API_KEY}"), 0),
        ("exit 3".to_owned(), 1),
        ("true".to_owned(), 1),
        (format!("echo {API_KEY}; echo more"), 1),
    ];
    let lines = commands.map(|(command, code)| {
        let settings = json!({ "linear": { "issue": "ENG-123", "key_command": command } });
        world.write_plimsoll_user_settings(&settings);
        let finished = run_linear_check(&world);
        assert_eq!(finished.code, Some(code), "{command}: {finished:?}");
        assert!(!finished.stdout.contains(API_KEY) && !finished.stderr.contains(API_KEY));
        let line = finished.stdout.lines().find(|line| line.contains("  Key  "));
        format!("{}\n", line.unwrap_or_default())
    });
    insta::assert_snapshot!(lines.concat(), @"
    ok       Key      from linear.key_command: a personal API key
    PROBLEM  Key      linear.key_command exited with 3
    PROBLEM  Key      linear.key_command printed no key: it is empty
    PROBLEM  Key      linear.key_command printed no key: it is 2 lines of text instead of one
    ");
}

#[test]
fn linear_check_names_the_failing_part_and_what_to_do() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    let problem_output = |world: &World| {
        let finished = run_linear_check(world);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        let (_, problem) = finished.stdout.split_once("PROBLEM").expect("a problem");
        world.replace_varying_parts_with_placeholders(&format!("PROBLEM{problem}"))
    };
    write_issue_setting(&world, "ENG-999");
    insta::assert_snapshot!(problem_output(&world), @"
    PROBLEM  Issue    there is no issue ENG-999 for this key (Linear refuses: Entity not found: Issue - Could not find referenced Issue. (INPUT_ERROR, at issue))
        → check the identifier, and whether the owner of the key has access to its team
    ok       Outbox   no notes to deliver
    ");
    world.write_plimsoll_user_settings(&json!({}));
    insta::assert_snapshot!(problem_output(&world), @r#"
    PROBLEM  Setting  no issue is set, so no notes are queued or sent
        → put {"linear": {"issue": "ENG-123"}} into [HOME]/.config/plimsoll/settings.json
    ok       Outbox   no notes to deliver
    "#);
    write_issue_setting(&world, "ENG-123");
    world.set_env("LINEAR_API_KEY", "");
    insta::assert_snapshot!(problem_output(&world), @"
    PROBLEM  Key      there is no key for Linear: neither LINEAR_API_KEY nor linear.key_command is set
        → make a key in Linear (Settings, Security & access, Personal API keys) and export LINEAR_API_KEY
    ok       Outbox   no notes to deliver
    ");
    world.set_env("LINEAR_API_KEY", "two words");
    insta::assert_snapshot!(problem_output(&world), @"
    PROBLEM  Key      LINEAR_API_KEY has no valid key: it contains characters that no key has
        → export LINEAR_API_KEY with the key alone, such as lin_api_…
    ok       Outbox   no notes to deliver
    ");
    world.set_env("LINEAR_API_KEY", "lin_api_wrong");
    insta::assert_snapshot!(problem_output(&world), @"
    PROBLEM  Account  Linear rejects the key: Authentication required, not authenticated (AUTHENTICATION_ERROR)
        → make a new key in Linear (Settings, Security & access, Personal API keys) and set LINEAR_API_KEY
    ok       Outbox   no notes to deliver
    ");
    world.set_env("LINEAR_API_KEY", API_KEY);
    server.make_api_key_read_only();
    insta::assert_snapshot!(problem_output(&world), @"
    PROBLEM  Rights   Linear does not allow it: Invalid scope: `write` required (FORBIDDEN, at commentUpdate)
        → use a key that may read and write, of a user who has access to the team
    ok       Outbox   no notes to deliver
    ");
    let request_count = server.requests().len();
    world.set_env("LINEAR_API_URL", server.url().replace("127.0.0.1", "0.0.0.0"));
    insta::assert_snapshot!(problem_output(&world), @"
    PROBLEM  Network  the address in LINEAR_API_URL cannot be used: without https only this computer (127.0.0.1) is allowed
        → unset LINEAR_API_URL, or let it begin with https://
    ok       Outbox   no notes to deliver
    ");
    assert_eq!(server.requests().len(), request_count);
    world.set_env("LINEAR_API_URL", "http://127.0.0.1:9/");
    insta::assert_snapshot!(problem_output(&world), @"
    PROBLEM  Network  127.0.0.1 cannot be reached: io: Connection refused (os error 111)
        → check the network; behind a proxy set HTTPS_PROXY (and NO_PROXY)
    ok       Outbox   no notes to deliver
    ");
}

#[test]
fn missing_root_certificates_are_reported_and_nothing_is_sent() {
    let server = LinearServer::new();
    let mut world = world_with_linear(&server);
    // The server at this address does not speak TLS.
    world.set_env("LINEAR_API_URL", server.url().replace("http:", "https:"));
    world.write("none.pem", "");
    world.set_env("SSL_CERT_FILE", world.path("none.pem").display().to_string());
    let finished = run_linear_check(&world);
    assert_eq!(finished.code, Some(1));
    let (_, problem) = finished.stdout.split_once("PROBLEM").expect("a problem");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(problem), @"
      Network  no root certificates were found on this computer
        → install the package ca-certificates, or name a file of them in SSL_CERT_FILE
    ok       Outbox   no notes to deliver
    ");
    assert!(server.requests().is_empty());
}

#[test]
fn an_archived_issue_and_undelivered_notes_are_warnings() {
    let server = LinearServer::new();
    let world = world_with_linear(&server);
    server.archive_issue();
    let finished = run_linear_check(&world);
    assert_eq!(finished.code, Some(0));
    insta::assert_snapshot!(single_line_with_mark(&finished, "warning"), @"Issue ENG-123 “Convert the dates”, team Engineering: it is archived");
    add_note(&world, "r1", 1, "waits");
    let finished = run_linear_check(&world);
    assert_eq!(finished.code, Some(0));
    let outbox_warning = "warning  Outbox   1 note to be delivered\n";
    assert!(
        finished.stdout.ends_with(&format!("{outbox_warning}    → `plimsoll linear sync` delivers\n")),
        "{finished:?}"
    );
    let mut world = world;
    world.set_env("LINEAR_API_KEY", "");
    let finished = run_linear_check(&world);
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.stdout.ends_with(outbox_warning),
        "nothing can be delivered without a key: {finished:?}"
    );
    let help = world.plimsoll(&["linear", "sync", "--help"]).run().expect_success().stdout;
    insta::assert_snapshot!(help, @"
    Deliver the notes that wait

    Usage: plimsoll linear sync [OPTIONS]

    Options:
          --dry-run  Print each comment that would be sent; send nothing (needs no key)
      -h, --help     Print help
      -V, --version  Print version
    ");
    let dry_run_output = world.plimsoll(&["linear", "sync", "--dry-run"]).run().expect_success().stdout;
    assert!(dry_run_output.contains("waits"), "and it is so: {dry_run_output}");
}

#[test]
fn a_rejection_by_linear_does_not_suggest_another_linear_check() {
    let fault = || Fault::GraphqlErrors("INPUT_ERROR", "Something went wrong".into());
    let server = LinearServer::start_with_faults(move |_| Some(fault()));
    let finished = run_linear_check(&world_with_linear(&server));
    assert_eq!(finished.code, Some(1));
    insta::assert_snapshot!(finished.stdout, @"
    ok       Setting  notes go to ENG-123
    ok       Key      from LINEAR_API_KEY: a personal API key
    ok       Network  Linear answers
    PROBLEM  Account  Linear refuses: Something went wrong (INPUT_ERROR)
        → its message is above: check linear.issue and LINEAR_API_URL, try again later, or use a new key
    ok       Outbox   no notes to deliver
    ");
}

#[test]
fn a_rate_limit_and_an_unavailable_server_are_distinguished() {
    for (fault, expected) in [
        (Fault::RateLimited(4_000_000_000_000), "PROBLEM  Account  Linear asks to wait"),
        (Fault::HttpStatus(503, "busy".into()), "PROBLEM  Network  127.0.0.1 answered with the status 503"),
        (Fault::ConnectionCut, "PROBLEM  Network  127.0.0.1"),
    ] {
        let repeated_fault = fault.clone();
        let server = LinearServer::start_with_faults(move |_| Some(repeated_fault.clone()));
        let finished = run_linear_check(&world_with_linear(&server));
        assert_eq!(finished.code, Some(1), "{fault:?}");
        assert!(finished.stdout.contains(expected), "{fault:?}: {}", finished.stdout);
    }
}
