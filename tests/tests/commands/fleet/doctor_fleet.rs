//! `plimsoll doctor --fleet NAME` names each problem that would stop a member, with what to do about it.

use super::FleetTestBench;
use plimsoll_fleet::{URL_VARIABLE, WorkerReport};
use plimsoll_testkit::postgres::ADMIN_ROLE;
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

#[test]
fn doctor_checks_a_fleet_from_its_database_to_its_members() {
    let mut bench = FleetTestBench::new();
    assert_eq!(doctor_codes(&bench), ["fleet.no_tables", "fleet.unknown"]);
    bench.create_fleet(&[]).expect_success();
    let before = bench.world.git(&["ls-remote", "origin"]);
    assert_eq!(doctor_codes(&bench), [""; 0]);
    let page = bench.world.plimsoll(&["doctor", "--fleet", "night"]).run().expect_success().stdout;
    insta::assert_snapshot!(bench.stable_text(&page), @"
    ok       Database     PostgreSQL [VERSION] at [SOCKET]/.s.PGSQL.[PORT], tables of version 1
    ok       Role         captain may create and forget fleets, too
    ok       Fleet        night: no worker is there; 1 of 5 items merged, 4 open
    ok       Remote       origin: ../there.git
    ok       Members      0 workers are there

    All is well.
    ");
    let elsewhere =
        bench.world.plimsoll(&["doctor", "--fleet", "night"]).cwd(bench.world.home()).run().expect_success();
    insta::assert_snapshot!(bench.stable_text(&elsewhere.stdout), @"
    ok       Database     PostgreSQL [VERSION] at [SOCKET]/.s.PGSQL.[PORT], tables of version 1
    ok       Role         captain may create and forget fleets, too
    ok       Fleet        night: no worker is there; 1 of 5 items merged, 4 open
    ok       Remote       not checked
        note: this folder is in no git repository
        → run this in a clone of the repository to have the remote checked
    ok       Members      0 workers are there

    All is well.
    ");

    let mut member = bench.open_member();
    for (name, version) in [("one/1", env!("CARGO_PKG_VERSION")), ("two/1", "0.0.9")] {
        let (name, version) = (name.to_owned(), version.to_owned());
        member
            .record_worker_report(&WorkerReport {
                worker_name: name,
                plimsoll_version: version,
                ..WorkerReport::default()
            })
            .expect("an answer");
    }
    assert_eq!(doctor_codes(&bench), ["fleet.other_version"]);
    member.claim_next_item("one/1").expect("an answer").expect("an item");
    bench.sql_client().batch_execute("update plimsoll.worker set seen = 0").expect("long ago");
    assert_eq!(doctor_codes(&bench), ["fleet.lost_worker"]);
    bench.sql_client().batch_execute("update plimsoll.item set stage = 'open', worker = null, lease_until = null where stage = 'leased'").expect("an item");

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

    let deckhand_url =
        bench.server.socket_connection_string().replace(&format!("user={ADMIN_ROLE}"), "user=deckhand");
    bench.sql_client().batch_execute("create role deckhand login").expect("a role");
    bench.world.set_env(URL_VARIABLE, deckhand_url);
    assert_eq!(doctor_codes(&bench), ["fleet.rights", "fleet.unknown"]);
    bench.sql_client().batch_execute("grant usage on schema plimsoll to deckhand; grant select on all tables in schema plimsoll to deckhand").expect("rights");
    assert_eq!(doctor_codes(&bench), ["fleet.rights"]);
    let page = bench.world.plimsoll(&["doctor", "--fleet", "night"]).run().stdout;
    insta::assert_snapshot!(bench.stable_text(&page), @"
    ok       Database     PostgreSQL [VERSION] at [SOCKET]/.s.PGSQL.[PORT], tables of version 1
    PROBLEM  Role         deckhand
        - the role lacks: update on plimsoll.plan, update on plimsoll.item, insert on plimsoll.worker,
          update on plimsoll.worker, insert on plimsoll.event
        → as the owner of the tables: grant update on plimsoll.plan, update on plimsoll.item, insert on
          plimsoll.worker, update on plimsoll.worker, insert on plimsoll.event to deckhand
          (docs/fleet.md has all)
    ok       Fleet        night: no worker is there; 1 of 5 items merged, 4 open
    ok       Remote       origin: ../there.git
    ok       Members      0 workers are there

    1 problem: fix this before an unattended run.
    ");

    bench.world.set_env(URL_VARIABLE, bench.server.socket_connection_string());
    bench.sql_client().batch_execute("insert into plimsoll.migration values (99)").expect("a newer version");
    assert_eq!(doctor_codes(&bench), ["fleet.newer_tables", "fleet.unknown"]);
    bench.sql_client().batch_execute("delete from plimsoll.migration where version = 99").expect("ours");
    bench
        .sql_client()
        .batch_execute(&format!("alter role {ADMIN_ROLE} set default_transaction_read_only = on"))
        .expect("a role");
    assert_eq!(doctor_codes(&bench), ["fleet.read_only"]);
    bench.world.set_env(URL_VARIABLE, "host=127.0.0.1 port=1 user=x dbname=y");
    assert_eq!(doctor_codes(&bench), ["fleet.database"]);
}
