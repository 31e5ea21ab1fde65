//! Servers that are not PostgreSQL or are hostile: the memory that they use here, and the errors that are printed.

use crate::harness::settings_from_variables;
use plimsoll_fleet::{Database, FleetError, URL_VARIABLE, read_all_statuses};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The greatest length of a message, because libraries read it as a signed number.
const MAX_MESSAGE_LENGTH: u32 = i32::MAX as u32;

/// The behavior of a test server on each connection.
type Behavior = fn(&mut TcpStream) -> std::io::Result<()>;

/// Starts a server on loopback that runs until the test process ends. Returns its port.
fn start_server(behavior: Behavior) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            // It does not matter which side closes the connection first.
            let _ = behavior(&mut stream);
        }
    });
    port
}

fn read_exactly(stream: &mut TcpStream, length: usize) -> std::io::Result<()> {
    stream.read_exact(&mut vec![0; length])
}

/// Reads a TLS request and answers it.
fn answer_tls(stream: &mut TcpStream, answer: &[u8]) -> std::io::Result<()> {
    read_exactly(stream, 8)?;
    stream.write_all(answer)
}

/// Refuses TLS requests, and answers the startup message.
fn answer_startup(stream: &mut TcpStream, answer: &[u8]) -> std::io::Result<()> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let rest = u32::from_be_bytes(length) as usize - 4;
        read_exactly(stream, rest)?;
        if rest > 4 {
            return stream.write_all(answer);
        }
        stream.write_all(b"N")?;
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

fn refusal(code: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SFATAL\0VFATAL\0C{code}\0M{text}\0\0").as_bytes())
}

/// Sends a message with this length, and bytes of it for as long as the client reads them.
fn send_endless_message(stream: &mut TcpStream, kind: u8, length: u32) -> std::io::Result<()> {
    stream.write_all(&[&[kind][..], &length.to_be_bytes()].concat())?;
    let chunk = vec![b'x'; 1 << 20];
    (0..512).try_for_each(|_| stream.write_all(&chunk))
}

fn accepted_login_messages() -> Vec<u8> {
    [message(b'R', &0_u32.to_be_bytes()), message(b'Z', b"I")].concat()
}

/// Connects and returns the printed error and hint.
fn error_and_hint(port: u16, options: &str) -> String {
    let address = format!("host=127.0.0.1 port={port} user=x password=hunter2 connect_timeout=10 {options}");
    let connect_result =
        Database::connect(settings_from_variables(&[(URL_VARIABLE, &address)]).expect("settings"));
    // A server that accepts every login is recognized only by its response to the first query.
    let query_result = connect_result.and_then(|database| read_all_statuses(database).map(|_| ()));
    let error = query_result.expect_err("it is no database");
    assert!(matches!(error, FleetError::Database { .. }), "{error}");
    format!("{error}\nhint: {}", error.hint().unwrap_or_else(|| panic!("nothing to do about {error:?}")))
}

/// Returns the peak memory of this process in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the peak");
    let kilobytes: u64 =
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
    kilobytes * 1024
}

#[test]
fn a_server_cannot_make_us_allocate_more_than_a_fleet_needs() {
    let rows: [(&str, &str, Behavior); 4] = [
        ("instead of TLS", "sslmode=require", |stream| {
            read_exactly(stream, 8)?;
            send_endless_message(stream, b'E', MAX_MESSAGE_LENGTH)
        }),
        ("while connecting", "sslmode=disable", |stream| {
            answer_startup(stream, b"")?;
            send_endless_message(stream, b'R', MAX_MESSAGE_LENGTH)
        }),
        ("as an answer", "sslmode=prefer", |stream| {
            answer_startup(stream, &accepted_login_messages())?;
            send_endless_message(stream, b'D', MAX_MESSAGE_LENGTH)
        }),
        ("in many messages", "sslmode=disable", |stream| {
            answer_startup(stream, b"")?;
            stream.write_all(&message(b'R', &0_u32.to_be_bytes()))?;
            (0..10_000).try_for_each(|number| {
                let setting = format!("{number}\0{}\0", "x".repeat(60_000));
                stream.write_all(&message(b'S', setting.as_bytes()))
            })
        }),
    ];
    for (name, mode, behavior) in rows {
        let before = peak_memory();
        let printed = error_and_hint(start_server(behavior), mode);
        // The kernel adds up the pages of several processors only occasionally, so the value may even decrease slightly.
        let extra_bytes = peak_memory().saturating_sub(before);
        assert!(extra_bytes < 48 << 20, "{name}: {extra_bytes} bytes");
        assert!(printed.contains("it announces an answer of "), "{name}: {printed}");
    }
}

