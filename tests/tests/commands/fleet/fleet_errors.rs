//! Whatever is not in order when a fleet is created or looked at: a clear error, and nothing half done.

use super::{Bench, PLAN, refused};
use plimsoll_fleet::URL;
use plimsoll_testkit::postgres::{PASSWORD, Postgres, ROLE, Setup};
use plimsoll_testkit::world::World;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Neither the remote nor the database knows of it.
fn nothing_is_left(bench: &Bench) {
    assert_eq!(bench.there("plimsoll/night"), None);
    let is_there = "select to_regclass('plimsoll.plan') is not null";
    if bench.sql().query_one(is_there, &[]).expect("an answer").get(0) {
        assert_eq!(bench.sql().query("select from plimsoll.plan", &[]).expect("rows").len(), 0);
    }
}

#[test]
fn a_clone_that_is_not_ready_is_named_with_what_to_do() {
    let bench = Bench::new();
    let world = &bench.world;
    let refused_with = |arguments: &[&str], words: &str| {
        refused(&bench.create(arguments), &[words]);
        nothing_is_left(&bench);
    };
    refused(&bench.fleet(&["create", "a/b"]), &["`a/b` cannot be the name of a fleet"]);
    refused_with(&["--todo", "none.md"], "the plan none.md is missing");
    refused_with(&["--objective", "Another task"], "there is a PROMPT.md and an objective");
    refused_with(&["--objective-file", "none.txt"], "none.txt is missing");
    refused_with(&["--remote", "elsewhere"], "the clone has no remote `elsewhere`");
    refused_with(&["--branch", "a..b"], "`a..b` cannot be the name of a branch");
    refused_with(&["--deliver", "merge", "--branch", "x"], "--branch belongs to --deliver branch");
    world.write("fix_plan.md", &PLAN.replace("Write", "Rewrite"));
    refused_with(&[], "there are uncommitted changes");
    world.git(&["commit", "-qam", "Change the plan"]);
    refused_with(&[], "is not on `main` of origin: git push origin main");
    world.git(&["push", "-q", "origin", "main"]);
    world.write("other.md", PLAN);
    refused_with(&["--todo", "other.md"], "the plan other.md is not committed");
    world.write("done.md", "- [x] All of it\n");
    refused_with(&["--todo", "done.md"], "the only item of done.md is ticked");
    world.write("empty.md", "Nothing.\n");
    refused_with(&["--todo", "empty.md"], "the plan empty.md has no item");
    world.git(&["switch", "-qc", "aside"]);
    refused_with(&[], "the branch `aside` is not on origin: git push origin aside");
    world.git(&["switch", "-q", "--detach"]);
    refused_with(&[], "HEAD is detached");
    world.git(&["switch", "-q", "main"]);
    // Somebody else has pushed: for a branch of its own that is no matter.
    world.git(&["commit", "-q", "--allow-empty", "-m", "Of somebody else"]);
    world.git(&["push", "-q", "origin", "main"]);
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    refused_with(&["--deliver", "merge"], "`main` of origin has commits that are not here: git pull");
    bench.create(&[]).expect_success();
    assert_eq!(bench.there("plimsoll/night"), Some(bench.head()));
}

#[test]
fn no_repository_and_no_plan_are_named() {
    let server = Postgres::start(Setup::default());
    let mut plain = World::without_git();
    plain.set_env(URL, server.socket());
    plain.write("PROMPT.md", "Do it.\n");
    refused(
        &plain.plimsoll(&["fleet", "create", "night"]).run(),
        &["workers need a plan, whose items they share"],
    );
    plain.write("fix_plan.md", PLAN);
    refused(&plain.plimsoll(&["fleet", "create", "night"]).run(), &["need a git repository"]);
}

