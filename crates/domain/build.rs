//! Passes the compile target and the source commit to the crate; see `build::BuildInfo::for_current_program`.
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
    println!(
        "cargo:rustc-env=PLIMSOLL_BUILT_FROM={}",
        commit_from_env_or_clone_if_release().unwrap_or_default()
    );
}

/// Returns the commit that is being compiled: `PLIMSOLL_COMMIT` if that is set (even to an empty value),
/// otherwise, for release builds, the commit of the git clone.
fn commit_from_env_or_clone_if_release() -> Option<String> {
    if let Ok(commit_from_env) = std::env::var("PLIMSOLL_COMMIT") {
        return Some(commit_from_env);
    }
    // Only for release builds: in development each commit would recompile every crate.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release { describe_clone_head_and_emit_rerun_if_changed() } else { None }
}

/// Returns the HEAD commit of the clone that contains this crate, with the suffix `-dirty` if files differ, and
/// tells cargo to run this script again when HEAD changes.
/// Returns `None` in an unpacked archive, even if the archive lies inside another repository.
fn describe_clone_head_and_emit_rerun_if_changed() -> Option<String> {
    let workspace_root = std::fs::canonicalize("../..").ok()?;
    if Path::new(&run_git(&["rev-parse", "--show-toplevel"])?) != workspace_root {
        return None;
    }
    // The log of HEAD changes with each commit. A missing file is not watched, because cargo would then rerun
    // this script on every build.
    for file_name in ["HEAD", "logs/HEAD"] {
        let path = run_git(&["rev-parse", "--git-path", file_name])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    run_git(&["describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"])
}

fn run_git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
