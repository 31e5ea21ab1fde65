//! From a checkout or an archive into somebody's shell: help, completions, manual pages, the installer, the release.

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
use plimsoll_testkit::world::{Finished, Launch, World};
use std::path::PathBuf;
use std::time::Duration;

/// Copying the programs of a debug build, on a busy disk.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// One of our scripts, with programs that are already built.
pub(crate) fn script(world: &World, name: &str, arguments: &[&str]) -> Launch {
    let programs = plimsoll_testkit::bin_dir().display().to_string();
    let script = workspace_root().join("scripts").join(name);
    world.command(script, arguments).env("PLIMSOLL_BIN_DIR", programs).timeout(LONG)
}

/// One line for a shell.
pub(crate) fn shell(world: &World, line: &str) -> Finished {
    world.command("bash", &["-c", line]).timeout(LONG).run()
}

/// Where a program is that not every machine has; where it is not, the test says so.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: {program} is not installed here");
    }
    found
}

/// Every file, link and folder below a folder, with mode and content.
fn tree(world: &World, folder: &str) -> String {
    let find = "find . -printf '%y %m %p %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0r cksum";
    shell(world, &format!("cd '{folder}' && {{ {find}; }}")).expect_success().stdout
}
