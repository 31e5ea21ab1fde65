//! Whatever is not in order when a fleet is created or looked at: a clear error, and nothing half done.

use super::{Bench, PLAN};
use plimsoll_fleet::URL_VARIABLE;
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
    let create_error = |arguments: &[&str]| {
        let error = bench.error_of(&bench.create(arguments));
        nothing_is_left(&bench);
        error
    };
    insta::assert_snapshot!(bench.error_of(&bench.fleet(&["create", "a/b"])), @"plimsoll: `a/b` cannot be the name of a fleet: at most 60 letters, digits, `-`, `_` and `.`, the first a letter or digit");
    insta::assert_snapshot!(create_error(&["--todo", "none.md"]), @"plimsoll: the plan none.md is missing: write it, or leave out --todo");
    insta::assert_snapshot!(create_error(&["--objective", "Another task"]), @"plimsoll: there is a PROMPT.md and an objective: give one of them (without --objective, PROMPT.md is the task)");
    insta::assert_snapshot!(create_error(&["--objective-file", "none.txt"]), @"plimsoll: the objective file [PROJECT]/none.txt is missing");
    insta::assert_snapshot!(create_error(&["--remote", "elsewhere"]), @"plimsoll: the clone has no remote `elsewhere`: name one of `git remote` with --remote");
    insta::assert_snapshot!(create_error(&["--branch", "a..b"]), @"plimsoll: `a..b` cannot be the name of a branch (see `git check-ref-format --help`)");
    insta::assert_snapshot!(create_error(&["--deliver", "merge", "--branch", "x"]), @"plimsoll: --branch belongs to --deliver branch: with merge the work goes onto the branch that is checked out");
    world.write("fix_plan.md", &PLAN.replace("Write", "Rewrite"));
    insta::assert_snapshot!(create_error(&[]), @"plimsoll: there are uncommitted changes, which no worker would see: commit or stash them (git status shows them), then run this again");
    world.git(&["commit", "-qam", "Change the plan"]);
    insta::assert_snapshot!(create_error(&[]), @"plimsoll: [COMMIT], the commit that is checked out, is not on `main` of origin: git push origin main");
    world.git(&["push", "-q", "origin", "main"]);
    world.write("other.md", PLAN);
    insta::assert_snapshot!(create_error(&["--todo", "other.md"]), @"plimsoll: the plan other.md is not committed, and the machines that join have only what is: git add other.md, commit and push it");
    world.write("done.md", "- [x] All of it\n");
    insta::assert_snapshot!(create_error(&["--todo", "done.md"]), @"plimsoll: the only item of done.md is ticked, so no session has an item to work on: add `- [ ] …` lines; for a run without a plan leave out --todo");
    world.write("empty.md", "Nothing.\n");
    insta::assert_snapshot!(create_error(&["--todo", "empty.md"]), @"plimsoll: the plan empty.md has no item: write `- [ ] …` lines, one for each item; for a run without a plan leave out --todo");
    world.git(&["switch", "-qc", "aside"]);
    insta::assert_snapshot!(create_error(&[]), @"plimsoll: the branch `aside` is not on origin: git push origin aside");
    world.git(&["switch", "-q", "--detach"]);
    insta::assert_snapshot!(create_error(&[]), @"plimsoll: HEAD is detached, so there is no branch to merge the work into: check one out first (git switch BRANCH)");
    world.git(&["switch", "-q", "main"]);
    // Somebody else has pushed: for a branch of its own that is no matter.
    world.git(&["commit", "-q", "--allow-empty", "-m", "Of somebody else"]);
    world.git(&["push", "-q", "origin", "main"]);
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    insta::assert_snapshot!(create_error(&["--deliver", "merge"]), @"plimsoll: `main` of origin has commits that are not here: git pull, then run this again");
    bench.create(&[]).expect_success();
    assert_eq!(bench.there("plimsoll/night"), Some(bench.head()));
}

#[test]
fn no_repository_and_no_plan_are_named() {
    let server = Postgres::start(Setup::default());
    let mut plain = World::without_git();
    plain.set_env(URL_VARIABLE, server.socket());
    plain.write("PROMPT.md", "Do it.\n");
    let create_error = || {
        let finished = plain.plimsoll(&["fleet", "create", "night"]).run();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        plain.stable_text(&finished.stderr)
    };
    insta::assert_snapshot!(create_error(), @"plimsoll: workers need a plan, whose items they share: write fix_plan.md, or name one with --todo");
    plain.write("fix_plan.md", PLAN);
    insta::assert_snapshot!(create_error(), @"plimsoll: workers need a git repository, and [PROJECT] is in none: git init, then commit");
}

