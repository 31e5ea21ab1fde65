//! Connecting with every setting of libpq, and the errors of a failed connection.

use crate::harness::{connect, create_fleet, new_plan, open_fleet, plan_items, settings_from_variables};
use plimsoll_fleet::{
    Database, DatabaseError, Fleet, FleetError, SCHEMA_VERSION, URL_VARIABLE, read_all_statuses,
};
use plimsoll_testkit::postgres::{ADMIN_ROLE, PASSWORD, Postgres, ServerSetup};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Connects with these environment variables.
fn connect_with_variables(variables: &[(&str, &str)]) -> Result<Database, FleetError> {
    Database::connect(settings_from_variables(variables)?)
}

fn connect_fault(variables: &[(&str, &str)]) -> DatabaseError {
    match connect_with_variables(variables) {
        Err(FleetError::Database { database_error: fault, .. }) => fault,
        Err(other_error) => panic!("{variables:?}: {other_error}"),
        Ok(_) => panic!("{variables:?}: it is connected"),
    }
}

/// Returns whether the server sees TLS on the fleet's only connection.
fn has_tls(server: &Postgres) -> bool {
    let mut client = crate::harness::client(server);
    let rows = client
        .query("select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'plimsoll-fleet'", &[])
        .expect("the server's view");
    assert_eq!(rows.len(), 1);
    rows[0].get(0)
}

#[test]
fn a_server_with_tls_is_reached_in_each_mode_only_if_it_is_trusted() {
    let server = Postgres::create_cluster_and_start(ServerSetup { has_tls: true, ..ServerSetup::default() });
    let address = server.tcp_connection_string();
    let root = server.root_certificate_path().display().to_string();
    // A root certificate of another authority, and the server's own certificate as a client would have it.
    let other_server =
        Postgres::create_cluster_and_start(ServerSetup { has_tls: true, ..ServerSetup::default() });
    let foreign_root = other_server.root_certificate_path().display().to_string();
    let server_certificate = server.folder().join("server.crt").display().to_string();
    for (options, expected_tls) in [
        ("sslmode=disable", Ok(false)),
        ("sslmode=allow", Ok(false)),
        ("sslmode=prefer", Ok(true)),
        ("sslmode=require", Ok(true)),
        ("sslmode=require channel_binding=require", Ok(true)),
        (&*format!("sslmode=require sslrootcert={root}"), Ok(true)),
        (&format!("sslmode=verify-ca sslrootcert={root}"), Ok(true)),
        (&format!("sslmode=verify-full sslrootcert={root}"), Ok(true)),
        (&format!("sslmode=verify-full sslrootcert={server_certificate}"), Ok(true)),
        // The certificate is only for localhost and 127.0.0.1.
        (
            &format!("sslmode=verify-full sslrootcert={root} host=elsewhere hostaddr=127.0.0.1"),
            Err("elsewhere"),
        ),
        (&format!("sslmode=verify-ca sslrootcert={root} host=elsewhere hostaddr=127.0.0.1"), Ok(true)),
        (&format!("sslmode=require sslrootcert={foreign_root}"), Err("invalid peer certificate")),
        (&format!("sslmode=verify-full sslrootcert={foreign_root}"), Err("invalid peer certificate")),
        // If TLS is only preferred, the connection continues without it.
        (&format!("sslmode=prefer sslrootcert={foreign_root}"), Ok(false)),
    ] {
        let address_with_options = format!("{address} {options}");
        let variables = [(URL_VARIABLE, address_with_options.as_str())];
        match expected_tls {
            Ok(expected) => {
                let _database =
                    connect_with_variables(&variables).unwrap_or_else(|error| panic!("{options}: {error}"));
                assert_eq!(has_tls(&server), expected, "{options}");
            }
            Err(expected_text) => match connect_fault(&variables) {
                DatabaseError::UntrustedCertificate(reason) => {
                    assert!(reason.contains(expected_text), "{options}: {reason}");
                }
                other_fault => panic!("{options}: {other_fault}"),
            },
        }
    }
}

