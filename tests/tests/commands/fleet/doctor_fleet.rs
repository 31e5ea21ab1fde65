//! `plimsoll doctor --fleet NAME`: each thing that would stop a member is named, with what to do.

use super::Bench;
use plimsoll_fleet::{URL_VARIABLE, WorkerReport};
use plimsoll_testkit::postgres::ROLE;
use serde_json::Value;

fn codes(bench: &Bench) -> Vec<String> {
    let finished = bench.world.plimsoll(&["doctor", "--fleet", "night", "--json"]).run();
    let document = finished.json();
    let findings = document["findings"].as_array().cloned().unwrap_or_default();
    let has_problem = findings.iter().any(|finding| finding["severity"] == "problem");
    assert_eq!(finished.code, Some(i32::from(has_problem)), "{finished:?}");
    let all_say = |finding: &Value| !finding["todo"].as_str().unwrap_or_default().is_empty();
    assert!(findings.iter().all(all_say), "{document}");
    findings.iter().map(|finding| finding["code"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_fleet_is_examined_from_its_database_to_its_members() {
    let mut bench = Bench::new();
    assert_eq!(codes(&bench), ["fleet.no_tables", "fleet.unknown"]);
    bench.create(&[]).expect_success();
    let before = bench.world.git(&["ls-remote", "origin"]);
    assert_eq!(codes(&bench), [""; 0]);
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

    let mut member = bench.member();
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
    assert_eq!(codes(&bench), ["fleet.other_version"]);
    member.claim_next_item("one/1").expect("an answer").expect("an item");
    bench.sql().batch_execute("update plimsoll.worker set seen = 0").expect("long ago");
    assert_eq!(codes(&bench), ["fleet.lost_worker"]);
    bench.sql().batch_execute("update plimsoll.item set stage = 'open', worker = null, lease_until = null where stage = 'leased'").expect("an item");

    bench.world.git(&["push", "-q", "origin", "--delete", "plimsoll/night"]);
    assert_eq!(codes(&bench), ["fleet.no_target"]);
    bench.world.git(&["push", "-q", "origin", "HEAD:refs/heads/plimsoll/night"]);
    assert_eq!(bench.world.git(&["ls-remote", "origin"]), before, "it pushes nothing itself");
    bench.world.git(&["remote", "set-url", "--push", "origin", "../nowhere.git"]);
    assert_eq!(codes(&bench), ["fleet.no_push"]);
    bench.world.git(&["remote", "set-url", "origin", "../gone.git"]);
    assert_eq!(codes(&bench), ["fleet.other_remote", "fleet.unreachable", "fleet.no_push"]);
    bench.world.git(&["remote", "remove", "origin"]);
    assert_eq!(codes(&bench), ["fleet.no_remote"]);
    bench.world.git(&["remote", "add", "origin", "../there.git"]);

    let as_deckhand = bench.server.socket().replace(&format!("user={ROLE}"), "user=deckhand");
    bench.sql().batch_execute("create role deckhand login").expect("a role");
    bench.world.set_env(URL_VARIABLE, as_deckhand);
    assert_eq!(codes(&bench), ["fleet.rights", "fleet.unknown"]);
    bench.sql().batch_execute("grant usage on schema plimsoll to deckhand; grant select on all tables in schema plimsoll to deckhand").expect("rights");
    assert_eq!(codes(&bench), ["fleet.rights"]);
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

    bench.world.set_env(URL_VARIABLE, bench.server.socket());
    bench.sql().batch_execute("insert into plimsoll.migration values (99)").expect("a newer version");
    assert_eq!(codes(&bench), ["fleet.newer_tables", "fleet.unknown"]);
    bench.sql().batch_execute("delete from plimsoll.migration where version = 99").expect("ours");
    bench
        .sql()
        .batch_execute(&format!("alter role {ROLE} set default_transaction_read_only = on"))
        .expect("a role");
    assert_eq!(codes(&bench), ["fleet.read_only"]);
    bench.world.set_env(URL_VARIABLE, "host=127.0.0.1 port=1 user=x dbname=y");
    assert_eq!(codes(&bench), ["fleet.database"]);
}
