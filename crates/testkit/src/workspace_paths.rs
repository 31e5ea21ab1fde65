//! Paths of the workspace, its build folder and the programs under test.

use crate::environment::program_file_name;
use crate::tool;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Long enough for a full build on a slow machine.
const BUILD_TIMEOUT: Duration = Duration::from_secs(900);

/// Returns the folder that contains the workspace's `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    let crates_dir = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates_dir
        .and_then(Path::parent)
        .expect("crates/testkit lies two folders below the workspace")
        .to_path_buf()
}

/// Returns the build folder: `CARGO_TARGET_DIR`, or `target` in the workspace.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => workspace_root().join(folder),
        None => workspace_root().join("target"),
    }
}

/// Returns the folder of the test fixtures.
pub fn fixtures_dir() -> PathBuf {
    workspace_root().join("tests/fixtures")
}

/// The names of the hook programs, one per line.
const HOOK_PROGRAM_NAMES: &str = include_str!("../../hooks/programs.txt");

/// Returns the folder of the programs under test: `PLIMSOLL_BIN_DIR`, or the debug build, which is built on the
/// first call in each process.
pub fn find_or_build_bin_dir() -> PathBuf {
    static BIN_DIR: OnceLock<PathBuf> = OnceLock::new();
    let build_programs =
        || hard_link_plimsoll_hook_as_each_program(cargo_build_into_debug_dir(&["-p", "plimsoll", "--bins"]));
    let from_env_or_build =
        || std::env::var_os("PLIMSOLL_BIN_DIR").map_or_else(build_programs, PathBuf::from);
    BIN_DIR.get_or_init(from_env_or_build).clone()
}

/// Returns the path of a program under test.
pub(crate) fn find_or_build_program(name: &str) -> PathBuf {
    find_or_build_bin_dir().join(program_file_name(name))
}

/// Returns the path of the replayed client: `PLIMSOLL_REPLAYED_CLIENT`, or the debug build, which is built on the
/// first call in each process.
#[cfg(all(unix, feature = "replay"))]
pub fn find_or_build_replayed_client() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build_program = || {
        cargo_build_into_debug_dir(&["-p", "plimsoll-testkit", "--bin", "replayed-client"])
            .join("replayed-client")
    };
    let from_env_or_build =
        || std::env::var_os("PLIMSOLL_REPLAYED_CLIENT").map_or_else(build_program, PathBuf::from);
    PROGRAM.get_or_init(from_env_or_build).clone()
}

/// Creates a hard link to `plimsoll-hook` for each hook name and returns `folder`. Each link is renamed into
/// place, because other tests create the same links at the same time.
fn hard_link_plimsoll_hook_as_each_program(folder: PathBuf) -> PathBuf {
    for name in HOOK_PROGRAM_NAMES.lines() {
        let temporary_link = folder.join(format!("{name}.{}", std::process::id()));
        std::fs::hard_link(folder.join(program_file_name("plimsoll-hook")), &temporary_link)
            .and_then(|()| std::fs::rename(&temporary_link, folder.join(program_file_name(name))))
            .unwrap_or_else(|error| panic!("{name} in {}: {error}", folder.display()));
        // Renaming one hard link onto another link of the same file removes neither, so remove the temporary one.
        let _ = std::fs::remove_file(&temporary_link);
    }
    folder
}

/// Builds a package in debug mode and returns the folder with its programs. Panics if the build fails.
fn cargo_build_into_debug_dir(package_args: &[&str]) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked"]).args(package_args);
    if let Err(error) = tool::run_for_combined_output(command.current_dir(workspace_root()), BUILD_TIMEOUT) {
        panic!(
            "{package_args:?} do not build (PLIMSOLL_BIN_DIR, PLIMSOLL_REPLAYED_CLIENT can name built ones): {error}"
        );
    }
    target_dir().join("debug")
}

/// Returns the first folder on this process's PATH that contains a program.
pub(crate) fn find_program_folder_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let file_name = program_file_name(program);
    std::env::split_paths(&path).find(|folder| folder.join(&file_name).is_file())
}
