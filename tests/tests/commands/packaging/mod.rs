//! Packaging: help, completions, manual pages, the installers and the release files.

mod completions;
mod download_script;
mod help;
mod installer;
mod manual_pages;
mod npm;
mod package_names;
mod release_archives;
mod release_packages;
mod repository_address;
mod sample_releases;

use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{FinishedProgram, Launch, World};
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of one command: long enough to copy the programs of a debug build on a busy disk.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// Prepares one of our scripts to run with the programs that are already built.
pub(crate) fn script_launch(world: &World, name: &str, arguments: &[&str]) -> Launch {
    let programs = plimsoll_testkit::find_or_build_bin_dir().display().to_string();
    let script = workspace_root().join("scripts").join(name);
    world.command(script, arguments).env("PLIMSOLL_BIN_DIR", programs).timeout(COMMAND_TIMEOUT)
}

/// Runs one line in bash.
pub(crate) fn run_bash_line(world: &World, line: &str) -> FinishedProgram {
    world.command("bash", &["-c", line]).timeout(COMMAND_TIMEOUT).run()
}

/// Returns the path of a program that not every machine has. If it is missing, prints that the test is skipped.
fn find_optional_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path_of_program =
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file());
    if path_of_program.is_none() {
        eprintln!("skipped: {program} is not installed here");
    }
    path_of_program
}

/// Lists every file, link and folder below a folder, with type, mode and checksum.
fn tree_listing(world: &World, folder: &str) -> String {
    let find = "find . -printf '%y %m %p %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0r cksum";
    run_bash_line(world, &format!("cd '{folder}' && {{ {find}; }}")).expect_success().stdout
}
