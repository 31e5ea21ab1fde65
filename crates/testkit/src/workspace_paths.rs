//! Paths of the workspace, its build folder and the programs under test.

use crate::tool;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Long enough for a first build of everything on a slow computer.
const BUILD_TIMEOUT: Duration = Duration::from_secs(900);

/// Returns the folder of the workspace's `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("crates/testkit lies two folders below the workspace").to_path_buf()
}

/// Returns the build folder: `CARGO_TARGET_DIR`, or `target` in the workspace.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => workspace_root().join(folder),
        None => workspace_root().join("target"),
    }
}

/// Returns the folder of the recorded payloads.
pub fn fixtures_dir() -> PathBuf {
    workspace_root().join("tests/fixtures")
}

/// The names of the hook programs, one per line.
const HOOK_PROGRAM_NAMES: &str = include_str!("../../hooks/programs.txt");

/// Returns the folder of the programs under test: `PLIMSOLL_BIN_DIR`, or the debug build, built once per
/// process.
pub fn bin_dir() -> PathBuf {
    static BIN_DIR: OnceLock<PathBuf> = OnceLock::new();
    let build_programs = || link_hook_programs(cargo_build(&["-p", "plimsoll", "--bins"]));
    let from_env_or_build =
        || std::env::var_os("PLIMSOLL_BIN_DIR").map_or_else(build_programs, PathBuf::from);
    BIN_DIR.get_or_init(from_env_or_build).clone()
}

/// Returns the path of the replayed client: `PLIMSOLL_REPLAYED_CLIENT`, or the debug build, built once per
/// process.
pub fn replayed_client_path() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build_program =
        || cargo_build(&["-p", "plimsoll-testkit", "--bin", "replayed-client"]).join("replayed-client");
    let from_env_or_build =
        || std::env::var_os("PLIMSOLL_REPLAYED_CLIENT").map_or_else(build_program, PathBuf::from);
    PROGRAM.get_or_init(from_env_or_build).clone()
}

/// Links the one hook program under the name of each hook. The links appear by rename, because other tests
/// create the same ones at the same time.
fn link_hook_programs(folder: PathBuf) -> PathBuf {
    for name in HOOK_PROGRAM_NAMES.lines() {
        let draft = folder.join(format!("{name}.{}", std::process::id()));
        std::fs::hard_link(folder.join("plimsoll-hook"), &draft)
            .and_then(|()| std::fs::rename(&draft, folder.join(name)))
            .unwrap_or_else(|error| panic!("{name} in {}: {error}", folder.display()));
        // Renaming one hard link over another link of the same file removes neither.
        let _ = std::fs::remove_file(&draft);
    }
    folder
}

fn cargo_build(package_args: &[&str]) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked"]).args(package_args);
    if let Err(error) = tool::run_with_timeout(command.current_dir(workspace_root()), BUILD_TIMEOUT) {
        panic!(
            "{package_args:?} do not build (PLIMSOLL_BIN_DIR, PLIMSOLL_REPLAYED_CLIENT can name built ones): {error}"
        );
    }
    target_dir().join("debug")
}

/// Returns the folder on this process's own PATH that contains a program.
pub(crate) fn find_program_folder(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join(program).is_file())
}
