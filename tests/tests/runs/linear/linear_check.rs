//! `plimsoll linear check`: each part of the way, and what to do where it ends.
//!
//! Tests commands shown in docs/linear.md.

use crate::linear::harness::{note, set_issue, world};
use plimsoll_testkit::linear::{Fault, KEY, LinearServer};
use plimsoll_testkit::world::{Finished, World};
use serde_json::json;

fn check(world: &World) -> Finished {
    world.plimsoll(&["linear", "check"]).run()
}

/// The part that is marked so, without its mark.
fn marked(finished: &Finished, mark: &str) -> String {
    let lines: Vec<&str> = finished.stdout.lines().filter_map(|line| line.strip_prefix(mark)).collect();
    assert_eq!(lines.len(), 1, "{mark} once in\n{}", finished.stdout);
    lines[0].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn where_all_is_well_each_part_says_so_and_nothing_is_written_to_linear() {
    let server = LinearServer::new();
    let world = world(&server);
    let finished = check(&world);
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
fn a_command_may_print_the_key() {
    let server = LinearServer::new();
    let mut world = world(&server);
    world.set_env("LINEAR_API_KEY", "");
    for (command, code, words) in [
        (format!("echo {KEY}"), 0, "from linear.key_command: a personal API key"),
        ("exit 3".to_owned(), 1, "Key linear.key_command exited with 3"),
        ("true".to_owned(), 1, "Key linear.key_command printed no key: it is empty"),
        (format!("echo {KEY}; echo more"), 1, "printed no key: it is 2 lines of text instead of one"),
    ] {
        let settings = json!({ "linear": { "issue": "ENG-123", "key_command": command } });
        world.write_user_settings(&settings);
        let finished = check(&world);
        assert_eq!(finished.code, Some(code), "{command}: {finished:?}");
        let shown = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(words), "{command}: {}", finished.stdout);
        assert!(!shown.contains(KEY) && !finished.stderr.contains(KEY));
    }
}

#[test]
fn the_part_where_the_way_ends_is_named_with_what_to_do() {
    let server = LinearServer::new();
    let mut world = world(&server);
    let ends = |world: &World, problem: &str, todo: &str| {
        let finished = check(world);
        assert_eq!(finished.code, Some(1), "{problem}: {finished:?}");
        let said = marked(&finished, "PROBLEM");
        assert!(said.starts_with(problem), "{said}\nnot\n{problem}");
        assert!(finished.stdout.contains(&format!("    → {todo}")), "{todo} in {}", finished.stdout);
    };
    set_issue(&world, "ENG-999");
    ends(&world, "Issue there is no issue ENG-999 for this key", "check the identifier");
    world.write_user_settings(&json!({}));
    ends(&world, "Setting no issue is set", "put {\"linear\"");
    set_issue(&world, "ENG-123");
    world.set_env("LINEAR_API_KEY", "");
    ends(&world, "Key there is no key for Linear", "make a key in Linear");
    world.set_env("LINEAR_API_KEY", "two words");
    ends(&world, "Key LINEAR_API_KEY holds no key: it contains characters", "export LINEAR_API_KEY");
    world.set_env("LINEAR_API_KEY", "lin_api_wrong");
    ends(&world, "Account Linear rejects the key", "make a new key");
    world.set_env("LINEAR_API_KEY", KEY);
    server.forbid_writing();
    ends(&world, "Rights Linear does not allow it: Invalid scope: `write` required", "use a key that may");
    let asked = server.asked().len();
    world.set_env("LINEAR_API_URL", server.url().replace("127.0.0.1", "0.0.0.0"));
    ends(
        &world,
        "Network the address in LINEAR_API_URL cannot be used: without https",
        "unset LINEAR_API_URL",
    );
    assert_eq!(server.asked().len(), asked);
    world.set_env("LINEAR_API_URL", "http://127.0.0.1:9/");
    ends(&world, "Network 127.0.0.1 cannot be reached", "check the network");
}

#[test]
fn without_root_certificates_it_says_so_and_a_false_certificate_is_not_trusted() {
    let server = LinearServer::new();
    let mut world = world(&server);
    // Whoever answers there speaks no TLS at all.
    world.set_env("LINEAR_API_URL", server.url().replace("http:", "https:"));
    world.write("none.pem", "");
    world.set_env("SSL_CERT_FILE", world.path("none.pem").display().to_string());
    let finished = check(&world);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stdout.contains("no root certificates were found"), "{finished:?}");
    assert!(finished.stdout.contains("→ install the package ca-certificates"), "{finished:?}");
    assert!(server.asked().is_empty());
}

#[test]
fn an_archived_issue_and_notes_that_wait_are_warnings() {
    let server = LinearServer::new();
    let world = world(&server);
    server.archive_issue();
    let finished = check(&world);
    assert_eq!(finished.code, Some(0));
    assert!(marked(&finished, "warning").contains("it is archived"), "{finished:?}");
    note(&world, "r1", 1, "waits");
    let finished = check(&world);
    assert_eq!(finished.code, Some(0));
    let waits = "warning  Outbox   1 note to be delivered\n";
    assert!(
        finished.stdout.ends_with(&format!("{waits}    → `plimsoll linear sync` delivers\n")),
        "{finished:?}"
    );
    let mut world = world;
    world.set_env("LINEAR_API_KEY", "");
    let finished = check(&world);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stdout.ends_with(waits), "nothing can be delivered without a key: {finished:?}");
    let help = world.plimsoll(&["linear", "sync", "--help"]).run().expect_success().stdout;
    assert!(help.contains("needs no key"), "{help}");
    let shown = world.plimsoll(&["linear", "sync", "--dry-run"]).run().expect_success().stdout;
    assert!(shown.contains("waits"), "and it is so: {shown}");
}

#[test]
fn what_linear_refuses_is_not_mended_by_calling_the_check_again() {
    let fault = || Fault::Refused("INPUT_ERROR", "Something went wrong".into());
    let server = LinearServer::with_faults(move |_| Some(fault()));
    let finished = check(&world(&server));
    assert_eq!(finished.code, Some(1));
    assert!(
        marked(&finished, "PROBLEM").starts_with("Account Linear refuses: Something went wrong"),
        "{finished:?}"
    );
    assert!(finished.stdout.contains("    → its message is above"), "{finished:?}");
    assert!(!finished.stdout.contains("plimsoll linear check"), "{finished:?}");
}

#[test]
fn a_limit_and_a_server_that_is_away_are_told_apart() {
    for (fault, words) in [
        (Fault::Limited(4_000_000_000_000), "PROBLEM  Account  Linear asks us to wait"),
        (Fault::Status(503, "busy".into()), "PROBLEM  Network  127.0.0.1 answered with the status 503"),
        (Fault::Cut, "PROBLEM  Network  127.0.0.1"),
    ] {
        let always = fault.clone();
        let server = LinearServer::with_faults(move |_| Some(always.clone()));
        let finished = check(&world(&server));
        assert_eq!(finished.code, Some(1), "{fault:?}");
        assert!(finished.stdout.contains(words), "{fault:?}: {}", finished.stdout);
    }
}
