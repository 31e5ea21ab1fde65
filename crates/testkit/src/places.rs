//! Where things are: the workspace, its build folder, the programs under test.

use crate::tool;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// A first build of everything on a slow computer.
const BUILD_LIMIT: Duration = Duration::from_secs(900);

/// The folder of the workspace's `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("crates/testkit lies two folders below the workspace").to_path_buf()
}

/// The build folder: `CARGO_TARGET_DIR`, or `target` in the workspace.
pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => workspace_root().join(folder),
        None => workspace_root().join("target"),
    }
}

/// The recorded payloads of the workspace.
pub fn fixtures() -> PathBuf {
    workspace_root().join("tests/fixtures")
}

/// The names of the hook programs, one a line.
const HOOKS: &str = include_str!("../../hooks/programs.txt");

/// The folder of the programs under test: `PLIMSOLL_BIN_DIR`, or the debug build, built once per process.
pub fn bin_dir() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || with_hooks(build(&["-p", "plimsoll", "--bins"]));
    let find = || std::env::var_os("PLIMSOLL_BIN_DIR").map_or_else(build, PathBuf::from);
    BUILT.get_or_init(find).clone()
}

/// The replayed client: `PLIMSOLL_REPLAYED_CLIENT`, or the debug build, built once per process.
pub fn replayed_client() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || build(&["-p", "plimsoll-testkit", "--bin", "replayed-client"]).join("replayed-client");
    let find = || std::env::var_os("PLIMSOLL_REPLAYED_CLIENT").map_or_else(build, PathBuf::from);
    BUILT.get_or_init(find).clone()
}

/// The hook programs are one file under several names. Whole from the first moment: other tests make them too.
fn with_hooks(folder: PathBuf) -> PathBuf {
    for name in HOOKS.lines() {
        let draft = folder.join(format!("{name}.{}", std::process::id()));
        std::fs::hard_link(folder.join("plimsoll-hook"), &draft)
            .and_then(|()| std::fs::rename(&draft, folder.join(name)))
            .unwrap_or_else(|error| panic!("{name} in {}: {error}", folder.display()));
        // A rename between two names of one file leaves both.
        let _ = std::fs::remove_file(&draft);
    }
    folder
}

fn build(what: &[&str]) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked"]).args(what);
    if let Err(problem) = tool::run(command.current_dir(workspace_root()), BUILD_LIMIT) {
        panic!(
            "{what:?} do not build (PLIMSOLL_BIN_DIR, PLIMSOLL_REPLAYED_CLIENT can name built ones): {problem}"
        );
    }
    target_dir().join("debug")
}

/// The folder of a program on this process's own PATH.
pub(crate) fn folder_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join(program).is_file())
}
