//! Errors when a fleet is created or shown: each has a clear message and leaves nothing half done.

use super::{FleetTestBench, PLAN};
use plimsoll_fleet::URL_VARIABLE;
use plimsoll_testkit::postgres::{ADMIN_ROLE, PASSWORD, Postgres, ServerSetup};
use plimsoll_testkit::world::World;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Asserts that neither the remote nor the database knows the fleet.
fn assert_nothing_is_left(bench: &FleetTestBench) {
    assert_eq!(bench.remote_branch_commit("plimsoll/night"), None);
    let table_exists_query = "select to_regclass('plimsoll_night.plan') is not null";
    if bench.sql_client().query_one(table_exists_query, &[]).expect("an answer").get(0) {
        assert_eq!(bench.sql_client().query("select from plimsoll_night.plan", &[]).expect("rows").len(), 0);
    }
}

#[test]
fn fleet_create_names_what_is_wrong_with_the_clone_and_what_to_do() {
    let bench = FleetTestBench::new();
    let world = &bench.world;
    let create_error = |arguments: &[&str]| {
        let error = bench.expect_error(&bench.create_fleet(arguments));
        assert_nothing_is_left(&bench);
        error
    };
    insta::assert_snapshot!(bench.expect_error(&bench.run_fleet(&["create", "a/b"])), @"error: `a/b` cannot be the name of a fleet: a name has at most 50 letters, digits, `-`, `_` and `.`, and begins with a letter or digit");
    insta::assert_snapshot!(create_error(&["--todo", "none.md"]), @"error: the plan none.md is missing: write it, or leave out --todo");
    insta::assert_snapshot!(create_error(&["--objective", "Another task"]), @"error: there is a PROMPT.md and an objective: give one of them (without --objective, PROMPT.md is the task)");
    insta::assert_snapshot!(create_error(&["--objective-file", "none.txt"]), @"error: the objective file [PROJECT]/none.txt is missing");
    insta::assert_snapshot!(create_error(&["--remote", "elsewhere"]), @"error: the clone has no remote `elsewhere`: name one of `git remote` with --remote");
    insta::assert_snapshot!(create_error(&["--branch", "a..b"]), @"error: `a..b` cannot be the name of a branch (see `git check-ref-format --help`)");
    insta::assert_snapshot!(create_error(&["--deliver", "merge", "--branch", "x"]), @"error: --branch belongs to --deliver branch: --deliver merge uses the branch that is checked out");
    world.write("fix_plan.md", &PLAN.replace("Write", "Rewrite"));
    insta::assert_snapshot!(create_error(&[]), @"error: there are uncommitted changes, which workers would not see: commit or stash them, then run this again");
    world.git(&["commit", "-qam", "Change the plan"]);
    insta::assert_snapshot!(create_error(&[]), @"error: [COMMIT], the commit that is checked out, is not on `main` of origin: git push origin main");
    world.git(&["push", "-q", "origin", "main"]);
    world.write("PROMPT.md", "Another task.\n");
    insta::assert_snapshot!(create_error(&[]), @"error: PROMPT.md has uncommitted changes, which machines that join do not have: commit and push it");
    world.git(&["checkout", "-q", "PROMPT.md"]);
    // It is the branch of the user, at the commit where the fleet would begin.
    insta::assert_snapshot!(create_error(&["--branch", "main"]), @"error: the branch `main` already exists on origin, at [COMMIT]: choose another name, or --branch");
    let empty_command = bench.create_fleet(&["--verify", " "]);
    assert_eq!(empty_command.code, Some(2), "{empty_command:?}");
    assert!(empty_command.stderr.contains("a command, such as 'npm test'"), "{empty_command:?}");
    world.write("other.md", PLAN);
    insta::assert_snapshot!(create_error(&["--todo", "other.md"]), @"error: the plan other.md is not committed, so machines that join do not have it: git add other.md, commit and push it");
    world.write("done.md", "- [x] All of it\n");
    insta::assert_snapshot!(create_error(&["--todo", "done.md"]), @"error: the only item of done.md is ticked, so no session has an item to work on: add `- [ ] …` lines; for a run without a plan leave out --todo");
    world.write("empty.md", "Nothing.\n");
    insta::assert_snapshot!(create_error(&["--todo", "empty.md"]), @"error: the plan empty.md has no item: write `- [ ] …` lines, one for each item; for a run without a plan leave out --todo");
    world.git(&["switch", "-qc", "aside"]);
    insta::assert_snapshot!(create_error(&[]), @"error: the branch `aside` is not on origin: git push origin aside");
    world.git(&["switch", "-q", "--detach"]);
    insta::assert_snapshot!(create_error(&[]), @"error: HEAD is detached, so there is no branch to merge the work into: check one out first (git switch BRANCH)");
    world.git(&["switch", "-q", "main"]);
    // Another user has pushed; for a fleet with a branch of its own this does not matter.
    world.git(&["commit", "-q", "--allow-empty", "-m", "Of somebody else"]);
    world.git(&["push", "-q", "origin", "main"]);
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    insta::assert_snapshot!(create_error(&["--deliver", "merge"]), @"error: `main` of origin has commits that are not here: git pull, then run this again");
    bench.create_fleet(&[]).expect_success();
    assert_eq!(bench.remote_branch_commit("plimsoll/night"), Some(bench.head_commit()));
    // Another fleet with the same branch.
    bench.run_fleet(&["create", "day", "--branch", "plimsoll/dusk"]).expect_success();
    insta::assert_snapshot!(bench.expect_error(&bench.run_fleet(&["create", "dusk"])), @"
    error: the fleet `day` merges its work into `plimsoll/dusk` of the same remote
    hint: choose another branch with --branch
    ");
}

#[test]
fn fleet_create_requires_a_git_repository() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let mut plain = World::without_git();
    plain.set_env(URL_VARIABLE, server.socket_connection_string());
    plain.write("PROMPT.md", "Do it.\n");
    let create_error = || {
        let finished = plain.plimsoll(&["fleet", "create", "night"]).run();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        plain.replace_varying_parts_with_placeholders(&finished.stderr)
    };
    insta::assert_snapshot!(create_error(), @"error: workers need a git repository, but [PROJECT] is not in one: git init, then commit");
}

