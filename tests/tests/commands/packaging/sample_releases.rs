//! Sample releases of small scripts, and a server on loopback that serves them.

use crate::packaging::run_bash_line;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
pub(super) const TARGETS: [&str; 4] = [
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "x86_64-unknown-linux-musl",
];

/// The targets of Windows. A sample release has them only if a test asks for them.
pub(super) const WINDOWS_TARGETS: [&str; 2] = ["aarch64-pc-windows-msvc", "x86_64-pc-windows-msvc"];

/// Returns the address of the repository from Cargo.toml.
pub(super) fn repository_address() -> String {
    let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml")).expect("Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = ")).expect("an address");
    line.trim_matches('"').to_owned()
}

/// Returns the target of this machine.
pub(super) fn target_of_this_machine() -> &'static str {
    let name = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    TARGETS.into_iter().find(|target| *target == name).expect("a target")
}

/// Writes an archive for each target, and their checksums. The programs are scripts that print their names; `plimsoll` prints
/// its version.
pub(super) fn write_sample_release(world: &World, folder: &str, version: &str) {
    let mut programs: Vec<&str> = plimsoll_protocol::settings::PROGRAM_NAMES.to_vec();
    programs.extend(["plimsoll-hook", "plimsoll-mcp", "plimsoll-fleet", "plimsoll-linear", "plimsoll-otel"]);
    let version_marker = format!("plimsoll-only-in-{version}");
    programs.push(&version_marker);
    let mut line = format!("set -e; mkdir -p '{folder}' stage; ");
    for target in TARGETS {
        let root = format!("stage/plimsoll-{version}-{target}");
        line += &format!(
            "mkdir -p {root}/bin {root}/completions {root}/man/man1; \
             printf '#!/bin/sh\\necho plimsoll {version}\\n' >{root}/bin/plimsoll; \
             for name in {}; do printf '#!/bin/sh\\necho %s\\n' $name >{root}/bin/$name; done; chmod 755 {root}/bin/*; \
             touch {root}/completions/plimsoll.bash {root}/completions/_plimsoll {root}/completions/plimsoll.fish; \
             touch {root}/man/man1/plimsoll.1 {root}/man/man1/plimsoll-run.1; \
             tar -czf '{folder}/plimsoll-{version}-{target}.tar.gz' -C stage plimsoll-{version}-{target}; ",
            programs.join(" "),
        );
    }
    run_bash_line(world, &format!("{line} cd '{folder}'; sha256sum *.tar.gz >SHA256SUMS")).expect_success();
}

/// Adds zips for Windows to a sample release. Their programs are scripts that print their names, so they run here, too.
pub(super) fn add_windows_archives(world: &World, folder: &str, version: &str) {
    let programs = ["plimsoll", "plimsoll-hook", "plimsoll-mcp", "plimsoll-linear", "plimsoll-otel"];
    let programs = [&programs[..], &plimsoll_protocol::settings::PROGRAM_NAMES].concat().join(" ");
    for target in WINDOWS_TARGETS {
        let name = format!("plimsoll-{version}-{target}");
        let line = format!(
            "set -e; mkdir -p stage/{name}/bin; for name in {programs}; do \
             printf '#!/bin/sh\\necho %s for {target} \"$@\"\\n' $name >stage/{name}/bin/$name.exe; done; \
             cd stage; python3 -m zipfile -c \"$OLDPWD/{folder}/{name}.zip\" {name}"
        );
        run_bash_line(world, &line).expect_success();
    }
}

/// Serves a folder until the test ends and returns the address. Below `/cut/` it sends only the first half of each file.
pub(super) fn serve_folder(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let folder = folder.clone();
            std::thread::spawn(move || respond(&connection, &folder));
        }
    });
    address
}

fn respond(mut connection: &TcpStream, folder: &Path) -> Option<()> {
    let mut lines = BufReader::new(connection).lines().map_while(Result::ok);
    let request_line = lines.next()?;
    lines.find(String::is_empty)?;
    let path = request_line.split(' ').nth(1)?.trim_start_matches('/').split('?').next()?.to_owned();
    let (path, is_cut) = match path.strip_prefix("cut/") {
        Some(rest) => (rest.to_owned(), true),
        None => (path, false),
    };
    let Ok(bytes) = std::fs::read(folder.join(path)) else {
        return connection
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .ok();
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
    let body = if is_cut { &bytes[..bytes.len() / 2] } else { &bytes[..] };
    connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body)).ok()
}
