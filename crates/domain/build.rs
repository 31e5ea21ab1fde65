//! Tells the crate for which target it is compiled, and from which commit: `build::Build::own`.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "this is how cargo and a build script talk"
)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PLIMSOLL_COMMIT");
    println!("cargo:rustc-env=PLIMSOLL_BUILT_FOR={}", std::env::var("TARGET").unwrap_or_default());
    println!("cargo:rustc-env=PLIMSOLL_BUILT_FROM={}", commit().unwrap_or_default());
}

/// The commit that is compiled: `PLIMSOLL_COMMIT` if it is set, also if it is empty; else the one of the clone.
fn commit() -> Option<String> {
    if let Ok(named) = std::env::var("PLIMSOLL_COMMIT") {
        return Some(named);
    }
    // While one develops, each commit would compile every crate anew.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release { commit_of_clone() } else { None }
}

/// The commit of the clone that this crate is a folder of, with `-dirty` behind it if files differ. None in an unpacked archive,
/// also if that lies in somebody's repository.
fn commit_of_clone() -> Option<String> {
    let root = std::fs::canonicalize("../..").ok()?;
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?) != root {
        return None;
    }
    // The log of HEAD changes with each commit. Cargo reruns a build script each time if a file that it watches is absent.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
