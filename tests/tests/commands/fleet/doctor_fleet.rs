//! `plimsoll doctor --fleet NAME` names each problem that would stop a member, with what to do about it.

use super::FleetTestBench;
use super::test_fleet::{TestFleet, member};
use plimsoll_fleet::{URL_VARIABLE, WorkerReport};
use plimsoll_testkit::postgres::{ADMIN_ROLE, MEMBER_ROLE};
use serde_json::Value;

fn doctor_codes(bench: &FleetTestBench) -> Vec<String> {
    let finished = bench.world.plimsoll(&["doctor", "--fleet", "night", "--json"]).run();
    let document = finished.stdout_json();
    let findings = document["findings"].as_array().cloned().unwrap_or_default();
    let has_problem = findings.iter().any(|finding| finding["severity"] == "problem");
    assert_eq!(finished.code, Some(i32::from(has_problem)), "{finished:?}");
    let has_advice = |finding: &Value| !finding["todo"].as_str().unwrap_or_default().is_empty();
    assert!(findings.iter().all(has_advice), "{document}");
    findings.iter().map(|finding| finding["code"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A member records an item as merged whose commit is not on the branch.
fn assert_a_false_merge_is_found_and_reopened(bench: &FleetTestBench, hostile_member: &mut TestFleet) {
    const COMMIT: &str = "beef000000000000000000000000000000000000";
    hostile_member.restore_merge_candidate_commit(&member("bad"), 4, COMMIT).expect("an answer");
    assert_eq!(hostile_member.mark_landed_merged(|commit| commit == COMMIT).expect("an answer"), [4]);
    assert_eq!(doctor_codes(bench), ["fleet.unconfirmed_merge"]);
    let page = bench.world.plimsoll(&["doctor", "--fleet", "night"]).run().stdout;
    assert!(page.contains("item 5 is recorded as merged, and plimsoll/night does not contain it"), "{page}");
    let log = bench.run_fleet(&["log", "night", "--json"]).expect_success().stdout;
    assert!(log.contains("\"worker\":\"bad\",\"kind\":\"found\""), "{log}");
    let elsewhere = bench.world.plimsoll(&["fleet", "reopen", "night", "5"]).cwd(bench.world.home()).run();
    assert!(elsewhere.stderr.contains("is recorded as merged: run this in a clone"), "{elsewhere:?}");
    // The first item was done when the fleet was created.
    let done_before = bench.run_fleet(&["reopen", "night", "1"]);
    assert!(done_before.stderr.contains("is merged: the branch contains it"), "{done_before:?}");
    bench.run_fleet(&["reopen", "night", "5"]).expect_success();
    assert_eq!(doctor_codes(bench), [""; 0]);
}

#[test]
fn doctor_checks_a_fleet_from_its_database_to_its_members() {
    let mut bench = FleetTestBench::new();
    assert_eq!(doctor_codes(&bench), ["fleet.unknown"]);
    bench.create_fleet(&[]).expect_success();
    let before = bench.world.git(&["ls-remote", "origin"]);
    assert_eq!(doctor_codes(&bench), [""; 0]);
    let page = bench.world.plimsoll(&["doctor", "--fleet", "night"]).run().expect_success().stdout;
    insta::assert_snapshot!(bench.stable_text(&page), @"
    ok       Database     PostgreSQL [VERSION] at [SOCKET]/.s.PGSQL.[PORT]
    ok       Role         captain owns the fleet: it may work, and also answer, reopen, drain, resume, stop and forget
    ok       Fleet        night: no active worker; 1 of 5 items merged, 4 open
    ok       Remote       origin: ../there.git
    ok       Members      0 workers are active

    All is well.
    ");
    let elsewhere =
        bench.world.plimsoll(&["doctor", "--fleet", "night"]).cwd(bench.world.home()).run().expect_success();
    insta::assert_snapshot!(bench.stable_text(&elsewhere.stdout), @"
    ok       Database     PostgreSQL [VERSION] at [SOCKET]/.s.PGSQL.[PORT]
    ok       Role         captain owns the fleet: it may work, and also answer, reopen, drain, resume, stop and forget
    ok       Fleet        night: no active worker; 1 of 5 items merged, 4 open
    ok       Remote       not checked
        note: this folder is not in a git repository
        → run this in a clone of the repository to check the remote
    ok       Members      0 workers are active

    All is well.
    ");

    let mut member = bench.open_member();
    for (name, version) in [("one", env!("CARGO_PKG_VERSION")), ("two", "0.0.9")] {
        let report = WorkerReport { plimsoll_version: version.to_owned(), ..WorkerReport::default() };
        member.record_worker_report(name, &report).expect("an answer");
    }
    assert_eq!(doctor_codes(&bench), ["fleet.other_version"]);
    member.claim_next_item("one").expect("an answer").expect("an item");
    bench.sql_client().batch_execute("update plimsoll_night.worker set seen = 0").expect("long ago");
    assert_eq!(doctor_codes(&bench), ["fleet.lost_worker"]);
    bench.sql_client().batch_execute("update plimsoll_night.item set stage = 'open', worker = null, lease_until = null where stage = 'leased'").expect("an item");

    let bench_url = bench.server.socket_connection_string();
    assert_a_false_merge_is_found_and_reopened(&bench, &mut member);
    bench.world.git(&["push", "-q", "origin", "--delete", "plimsoll/night"]);
    assert_eq!(doctor_codes(&bench), ["fleet.no_target"]);
    bench.world.git(&["push", "-q", "origin", "HEAD:refs/heads/plimsoll/night"]);
    assert_eq!(bench.world.git(&["ls-remote", "origin"]), before, "it pushes nothing itself");
    bench.world.git(&["remote", "set-url", "--push", "origin", "../nowhere.git"]);
    assert_eq!(doctor_codes(&bench), ["fleet.no_push"]);
    bench.world.git(&["remote", "set-url", "origin", "../gone.git"]);
    assert_eq!(doctor_codes(&bench), ["fleet.other_remote", "fleet.unreachable", "fleet.no_push"]);
    bench.world.git(&["remote", "remove", "origin"]);
    assert_eq!(doctor_codes(&bench), ["fleet.no_remote"]);
    bench.world.git(&["remote", "add", "origin", "../there.git"]);

    let url_of_role = |role: &str| bench_url.replace(&format!("user={ADMIN_ROLE}"), &format!("user={role}"));
    bench.world.set_env(URL_VARIABLE, url_of_role(MEMBER_ROLE));
    assert_eq!(doctor_codes(&bench), [""; 0]);
    let page = bench.world.plimsoll(&["doctor", "--fleet", "night"]).run().stdout;
    assert!(page.contains("plimsoll_night may work on the fleet as a member"), "{page}");
    bench.sql_client().batch_execute("create role deckhand login").expect("a role");
    bench.world.set_env(URL_VARIABLE, url_of_role("deckhand"));
    assert_eq!(doctor_codes(&bench), ["fleet.rights", "fleet.unknown"]);
    bench.sql_client().batch_execute("grant usage on schema plimsoll_night to deckhand; grant select on plimsoll_night.plan, plimsoll_night.fleet_status, plimsoll_night.fleet_items, plimsoll_night.fleet_workers to deckhand").expect("rights");
    assert_eq!(doctor_codes(&bench), ["fleet.rights"]);
    let page = bench.world.plimsoll(&["doctor", "--fleet", "night"]).run().stdout;
    insta::assert_snapshot!(bench.stable_text(&page), @r#"
    ok       Database     PostgreSQL [VERSION] at [SOCKET]/.s.PGSQL.[PORT]
    PROBLEM  Role         deckhand
        - the role lacks: execute on acquire_merger_lease, execute on claim_item, execute on
          end_if_all_merged and 19 more rights
        → connect as "plimsoll_night", the role of the fleet's members; or as the owner of the fleet:
          grant "plimsoll_night" to "deckhand"
    ok       Fleet        night: no active worker; 1 of 5 items merged, 4 open
    ok       Remote       origin: ../there.git
    ok       Members      0 workers are active

    1 problem: fix this before an unattended run.
    "#);
    bench.sql_client().batch_execute("grant plimsoll_night to deckhand").expect("rights");
    assert_eq!(doctor_codes(&bench), [""; 0]);

    bench.world.set_env(URL_VARIABLE, bench_url);
    bench
        .sql_client()
        .batch_execute("update plimsoll_night.plan set schema_version = 99")
        .expect("a newer version");
    assert_eq!(doctor_codes(&bench), ["fleet.unknown"]);
    bench.sql_client().batch_execute("update plimsoll_night.plan set schema_version = 1").expect("ours");
    bench
        .sql_client()
        .batch_execute(&format!("alter role {ADMIN_ROLE} set default_transaction_read_only = on"))
        .expect("a role");
    assert_eq!(doctor_codes(&bench), ["fleet.read_only"]);
    bench.world.set_env(URL_VARIABLE, "host=127.0.0.1 port=1 user=x dbname=y");
    assert_eq!(doctor_codes(&bench), ["fleet.database"]);
}