#[test]
fn tls_that_only_one_side_demands_is_reported() {
    let server_without_tls = Postgres::create_cluster_and_start(ServerSetup::default());
    let tls_only_server = Postgres::create_cluster_and_start(ServerSetup {
        has_tls: true,
        requires_tls: true,
        ..ServerSetup::default()
    });
    for mode in ["require", "verify-full sslrootcert=/etc/hostname"] {
        let address = format!("{} sslmode={mode}", server_without_tls.tcp_connection_string());
        let error = connect_with_variables(&[(URL_VARIABLE, &address)]).map(|_| ()).expect_err(mode);
        let is_no_tls = matches!(error, FleetError::Database { database_error: DatabaseError::NoTls, .. });
        assert!(is_no_tls || matches!(error, FleetError::Trust(_)), "{mode}: {error}");
    }
    for mode in ["allow", "prefer"] {
        connect_with_variables(&[(
            URL_VARIABLE,
            &format!("{} sslmode={mode}", server_without_tls.tcp_connection_string()),
        )])
        .expect(mode);
    }
    for (mode, is_reachable) in [("disable", false), ("allow", true), ("prefer", true), ("require", true)] {
        let address = format!("{} sslmode={mode}", tls_only_server.tcp_connection_string());
        assert_eq!(connect_with_variables(&[(URL_VARIABLE, &address)]).is_ok(), is_reachable, "{mode}");
    }
    let address = format!("{} sslmode=disable", tls_only_server.tcp_connection_string());
    match connect_fault(&[(URL_VARIABLE, &address)]) {
        DatabaseError::AccessRefused(reason) => assert!(reason.contains("no encryption"), "{reason}"),
        other_fault => panic!("{other_fault}"),
    }
    // A wrong password is reported even if the connection without TLS was refused first.
    let address = address.replace(PASSWORD, "hunter2").replace("disable", "allow");
    assert!(matches!(connect_fault(&[(URL_VARIABLE, &address)]), DatabaseError::WrongPassword(_)));
}