#[test]
fn a_remote_that_is_away_or_rejects_leaves_nothing_behind() {
    let bench = Bench::new();
    let create_error = || bench.error_of(&bench.create(&[]));
    let hook = bench.world.path("../there.git/hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho 'branches are made by the release team' >&2\nexit 1\n")
        .expect("a hook");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    insta::assert_snapshot!(create_error(), @"
    plimsoll: the remote rejects it: [remote rejected] (pre-receive hook declined) branches are made by the release team
    hint: nothing was put into the database; see that git push works here, and repeat this
    ");
    nothing_is_left(&bench);
    std::fs::remove_file(&hook).expect("our own file");
    // Somebody's branch of that name is not taken over.
    bench.world.git(&["push", "-q", "origin", "HEAD~1:refs/heads/plimsoll/night"]);
    insta::assert_snapshot!(create_error(), @"plimsoll: there is a branch `plimsoll/night` on origin already, at [COMMIT]: choose another name, or --branch");
    bench.world.git(&["push", "-q", "origin", "--delete", "plimsoll/night"]);
    bench.world.git(&["remote", "set-url", "origin", "../nowhere.git"]);
    insta::assert_snapshot!(create_error(), @"
    plimsoll: the remote cannot be reached: fatal: '../nowhere.git' does not appear to be a git repository fatal: Could not read from remote repository. Please make sure you have the correct access rights and the repository exists.
    hint: nothing was put into the database; see that git push works here, and repeat this
    ");
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
    let error = bench.error_of(&bench.create(&[]));
    // Git's own words follow; they depend on the network.
    assert!(error.starts_with("plimsoll: the remote cannot be reached: fatal: "), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
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
    let mut errors = |url: String| {
        bench.world.set_env(URL_VARIABLE, url);
        let error = |verb: &[&str]| bench.error_of(&bench.fleet(verb));
        let error_of_create = error(&["create", "night"]);
        assert_eq!(error(&["status"]), error_of_create);
        assert_eq!(error(&["log", "night"]), error_of_create);
        error_of_create
    };
    insta::assert_snapshot!(errors(address.replace(PASSWORD, "hunter2") + " sslmode=require"), @r#"
    plimsoll: cannot connect (PostgreSQL at localhost:[PORT]): the user or the password is wrong: password authentication failed for user "captain"
    hint: check the password in PLIMSOLL_DATABASE_URL, PGPASSWORD or ~/.pgpass
    "#);
    let refused = errors(address.clone() + " sslmode=disable");
    // The server's own words depend on its version and on the address of this computer.
    let (before, after) = refused.split_once(": no pg_hba.conf entry ").expect("the server's words");
    let (_, hint) = after.split_once('\n').expect("a hint");
    insta::assert_snapshot!(format!("{before}\n{hint}"), @"
    plimsoll: cannot connect (PostgreSQL at localhost:[PORT]): it refuses this user, database or connection
    hint: check user, database and sslmode, and its pg_hba.conf
    ");
    insta::assert_snapshot!(errors(address.clone() + " sslmode=verify-full"), @"
    plimsoll: sslmode=verify-full needs the certificate that the server's is checked against: name its file in PGSSLROOTCERT, or put it at ~/.postgresql/root.crt
    hint: set PLIMSOLL_DATABASE_URL, or libpq's variables (PGHOST, PGSERVICE, …)
    ");
    insta::assert_snapshot!(errors("postgresql://hunter2:x@/a@b".to_owned()), @"
    plimsoll: the address of the database cannot be read: in postgresql://… encode `@`, `/`, `:`, `?` and `%` in a name or password as %40, %2F, %3A, %3F and %25; in a list put quotes around a value with blanks
    hint: set PLIMSOLL_DATABASE_URL, or libpq's variables (PGHOST, PGSERVICE, …)
    ");
    insta::assert_snapshot!(errors("host=127.0.0.1 port=1 user=x dbname=y".to_owned()), @"
    plimsoll: cannot connect (PostgreSQL at 127.0.0.1:1): it cannot be reached: nothing listens there
    hint: start it, or state its address in PLIMSOLL_DATABASE_URL
    ");
    nothing_is_left(&bench);
    // The server has TLS, and by it everything goes.
    bench.world.set_env(URL_VARIABLE, address + " sslmode=require");
    bench.create(&[]).expect_success();
    let socket = bench.server.socket();
    bench.world.set_env(URL_VARIABLE, socket);

    bench
        .sql()
        .batch_execute(&format!("alter role {ROLE} set default_transaction_read_only = on"))
        .expect("a role");
    for (verb, action) in [
        (&["create", "other"][..], "prepare"),
        (&["drain", "night"], "drain"),
        (&["stop", "night", "--yes"], "stop"),
        (&["forget", "night"], "forget"),
    ] {
        let error =
            bench.error_of(&bench.fleet(verb)).replace(&format!("cannot {action} the fleet"), "cannot …");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"
            plimsoll: cannot … (PostgreSQL at [SOCKET]/.s.PGSQL.[PORT]): it is read-only: a standby, or set so
            hint: name the primary, or add target_session_attrs=read-write
            ");
        }
    }
    bench.fleet(&["status", "night"]).expect_success();
    assert_eq!(bench.there("plimsoll/other"), None);
    let mut administrator = bench.sql();
    administrator.batch_execute("set default_transaction_read_only = off").expect("a setting");
    administrator
        .batch_execute(&format!("alter role {ROLE} reset all; create role deckhand login"))
        .expect("a role");
    bench
        .world
        .set_env(URL_VARIABLE, bench.server.socket().replace(&format!("user={ROLE}"), "user=deckhand"));
    for (verb, action) in [
        (&["create", "other"][..], "prepare"),
        (&["status"], "look at"),
        (&["stop", "night", "--yes"], "look at"),
    ] {
        let error =
            bench.error_of(&bench.fleet(verb)).replace(&format!("cannot {action} the tables"), "cannot …");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"
            plimsoll: cannot … (PostgreSQL at [SOCKET]/.s.PGSQL.[PORT]): the role may not do that: permission denied for schema plimsoll
            hint: grant the role what it lacks: plimsoll doctor --fleet NAME says what that is
            ");
        }
    }
    bench.world.set_env(URL_VARIABLE, bench.server.socket());
    let newer = format!("insert into plimsoll.migration values ({})", plimsoll_fleet::SCHEMA_VERSION + 1);
    bench.sql().batch_execute(&newer).expect("a newer version");
    for verb in [&["create", "other"][..], &["status"], &["log", "night"], &["drain", "night"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(bench.error_of(&bench.fleet(verb)), @"
            plimsoll: the database at [SOCKET]/.s.PGSQL.[PORT] has tables of version 2; this program knows version 1
            hint: install the newer Plimsoll on this computer, too
            ");
        }
    }
    assert_eq!(bench.there("plimsoll/other"), None);
}

/// A server that takes connections, and says nothing: the system sees nothing wrong with it.
#[test]
fn a_silent_server_is_waited_for_with_an_end() {
    let mut bench = Bench::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("its number").port();
    bench
        .world
        .set_env(URL_VARIABLE, format!("host=127.0.0.1 port={port} user=x dbname=y connect_timeout=2"));
    let started: Vec<_> =
        [&["fleet", "status"][..], &["fleet", "create", "night"], &["fleet", "log", "night", "-f"]]
            .map(|words| bench.world.plimsoll(words).spawn())
            .into();
    for running in started {
        let finished = running.wait(Duration::from_secs(60));
        let error = bench.error_of(&finished).replace(&port.to_string(), "[PORT]");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"
            plimsoll: cannot connect (PostgreSQL at 127.0.0.1:[PORT]): no answer came within 2 seconds
            hint: check that PostgreSQL listens there, that it is not stopped, and the address in PLIMSOLL_DATABASE_URL
            ");
        }
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
    insta::assert_snapshot!(bench.error_of(&finished), @"
    plimsoll: plimsoll-fleet is neither next to plimsoll (in [WORLD]/alone) nor on the PATH; [PROJECT]/bin/plimsoll-fleet is ignored: inside the project
    hint: install all programs of one build together (`scripts/install.sh`, or install.sh of a release archive)
    ");
    assert!(!bench.world.exists("ran"));
    // Its own exit code comes through, and its words.
    let other = alone.join("plimsoll-fleet");
    std::fs::write(&other, "#!/bin/sh\necho \"$@\"\nexit 7\n").expect("a program");
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    let finished = bench.world.command(&command, &["fleet", "log", "a b", "-n", "3"]).run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(7), "log a b -n 3\n"), "{finished:?}");
}