#[test]
fn a_remote_that_is_away_or_rejects_leaves_nothing_behind() {
    let bench = Bench::new();
    let hook = bench.world.path("../there.git/hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho 'branches are made by the release team' >&2\nexit 1\n")
        .expect("a hook");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    refused(
        &bench.create(&[]),
        &["branches are made by the release team", "hint: nothing was put into the database"],
    );
    nothing_is_left(&bench);
    std::fs::remove_file(&hook).expect("our own file");
    // Somebody's branch of that name is not taken over.
    bench.world.git(&["push", "-q", "origin", "HEAD~1:refs/heads/plimsoll/night"]);
    refused(&bench.create(&[]), &["there is a branch `plimsoll/night` on origin already"]);
    bench.world.git(&["push", "-q", "origin", "--delete", "plimsoll/night"]);
    bench.world.git(&["remote", "set-url", "origin", "../nowhere.git"]);
    refused(&bench.create(&[]), &["the remote cannot be reached", "nowhere.git"]);
    bench.world.git(&["remote", "set-url", "origin", "../there.git"]);
    nothing_is_left(&bench);
    // A kill after the push leaves the branch where it would be made: the same command goes on with it.
    bench.world.git(&["push", "-q", "origin", "HEAD:refs/heads/plimsoll/night"]);
    bench.create(&[]).expect_success();
}

#[test]
fn what_is_in_the_address_of_a_remote_stays_out_of_the_database() {
    let bench = Bench::new();
    // git reaches it by another way than it is called.
    let there = bench.world.path("../there.git");
    let instead = format!("url.{}.insteadOf", there.display());
    bench.world.git(&["config", &instead, "https://example.invalid/x.git"]);
    bench.world.git(&["remote", "set-url", "origin", "https://ann:hunter2@example.invalid/x.git"]);
    let away = bench.create(&[]);
    refused(&away, &["the remote cannot be reached"]);
    assert!(!away.stderr.contains("hunter2"), "{away:?}");
    bench.world.git(&["config", &instead, "https://ann:hunter2@example.invalid/x.git"]);
    bench.world.git(&["config", "remote.origin.pushurl", &there.display().to_string()]);
    bench.create(&[]).expect_success();
    let everything: String = bench
        .sql()
        .query_one("select string_agg(plan::text, '') || (select string_agg(event::text, '') from plimsoll.event) from plimsoll.plan", &[])
        .expect("all rows")
        .get(0);
    assert!(!everything.contains("hunter2"), "{everything}");
}

