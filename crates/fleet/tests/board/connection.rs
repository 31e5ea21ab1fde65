//! How the database is reached, by everything that libpq's users say, and what is said when it is not.

use crate::harness::{database, items, plan, settings};
use plimsoll_fleet::{Database, Fault, Fleet, FleetError, URL, VERSION};
use plimsoll_testkit::postgres::{PASSWORD, Postgres, ROLE, Setup};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What a user says by variables.
fn connected(said: &[(&str, &str)]) -> Result<Database, FleetError> {
    Database::connect(settings(said)?)
}

fn fault(said: &[(&str, &str)]) -> Fault {
    match connected(said) {
        Err(FleetError::Database { fault, .. }) => fault,
        Err(other) => panic!("{said:?}: {other}"),
        Ok(_) => panic!("{said:?}: it is connected"),
    }
}

/// How the server sees its connections over TCP: `t` for one with TLS.
fn has_tls(server: &Postgres) -> bool {
    let mut client = crate::harness::client(server);
    let rows = client
        .query("select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'plimsoll-fleet'", &[])
        .expect("the server's view");
    assert_eq!(rows.len(), 1);
    rows[0].get(0)
}

#[test]
fn a_server_with_tls_is_reached_in_each_mode_and_only_if_it_is_trusted() {
    let server = Postgres::start(Setup { has_tls: true, ..Setup::default() });
    let address = server.address();
    let root = server.root_certificate().display().to_string();
    // A certificate of the right kind by somebody else; and the server's own, as it would be copied to a client.
    let other = Postgres::start(Setup { has_tls: true, ..Setup::default() });
    let stranger = other.root_certificate().display().to_string();
    let own = server.folder().join("server.crt").display().to_string();
    for (more, tls) in [
        ("sslmode=disable", Ok(false)),
        ("sslmode=allow", Ok(false)),
        ("sslmode=prefer", Ok(true)),
        ("sslmode=require", Ok(true)),
        ("sslmode=require channel_binding=require", Ok(true)),
        (&*format!("sslmode=require sslrootcert={root}"), Ok(true)),
        (&format!("sslmode=verify-ca sslrootcert={root}"), Ok(true)),
        (&format!("sslmode=verify-full sslrootcert={root}"), Ok(true)),
        (&format!("sslmode=verify-full sslrootcert={own}"), Ok(true)),
        // The certificate is for localhost and 127.0.0.1 alone.
        (
            &format!("sslmode=verify-full sslrootcert={root} host=elsewhere hostaddr=127.0.0.1"),
            Err("elsewhere"),
        ),
        (&format!("sslmode=verify-ca sslrootcert={root} host=elsewhere hostaddr=127.0.0.1"), Ok(true)),
        (&format!("sslmode=require sslrootcert={stranger}"), Err("invalid peer certificate")),
        (&format!("sslmode=verify-full sslrootcert={stranger}"), Err("invalid peer certificate")),
        // What is only preferred goes on without.
        (&format!("sslmode=prefer sslrootcert={stranger}"), Ok(false)),
    ] {
        let said = format!("{address} {more}");
        let said = [(URL, said.as_str())];
        match tls {
            Ok(expected) => {
                let _database = connected(&said).unwrap_or_else(|error| panic!("{more}: {error}"));
                assert_eq!(has_tls(&server), expected, "{more}");
            }
            Err(words) => match fault(&said) {
                Fault::Untrusted(why) => assert!(why.contains(words), "{more}: {why}"),
                other => panic!("{more}: {other}"),
            },
        }
    }
}

#[test]
fn tls_that_one_side_demands_and_the_other_has_not_is_named() {
    let without = Postgres::start(Setup::default());
    let demanding = Postgres::start(Setup { has_tls: true, demands_tls: true, ..Setup::default() });
    for mode in ["require", "verify-full sslrootcert=/etc/hostname"] {
        let said = format!("{} sslmode={mode}", without.address());
        let found = connected(&[(URL, &said)]).map(|_| ()).expect_err(mode);
        let is_no_tls = matches!(found, FleetError::Database { fault: Fault::NoTls, .. });
        assert!(is_no_tls || matches!(found, FleetError::Trust(_)), "{mode}: {found}");
    }
    for mode in ["allow", "prefer"] {
        connected(&[(URL, &format!("{} sslmode={mode}", without.address()))]).expect(mode);
    }
    for (mode, reached) in [("disable", false), ("allow", true), ("prefer", true), ("require", true)] {
        let said = format!("{} sslmode={mode}", demanding.address());
        assert_eq!(connected(&[(URL, &said)]).is_ok(), reached, "{mode}");
    }
    let said = format!("{} sslmode=disable", demanding.address());
    match fault(&[(URL, &said)]) {
        Fault::Refused(why) => assert!(why.contains("no encryption"), "{why}"),
        other => panic!("{other}"),
    }
    // A wrong password is what is said, also where the way without TLS was refused first.
    let said = said.replace(PASSWORD, "hunter2").replace("disable", "allow");
    assert!(matches!(fault(&[(URL, &said)]), Fault::Password(_)));
}