#[test]
fn passwords_come_from_libpq_sources_and_appear_in_no_message() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let home = tempfile::tempdir().expect("a home");
    let port = server.port().to_string();
    let base_variables = |home: &Path| {
        vec![
            ("HOME", home.display().to_string()),
            ("PGHOST", "127.0.0.1".to_owned()),
            ("PGPORT", port.clone()),
            ("PGUSER", ADMIN_ROLE.to_owned()),
            ("PGDATABASE", "postgres".to_owned()),
        ]
    };
    let connect_with = |extra_variables: &[(&'static str, &str)]| {
        let mut variables = base_variables(home.path());
        variables.extend(extra_variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let variable_refs: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        connect_with_variables(&variable_refs)
    };
    let error_text = |result: Result<Database, FleetError>| {
        let error = result.map(|_| ()).expect_err("no way in");
        format!("{error} / {} / {error:?}", error.hint().unwrap_or_default())
    };
    let no_password_text = error_text(connect_with(&[]));
    assert!(no_password_text.contains("asks for a password, and none is set"), "{no_password_text}");
    let wrong_password_text = error_text(connect_with(&[("PGPASSWORD", "hunter2")]));
    assert!(
        wrong_password_text.contains("the user or the password is wrong")
            && !wrong_password_text.contains("hunter2"),
        "{wrong_password_text}"
    );
    assert!(wrong_password_text.contains(&format!("127.0.0.1:{port}")), "{wrong_password_text}");
    connect_with(&[("PGPASSWORD", PASSWORD)]).expect("the password in a variable");

    let file = home.path().join(".pgpass");
    let escaped = PASSWORD.replace('\\', "\\\\").replace(':', "\\:");
    fs::write(&file, format!("127.0.0.1:{port}:*:{ADMIN_ROLE}:{escaped}\n")).expect("a password file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("ours");
    let open_file_text = error_text(connect_with(&[]));
    assert!(
        open_file_text.contains("chmod 600")
            && open_file_text.contains(".pgpass")
            && !open_file_text.contains(PASSWORD),
        "{open_file_text}"
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("ours");
    connect_with(&[]).expect("the password in the file");
    connect_with(&[("PGPASSFILE", "/nowhere")]).expect_err("another file");

    // A service overrides variables, and the address overrides the service.
    let services = home.path().join(".pg_service.conf");
    fs::write(&services, format!("[board]\nport={port}\nuser={ADMIN_ROLE}\n[off]\nport=1\n"))
        .expect("services");
    connect_with(&[("PGPORT", "1"), ("PGSERVICE", "board")]).expect("the service's port");
    connect_with(&[(URL_VARIABLE, &format!("service=off port={port}"))]).expect("the address's port");
    assert!(matches!(
        expect_database_fault(connect_with(&[("PGSERVICE", "off")])),
        DatabaseError::Unreachable(_)
    ));
    let missing_service_text = error_text(connect_with(&[("PGSERVICE", "none")]));
    assert!(
        missing_service_text.contains("PGSERVICE names is not in")
            && missing_service_text.contains(".pg_service.conf"),
        "{missing_service_text}"
    );
}

fn expect_database_fault(result: Result<Database, FleetError>) -> DatabaseError {
    match result {
        Err(FleetError::Database { database_error: fault, .. }) => fault,
        Err(other_error) => panic!("{other_error}"),
        Ok(_) => panic!("it is connected"),
    }
}

#[test]
fn unreachable_servers_and_unknown_databases_are_reported() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    // A port that was just closed: nothing listens there.
    let free_port =
        TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    let unreachable = format!("host=127.0.0.1 port={free_port} user=x password=hunter2");
    assert!(matches!(connect_fault(&[(URL_VARIABLE, &unreachable)]), DatabaseError::Unreachable(_)));
    let no_host = "host=no-such-host.invalid user=x password=hunter2";
    assert!(matches!(connect_fault(&[(URL_VARIABLE, no_host)]), DatabaseError::Unreachable(_)));
    let no_folder = "host=/nowhere user=x password=hunter2";
    assert!(matches!(connect_fault(&[(URL_VARIABLE, no_folder)]), DatabaseError::Unreachable(_)));
    let no_database = format!("{} dbname=nothing", server.socket_connection_string());
    assert!(
        matches!(connect_fault(&[(URL_VARIABLE, &no_database)]), DatabaseError::AccessRefused(why) if why.contains("nothing"))
    );
    // Only the third of three servers answers: the first port is closed, and the second accepts connections but never answers.
    let silent_listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let three_hosts = format!(
        "host=127.0.0.1,127.0.0.1,localhost port={free_port},{},{} user={ADMIN_ROLE} password='{PASSWORD}' dbname=postgres connect_timeout=2",
        silent_listener.local_addr().expect("its number").port(),
        server.port()
    );
    connect_with_variables(&[(URL_VARIABLE, &three_hosts)]).expect("the third");
    // A server that does not speak PostgreSQL's protocol.
    let http_listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = http_listener.local_addr().expect("its number").port();
    let http_thread = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = http_listener.accept().expect("a connection");
            _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let error = connect_with_variables(&[(
        URL_VARIABLE,
        &format!("host=127.0.0.1 port={port} user=x sslmode=disable"),
    )])
    .map(|_| ());
    let error = error.expect_err("no database").to_string();
    assert!(error.contains(&format!("PostgreSQL at 127.0.0.1:{port}")), "{error}");
    _ = connect_with_variables(&[(
        URL_VARIABLE,
        &format!("host=127.0.0.1 port={port} user=x sslmode=require"),
    )])
    .map(|_| ());
    http_thread.join().expect("no panic");
}

#[test]
fn a_missing_fleet_and_tables_of_another_version_are_refused() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let connect = || connect(&server.socket_connection_string()).expect("a connection");
    for name in ["x", "x\"; drop schema plimsoll_x; --", ""] {
        let missing_fleet_error = Fleet::open(connect(), name).map(|_| ()).expect_err("no such fleet");
        assert_eq!(missing_fleet_error.to_string(), format!("there is no fleet named `{name}`"));
    }
    let mut fleet = create_fleet(&server.socket_connection_string(), "x", &["a"]);
    let create = |name: &str| {
        Fleet::create_if_name_free(connect(), &new_plan(name), &plan_items(&["b"]), PASSWORD).map(|_| ())
    };
    let name_taken_error = create("x").expect_err("two of one name");
    assert_eq!(name_taken_error.to_string(), "a fleet named `x` already exists");
    assert_eq!(fleet.read_board().expect("an answer").items.len(), 1, "what is there stays there");

    let mut client = crate::harness::client(&server);
    client.batch_execute("create role plimsoll_y").expect("a role of somebody else");
    let role_error = create("y").expect_err("the role exists");
    assert!(matches!(&role_error, FleetError::RoleExists(role) if role == "plimsoll_y"), "{role_error}");
    assert!(role_error.hint().expect("what to do").contains("drop role \"plimsoll_y\""));

    create_fleet(&server.socket_connection_string(), "z", &["a"]);
    for (version, hint) in [(SCHEMA_VERSION + 1, "install the newer Plimsoll"), (0, "that created it")] {
        client
            .batch_execute(&format!("update plimsoll_x.plan set schema_version = {version}"))
            .expect("a plan");
        let error = Fleet::open(connect(), "x").map(|_| ()).expect_err("another version");
        let expected = format!(
            "the tables of the fleet `x` have version {version}, and this program supports version {SCHEMA_VERSION}"
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().expect("what to do").contains(hint));
        // The other fleets are still listed.
        let all_statuses = read_all_statuses(connect()).expect("an answer");
        let names: Vec<&str> = all_statuses.statuses.iter().map(|status| status.name.as_str()).collect();
        assert_eq!((names, all_statuses.errors.len()), (vec!["z"], 1));
    }
}

#[test]
fn of_fleets_created_at_the_same_time_with_one_name_one_is_created() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let server = &server;
    let create = |name: String| {
        let database = connect(&server.socket_connection_string())?;
        Fleet::create_if_name_free(database, &new_plan(&name), &plan_items(&["a"]), PASSWORD).map(|_| ())
    };
    let create = &create;
    let results: Vec<Result<(), FleetError>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|place| scope.spawn(move || create(format!("fleet-{}", place / 2)))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(results.iter().filter(|made| made.is_ok()).count(), 4);
    for error in results.into_iter().filter_map(Result::err) {
        assert!(matches!(error, FleetError::NameTaken(_)), "{error}");
    }
}