#[test]
fn an_unreachable_or_rejecting_remote_leaves_nothing_behind() {
    let bench = FleetTestBench::new();
    let create_error = || bench.expect_error(&bench.create_fleet(&[]));
    let hook = bench.world.path("../there.git/hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho 'branches are made by the release team' >&2\nexit 1\n")
        .expect("a hook");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    insta::assert_snapshot!(create_error(), @"
    error: the remote rejects it: [remote rejected] (pre-receive hook declined) branches are made by the release team
    hint: nothing was written to the database; check that git push works here, then run this again
    ");
    assert_nothing_is_left(&bench);
    std::fs::remove_file(&hook).expect("our own file");
    // An existing branch of that name is not taken over.
    bench.world.git(&["push", "-q", "origin", "HEAD~1:refs/heads/plimsoll/night"]);
    insta::assert_snapshot!(create_error(), @"error: the branch `plimsoll/night` already exists on origin, at [COMMIT]: choose another name, or --branch");
    bench.world.git(&["push", "-q", "origin", "--delete", "plimsoll/night"]);
    bench.world.git(&["remote", "set-url", "origin", "../nowhere.git"]);
    insta::assert_snapshot!(create_error(), @"
    error: the remote cannot be reached: fatal: '../nowhere.git' does not appear to be a git repository fatal: Could not read from remote repository. Please make sure you have the correct access rights and the repository exists.
    hint: nothing was written to the database; check that git push works here, then run this again
    ");
    bench.world.git(&["remote", "set-url", "origin", "../there.git"]);
    assert_nothing_is_left(&bench);
    // A kill after the push leaves the branch where it would be created: the same command then continues with it.
    bench.world.git(&["push", "-q", "origin", "HEAD:refs/heads/plimsoll/night"]);
    bench.create_fleet(&[]).expect_success();
}

#[test]
fn credentials_in_a_remote_url_stay_out_of_the_database() {
    let bench = FleetTestBench::new();
    // git rewrites this URL to the path of the local repository.
    let remote_path = bench.world.path("../there.git");
    let url_setting = format!("url.{}.insteadOf", remote_path.display());
    bench.world.git(&["config", &url_setting, "https://example.invalid/x.git"]);
    bench.world.git(&["remote", "set-url", "origin", "https://ann:hunter2@example.invalid/x.git"]);
    let error = bench.expect_error(&bench.create_fleet(&[]));
    // Git's own message follows; it depends on the network.
    assert!(error.starts_with("error: the remote cannot be reached: fatal: "), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    bench.world.git(&["config", &url_setting, "https://ann:hunter2@example.invalid/x.git"]);
    bench.world.git(&["config", "remote.origin.pushurl", &remote_path.display().to_string()]);
    bench.create_fleet(&[]).expect_success();
    let all_rows: String = bench
        .sql_client()
        .query_one("select string_agg(plan::text, '') || (select string_agg(event::text, '') from plimsoll_night.event) from plimsoll_night.plan", &[])
        .expect("all rows")
        .get(0);
    assert!(!all_rows.contains("hunter2"), "{all_rows}");
}

#[test]
fn a_database_error_is_named_and_no_branch_is_created() {
    let server = Postgres::create_cluster_and_start(ServerSetup {
        has_tls: true,
        requires_tls: true,
        ..ServerSetup::default()
    });
    let mut bench = FleetTestBench::with_server(server);
    let address = bench.server.tcp_connection_string();
    let mut error_with_url = |url: String| {
        bench.world.set_env(URL_VARIABLE, url);
        let error = |verb: &[&str]| bench.expect_error(&bench.run_fleet(verb));
        let error_of_create = error(&["create", "night"]);
        assert_eq!(error(&["status"]), error_of_create);
        assert_eq!(error(&["log", "night"]), error_of_create);
        error_of_create
    };
    insta::assert_snapshot!(error_with_url(address.replace(PASSWORD, "hunter2") + " sslmode=require"), @r#"
    error: cannot connect (PostgreSQL at localhost:[PORT]): the user or the password is wrong: password authentication failed for user "captain"
    hint: check the password in PLIMSOLL_DATABASE_URL, PGPASSWORD or ~/.pgpass
    "#);
    let refused = error_with_url(address.clone() + " sslmode=disable");
    // The server's own message depends on its version and on the address of this computer.
    let (before, after) = refused.split_once(": no pg_hba.conf entry ").expect("the server's words");
    let (_, hint) = after.split_once('\n').expect("a hint");
    insta::assert_snapshot!(format!("{before}\n{hint}"), @"
    error: cannot connect (PostgreSQL at localhost:[PORT]): it refuses this user, database or connection
    hint: check user, database and sslmode, and its pg_hba.conf
    ");
    insta::assert_snapshot!(error_with_url(address.clone() + " sslmode=verify-full"), @"
    error: sslmode=verify-full needs the certificate that the server's is checked against: name its file in PGSSLROOTCERT, or put it at ~/.postgresql/root.crt
    hint: set PLIMSOLL_DATABASE_URL, or libpq's variables (PGHOST, PGSERVICE, …)
    ");
    insta::assert_snapshot!(error_with_url("postgresql://hunter2:x@/a@b".to_owned()), @"
    error: the address of the database cannot be read: in postgresql://… encode `@`, `/`, `:`, `?` and `%` in a name or password as %40, %2F, %3A, %3F and %25; in a list put quotes around a value with blanks
    hint: set PLIMSOLL_DATABASE_URL, or libpq's variables (PGHOST, PGSERVICE, …)
    ");
    insta::assert_snapshot!(error_with_url("host=127.0.0.1 port=1 user=x dbname=y".to_owned()), @"
    error: cannot connect (PostgreSQL at 127.0.0.1:1): it cannot be reached: nothing listens there
    hint: start it, or state its address in PLIMSOLL_DATABASE_URL
    ");
    assert_nothing_is_left(&bench);
    // The server has TLS, and with it everything works.
    bench.world.set_env(URL_VARIABLE, address + " sslmode=require");
    bench.create_fleet(&[]).expect_success();
    let socket = bench.server.socket_connection_string();
    bench.world.set_env(URL_VARIABLE, socket);

    bench
        .sql_client()
        .batch_execute(&format!("alter role {ADMIN_ROLE} set default_transaction_read_only = on"))
        .expect("a role");
    for (verb, action) in [
        (&["create", "other"][..], "prepare"),
        (&["drain", "night"], "drain"),
        (&["stop", "night", "--yes"], "stop"),
        (&["forget", "night", "--yes"], "forget"),
    ] {
        let error = bench
            .expect_error(&bench.run_fleet(verb))
            .replace(&format!("cannot {action} the fleet"), "cannot …");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"
            error: cannot … (PostgreSQL at [SOCKET]/.s.PGSQL.[PORT]): it is read-only: a standby, or set so
            hint: name the primary, or add target_session_attrs=read-write
            ");
        }
    }
    bench.run_fleet(&["status", "night"]).expect_success();
    assert_eq!(bench.remote_branch_commit("plimsoll/other"), None);
    let mut administrator = bench.sql_client();
    administrator.batch_execute("set default_transaction_read_only = off").expect("a setting");
    administrator
        .batch_execute(&format!("alter role {ADMIN_ROLE} reset all; create role deckhand login"))
        .expect("a role");
    bench.world.set_env(
        URL_VARIABLE,
        bench.server.socket_connection_string().replace(&format!("user={ADMIN_ROLE}"), "user=deckhand"),
    );
    insta::assert_snapshot!(bench.expect_error(&bench.run_fleet(&["create", "other"])), @"
    error: cannot prepare the fleet (PostgreSQL at [SOCKET]/.s.PGSQL.[PORT]): the role may not do that: permission denied to create role
    hint: give the role the rights to create schemas and roles: grant create on database … to …; alter role … createrole
    ");
    insta::assert_snapshot!(bench.expect_error(&bench.run_fleet(&["status", "night"])), @"
    error: cannot open the fleet (PostgreSQL at [SOCKET]/.s.PGSQL.[PORT]): the role may not do that: permission denied for schema plimsoll_night
    hint: connect as plimsoll_night, the role of the fleet's members, or let its owner grant that role to yours
    ");
    let member_url =
        bench.server.socket_connection_string().replace(&format!("user={ADMIN_ROLE}"), "user=plimsoll_night");
    bench.world.set_env(URL_VARIABLE, member_url);
    bench.run_fleet(&["status", "night"]).expect_success();
    for (verb, action) in [
        (&["drain", "night"][..], "drain the fleet"),
        (&["resume", "night"], "resume the fleet"),
        (&["stop", "night", "--yes"], "stop the fleet"),
        (&["answer", "night", "3", "8042"], "answer a question"),
        (&["reopen", "night", "3"], "open an item again"),
        (&["forget", "night", "--yes"], "forget the fleet"),
    ] {
        let error = bench.expect_error(&bench.run_fleet(verb));
        assert!(error.starts_with(&format!("error: cannot {action} (PostgreSQL at [SOCKET]")), "{error}");
        assert!(error.contains("only the owner of the fleet may do that"), "{error}");
    }
    bench.world.set_env(URL_VARIABLE, bench.server.socket_connection_string());
    let newer =
        format!("update plimsoll_night.plan set schema_version = {}", plimsoll_fleet::SCHEMA_VERSION + 1);
    bench.sql_client().batch_execute(&newer).expect("a newer version");
    for verb in [&["status", "night"][..], &["log", "night"], &["drain", "night"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(bench.expect_error(&bench.run_fleet(verb)), @"
            error: the tables of the fleet `night` have version 2, and this program supports version 1
            hint: install the newer Plimsoll on this computer, too
            ");
        }
    }
    assert_eq!(bench.remote_branch_commit("plimsoll/other"), None);
}

/// The server accepts connections and sends nothing: the operating system sees nothing wrong with it.
#[test]
fn a_silent_server_makes_commands_time_out() {
    let mut bench = FleetTestBench::new();
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
        let finished = running.wait_or_kill_and_panic(Duration::from_secs(60));
        let error = bench.expect_error(&finished).replace(&port.to_string(), "[PORT]");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"
            error: cannot connect (PostgreSQL at 127.0.0.1:[PORT]): no answer came within 2 seconds
            hint: check that PostgreSQL listens there, that it is not stopped, and the address in PLIMSOLL_DATABASE_URL
            ");
        }
    }
    assert_eq!(bench.remote_branch_commit("plimsoll/night"), None);
}

#[test]
fn a_missing_fleet_program_is_named_and_one_in_the_project_ignored() {
    let mut bench = FleetTestBench::new();
    // The command alone, in a folder of its own.
    let program_folder = bench.world.path("../alone");
    std::fs::create_dir(&program_folder).expect("a folder");
    std::fs::copy(
        plimsoll_testkit::find_or_build_bin_dir().join("plimsoll"),
        program_folder.join("plimsoll"),
    )
    .expect("the command");
    let project_program = bench.world.write_program("bin/plimsoll-fleet", "#!/bin/sh\ntouch ran\n");
    let folder = project_program.parent().expect("a folder").display().to_string();
    bench.world.set_env("PATH", format!("{folder}:/usr/bin:/bin"));
    let command = program_folder.join("plimsoll");
    let finished = bench.world.command(&command, &["fleet", "status"]).run();
    insta::assert_snapshot!(bench.expect_error(&finished), @"
    error: plimsoll-fleet is neither next to plimsoll (in [WORLD]/alone) nor on the PATH; [PROJECT]/bin/plimsoll-fleet is ignored: inside the project
    hint: install all programs of one build together (`scripts/install.sh`, or install.sh of a release archive)
    ");
    assert!(!bench.world.exists("ran"));
    // The exit code and the output of the program are passed on.
    let fleet_program = program_folder.join("plimsoll-fleet");
    std::fs::write(&fleet_program, "#!/bin/sh\necho \"$@\"\nexit 7\n").expect("a program");
    std::fs::set_permissions(&fleet_program, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    let finished = bench.world.command(&command, &["fleet", "log", "a b", "-n", "3"]).run();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(7), "log a b -n 3\n"), "{finished:?}");
}