#[test]
fn a_database_that_is_not_as_it_should_be_is_named_and_no_branch_is_made() {
    let server = Postgres::start(Setup { has_tls: true, demands_tls: true, ..Setup::default() });
    let mut bench = Bench::on(server);
    let address = bench.server.address();
    let cases = [
        (
            address.replace(PASSWORD, "hunter2") + " sslmode=require",
            "the user or the password is wrong",
            "check the password",
        ),
        (address.clone() + " sslmode=disable", "it refuses this user, database or connection", "sslmode"),
        (
            address.clone() + " sslmode=verify-full",
            "sslmode=verify-full needs the certificate",
            "hint: set PLIMSOLL",
        ),
        (
            "postgresql://hunter2".to_owned() + ":x@/a@b",
            "the address of the database cannot be read",
            "hint: set",
        ),
        (
            "host=127.0.0.1 port=1 user=x dbname=y".to_owned(),
            "it cannot be reached: nothing listens there",
            "start it, or state its address",
        ),
    ];
    for (url, words, hint) in cases {
        bench.world.set_env(URL, url);
        for verb in [&["create", "night"][..], &["status"], &["log", "night"]] {
            let finished = bench.fleet(verb);
            refused(&finished, &[words, "hint: ", hint]);
            assert!(!finished.stderr.contains("hunter2"), "{finished:?}");
        }
    }
    nothing_is_left(&bench);
    // The server has TLS, and by it everything goes.
    bench.world.set_env(URL, address + " sslmode=require");
    bench.create(&[]).expect_success();
    let socket = bench.server.socket();
    bench.world.set_env(URL, socket);

    bench
        .sql()
        .batch_execute(&format!("alter role {ROLE} set default_transaction_read_only = on"))
        .expect("a role");
    for verb in
        [&["create", "other"][..], &["drain", "night"], &["stop", "night", "--yes"], &["forget", "night"]]
    {
        refused(&bench.fleet(verb), &["it is read-only: a standby, or set so", "hint: name the primary"]);
    }
    bench.fleet(&["status", "night"]).expect_success();
    assert_eq!(bench.there("plimsoll/other"), None);
    let mut administrator = bench.sql();
    administrator.batch_execute("set default_transaction_read_only = off").expect("a setting");
    administrator
        .batch_execute(&format!("alter role {ROLE} reset all; create role deckhand login"))
        .expect("a role");
    bench.world.set_env(URL, bench.server.socket().replace(&format!("user={ROLE}"), "user=deckhand"));
    for verb in [&["create", "other"][..], &["status"], &["stop", "night", "--yes"]] {
        refused(&bench.fleet(verb), &["the role may not do that", "grant the role"]);
    }
    bench.world.set_env(URL, bench.server.socket());
    let newer = format!("insert into plimsoll.migration values ({})", plimsoll_fleet::VERSION + 1);
    bench.sql().batch_execute(&newer).expect("a newer version");
    for verb in [&["create", "other"][..], &["status"], &["log", "night"], &["drain", "night"]] {
        refused(&bench.fleet(verb), &["has tables of version", "hint: install the newer Plimsoll"]);
    }
    assert_eq!(bench.there("plimsoll/other"), None);
}

/// A server that takes connections, and says nothing: the system sees nothing wrong with it.
#[test]
fn a_silent_server_is_waited_for_with_an_end() {
    let mut bench = Bench::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("its number").port();
    bench.world.set_env(URL, format!("host=127.0.0.1 port={port} user=x dbname=y connect_timeout=2"));
    let started: Vec<_> =
        [&["fleet", "status"][..], &["fleet", "create", "night"], &["fleet", "log", "night", "-f"]]
            .map(|words| bench.world.plimsoll(words).spawn())
            .into();
    for running in started {
        let finished = running.wait(Duration::from_secs(60));
        refused(
            &finished,
            &[
                &format!("(PostgreSQL at 127.0.0.1:{port}): no answer came within 2 seconds"),
                "hint: check that",
            ],
        );
    }
    assert_eq!(bench.there("plimsoll/night"), None);
}

#[test]
fn a_program_that_is_not_installed_or_lies_in_the_project_is_not_started() {
    let mut bench = Bench::new();
    // The command alone, in a folder of its own.
    let alone = bench.world.path("../alone");
    std::fs::create_dir(&alone).expect("a folder");
    std::fs::copy(plimsoll_testkit::bin_dir().join("plimsoll"), alone.join("plimsoll")).expect("the command");
    let mine = bench.world.write_program("bin/plimsoll-fleet", "#!/bin/sh\ntouch ran\n");
    let folder = mine.parent().expect("a folder").display().to_string();
    bench.world.set_env("PATH", format!("{folder}:/usr/bin:/bin"));
    let command = alone.join("plimsoll");
    let finished = bench.world.command(&command, &["fleet", "status"]).run();
    refused(
        &finished,
        &["plimsoll-fleet is neither next to plimsoll", "is ignored: inside the project", "hint: install"],
    );
    assert!(!bench.world.exists("ran"));
    // Its own exit code comes through, and its words.
    let other = alone.join("plimsoll-fleet");
    std::fs::write(&other, "#!/bin/sh\necho \"$@\"\nexit 7\n").expect("a program");
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    let finished = bench.world.command(&command, &["fleet", "log", "a b", "-n", "3"]).run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(7), "log a b -n 3\n"), "{finished:?}");
}