#[test]
fn a_fleet_is_forgotten_with_its_schema_and_role_unless_a_worker_is_active() {
    let server = Postgres::create_cluster_and_start(ServerSetup::default());
    let connect = || connect(&server.socket_connection_string()).expect("a connection");
    let mut client = crate::harness::client(&server);
    // Then the role of each fleet gets the right to connect, which must not keep it from being dropped.
    client.batch_execute("revoke connect on database postgres from public").expect("a database");
    let mut fleet = create_fleet(&server.socket_connection_string(), "x", &["a"]);
    let mut other_fleet = create_fleet(&server.socket_connection_string(), "y", &["a"]);
    open_fleet(&server.socket_connection_string_for_role("plimsoll_x"), "x");
    let report = plimsoll_fleet::WorkerReport::default();
    fleet.record_worker_report("one", &report).expect("an answer");
    let at_work_error =
        Fleet::open(connect(), "x").and_then(Fleet::delete_if_no_active_workers).expect_err("at work");
    assert_eq!(at_work_error.to_string(), "the fleet `x` has active workers: one/1");
    client.batch_execute("update plimsoll_x.worker set seen = 0").expect("long ago");
    Fleet::open(connect(), "x").and_then(Fleet::delete_if_no_active_workers).expect("nobody is there");
    let names = "select string_agg(nspname, ' ') from pg_namespace where nspname like 'plimsoll%'
        union all select string_agg(rolname, ' ') from pg_roles where rolname like 'plimsoll%'";
    for row in client.query(names, &[]).expect("names") {
        assert_eq!(row.get::<_, &str>(0), "plimsoll_y");
    }
    for result in [
        fleet.read_board().map(|_| ()),
        fleet.claim_next_item("one").map(|_| ()),
        fleet.record_worker_report("one", &report),
        fleet.acquire_or_renew_merger_lease("m").map(|_| ()),
        fleet.into_fleet().delete_if_no_active_workers().map(drop),
    ] {
        assert_eq!(result.expect_err("forgotten").to_string(), "there is no fleet named `x`");
    }
    assert!(other_fleet.claim_next_item("one").expect("an answer").is_some());
}