#[test]
fn each_refusal_is_reported_with_a_hint() {
    let rows: [(&str, &str, Behavior, &[&str]); 16] = [
        ("no TLS", "sslmode=require", |stream| answer_tls(stream, b"N"), &["it has no TLS", "turn on `ssl`"]),
        (
            "refused before TLS",
            "sslmode=require",
            |stream| answer_tls(stream, &refusal("28000", "no pg_hba.conf entry for host")),
            &["it refuses this user, database or connection: no pg_hba.conf entry for host", "pg_hba.conf"],
        ),
        (
            "full before TLS",
            "sslmode=require",
            |stream| answer_tls(stream, &refusal("53300", "sorry, too many clients already")),
            &["all of its connections are taken", "max_connections"],
        ),
        (
            "full, and TLS is only preferred",
            "sslmode=prefer",
            |stream| answer_startup(stream, &refusal("53300", "sorry, too many clients already")),
            &["all of its connections are taken", "max_connections"],
        ),
        (
            "no such database, and TLS is only preferred",
            "sslmode=prefer",
            |stream| answer_startup(stream, &refusal("3D000", "database \"x\" does not exist")),
            &["database \"x\" does not exist", "check user, database"],
        ),
        (
            "wrong password",
            "sslmode=disable",
            |stream| answer_startup(stream, &refusal("28P01", "password authentication failed")),
            &["the user or the password is wrong: password authentication failed", "PGPASSWORD"],
        ),
        (
            "starting",
            "sslmode=allow",
            |stream| answer_startup(stream, &refusal("57P03", "the database system is starting up")),
            &["it is starting or shutting down", "try again"],
        ),
        (
            "closed before TLS",
            "sslmode=require",
            |stream| read_exactly(stream, 8),
            &["it closed the connection", "check its log"],
        ),
        (
            "closed",
            "sslmode=disable",
            |stream| answer_startup(stream, b""),
            &["it closed the connection", "check its log"],
        ),
        (
            "closed while TLS begins",
            "sslmode=require",
            |stream| {
                answer_tls(stream, b"S")?;
                read_exactly(stream, 64)
            },
            &["TLS cannot be set up", "closed the connection", "TLS 1.2 or 1.3"],
        ),
        (
            "other words than TLS",
            "sslmode=require",
            |stream| {
                answer_tls(stream, b"S")?;
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
                read_exactly(stream, 64)
            },
            &["TLS cannot be set up", "check that the address"],
        ),
        (
            "another protocol",
            "sslmode=disable",
            |stream| answer_startup(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            &["does not speak the PostgreSQL protocol", "check host and port"],
        ),
        (
            "another protocol instead of TLS",
            "sslmode=require",
            |stream| answer_tls(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            &["does not speak the PostgreSQL protocol", "check host and port"],
        ),
        (
            "a message out of turn",
            "sslmode=disable",
            |stream| answer_startup(stream, &message(b'N', b"x")),
            &["does not speak the PostgreSQL protocol", "check host and port"],
        ),
        (
            "a method that is not known",
            "sslmode=disable",
            |stream| answer_startup(stream, &message(b'R', &7_u32.to_be_bytes())),
            &["it refuses this user, database or connection", "pg_hba.conf"],
        ),
        (
            "a password in the clear",
            "sslmode=disable channel_binding=require",
            |stream| answer_startup(stream, &message(b'R', &3_u32.to_be_bytes())),
            &["does not support the channel binding", "scram-sha-256"],
        ),
    ];
    for (name, mode, behavior, expected_parts) in rows {
        let printed = error_and_hint(start_server(behavior), mode);
        for expected_part in expected_parts {
            assert!(printed.contains(expected_part), "{name}: {expected_part} in {printed}");
        }
        let is_about_tls = expected_parts.iter().any(|words| words.contains("TLS"));
        assert_eq!(
            printed.lines().next().is_some_and(|line| line.contains("TLS")),
            is_about_tls,
            "{name}: {printed}"
        );
        assert!(!printed.contains("hunter2"), "{name}: {printed}");
    }
}