#[test]
fn passwords_come_from_where_libpq_has_them_and_stand_in_no_message() {
    let server = Postgres::start(Setup::default());
    let home = tempfile::tempdir().expect("a home");
    let port = server.port().to_string();
    let where_to = |home: &Path| {
        vec![
            ("HOME", home.display().to_string()),
            ("PGHOST", "127.0.0.1".to_owned()),
            ("PGPORT", port.clone()),
            ("PGUSER", ROLE.to_owned()),
            ("PGDATABASE", "postgres".to_owned()),
        ]
    };
    let with = |more: &[(&'static str, &str)]| {
        let mut said = where_to(home.path());
        said.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let said: Vec<(&str, &str)> = said.iter().map(|(name, value)| (*name, value.as_str())).collect();
        connected(&said)
    };
    let words = |found: Result<Database, FleetError>| {
        let error = found.map(|_| ()).expect_err("no way in");
        format!("{error} / {} / {error:?}", error.hint().unwrap_or_default())
    };
    let none = words(with(&[]));
    assert!(none.contains("asks for a password, and none is set"), "{none}");
    let wrong = words(with(&[("PGPASSWORD", "hunter2")]));
    assert!(wrong.contains("the user or the password is wrong") && !wrong.contains("hunter2"), "{wrong}");
    assert!(wrong.contains(&format!("127.0.0.1:{port}")), "{wrong}");
    with(&[("PGPASSWORD", PASSWORD)]).expect("the password in a variable");

    let file = home.path().join(".pgpass");
    let escaped = PASSWORD.replace('\\', "\\\\").replace(':', "\\:");
    fs::write(&file, format!("127.0.0.1:{port}:*:{ROLE}:{escaped}\n")).expect("a password file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("ours");
    let open = words(with(&[]));
    assert!(open.contains("chmod 600") && open.contains(".pgpass") && !open.contains(PASSWORD), "{open}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("ours");
    with(&[]).expect("the password in the file");
    with(&[("PGPASSFILE", "/nowhere")]).expect_err("another file");

    // A service says more than the variables, and the address more than the service.
    let services = home.path().join(".pg_service.conf");
    fs::write(&services, format!("[board]\nport={port}\nuser={ROLE}\n[off]\nport=1\n")).expect("services");
    with(&[("PGPORT", "1"), ("PGSERVICE", "board")]).expect("the service's port");
    with(&[(URL, &format!("service=off port={port}"))]).expect("the address's port");
    assert!(matches!(fault_of(with(&[("PGSERVICE", "off")])), Fault::Unreachable(_)));
    let missing = words(with(&[("PGSERVICE", "none")]));
    assert!(
        missing.contains("PGSERVICE names is not in") && missing.contains(".pg_service.conf"),
        "{missing}"
    );
}

fn fault_of(found: Result<Database, FleetError>) -> Fault {
    match found {
        Err(FleetError::Database { fault, .. }) => fault,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is connected"),
    }
}

#[test]
fn who_is_not_there_or_not_known_is_named() {
    let server = Postgres::start(Setup::default());
    // Nobody listens where somebody has just let go.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    let away = format!("host=127.0.0.1 port={free} user=x password=hunter2");
    assert!(matches!(fault(&[(URL, &away)]), Fault::Unreachable(_)));
    let no_host = "host=no-such-host.invalid user=x password=hunter2";
    assert!(matches!(fault(&[(URL, no_host)]), Fault::Unreachable(_)));
    let no_folder = "host=/nowhere user=x password=hunter2";
    assert!(matches!(fault(&[(URL, no_folder)]), Fault::Unreachable(_)));
    let no_database = format!("{} dbname=nothing", server.socket());
    assert!(matches!(fault(&[(URL, &no_database)]), Fault::Refused(why) if why.contains("nothing")));
    // The last of three answers: nobody is at the first, and the second takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let three = format!(
        "host=127.0.0.1,127.0.0.1,localhost port={free},{},{} user={ROLE} password='{PASSWORD}' dbname=postgres connect_timeout=2",
        silent.local_addr().expect("its number").port(),
        server.port()
    );
    connected(&[(URL, &three)]).expect("the third");
    // A server that is no database.
    let odd = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = odd.local_addr().expect("its number").port();
    let talk = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = odd.accept().expect("a connection");
            _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error =
        connected(&[(URL, &format!("host=127.0.0.1 port={port} user=x sslmode=disable"))]).map(|_| ());
    let error = error.expect_err("no database").to_string();
    assert!(error.contains(&format!("PostgreSQL at 127.0.0.1:{port}")), "{error}");
    _ = connected(&[(URL, &format!("host=127.0.0.1 port={port} user=x sslmode=require"))]).map(|_| ());
    talk.join().expect("no panic");
}

#[test]
fn tables_of_another_version_or_of_nobody_are_refused() {
    let server = Postgres::start(Setup::default());
    let connect = || database(&server.socket()).expect("a connection");
    let none = Fleet::open(connect(), "x").map(|_| ()).expect_err("no tables");
    assert!(matches!(none, FleetError::NoSchema(_)), "{none}");
    let mut fleet = Fleet::create(connect(), &plan("x"), &items(&["a"])).expect("a fleet");
    let taken =
        Fleet::create(connect(), &plan("x"), &items(&["b"])).map(|_| ()).expect_err("two of one name");
    assert_eq!(taken.to_string(), "there is a fleet with the name `x` already");
    assert_eq!(fleet.board().expect("an answer").items.len(), 1, "what is there stays there");
    let missing = Fleet::open(connect(), "y").map(|_| ()).expect_err("no such fleet");
    assert_eq!(missing.to_string(), "there is no fleet with the name `y`");

    let mut client = crate::harness::client(&server);
    client
        .batch_execute(&format!("insert into plimsoll.migration values ({})", VERSION + 1))
        .expect("a newer one");
    for newer in [
        Fleet::open(connect(), "x").map(|_| ()),
        Fleet::create(connect(), &plan("z"), &items(&[])).map(|_| ()),
    ] {
        let error = newer.expect_err("a newer version");
        assert!(
            error.to_string().contains(&format!(
                "has tables of version {}; this program knows version {VERSION}",
                VERSION + 1
            )),
            "{error}"
        );
        assert!(error.hint().expect("what to do").contains("install the newer Plimsoll"));
    }
    client.batch_execute("delete from plimsoll.migration").expect("an older one");
    let older = Fleet::open(connect(), "x").map(|_| ()).expect_err("an older version");
    assert!(older.hint().expect("what to do").contains("brings the tables up to date"), "{older}");
}

#[test]
fn two_who_create_at_once_make_the_tables_once() {
    let server = Postgres::start(Setup::default());
    let server = &server;
    let create =
        |name: String| Fleet::create(database(&server.socket())?, &plan(&name), &items(&["a"])).map(|_| ());
    let create = &create;
    let made: Vec<Result<(), FleetError>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|place| scope.spawn(move || create(format!("fleet {}", place / 2)))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 4);
    for error in made.into_iter().filter_map(Result::err) {
        assert!(matches!(error, FleetError::NameTaken(_)), "{error}");
    }
}

#[test]
fn a_fleet_is_forgotten_with_all_that_is_its_own_unless_somebody_is_at_work() {
    let server = Postgres::start(Setup::default());
    let connect = || database(&server.socket()).expect("a connection");
    let mut fleet = Fleet::create(connect(), &plan("x"), &items(&["a"])).expect("a fleet");
    let mut other = Fleet::create(connect(), &plan("y"), &items(&["a"])).expect("a fleet");
    let worker = plimsoll_fleet::WorkerReport { name: "one".to_owned(), ..Default::default() };
    fleet.report(&worker).expect("an answer");
    let at_work = Fleet::open(connect(), "x").and_then(Fleet::forget).expect_err("at work");
    assert_eq!(at_work.to_string(), "workers of the fleet `x` are at work: one");
    let mut client = crate::harness::client(&server);
    client.batch_execute("update plimsoll.worker set seen = 0").expect("long ago");
    Fleet::open(connect(), "x").and_then(Fleet::forget).expect("nobody is there");
    for (table, left) in [("plan", 1), ("item", 1), ("worker", 0), ("event", 1)] {
        let count: i64 =
            client.query_one(&format!("select count(*) from plimsoll.{table}"), &[]).expect("rows").get(0);
        assert_eq!(count, left, "{table}");
    }
    // Whoever is still there is told.
    assert_eq!(fleet.claim("one").expect("an answer"), None);
    for said in [fleet.board().map(|_| ()), fleet.report(&worker), fleet.become_merger("m").map(|_| ())] {
        assert_eq!(said.expect_err("forgotten").to_string(), "there is no fleet with the name `x`");
    }
    assert!(other.claim("one").expect("an answer").is_some());
}
