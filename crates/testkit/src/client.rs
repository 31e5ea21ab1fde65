//! The real client at a pinned version, installed once into the build folder.

use crate::tool;
use crate::workspace_paths::{find_program_folder, target_dir};
use fs2::FileExt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The version of the client that every test runs unless it names another one.
pub const CLIENT_VERSION: &str = "2.1.329";

/// Long enough for a slow registry (the package is about 250 MB), short enough for a test run.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);

/// Returns the pinned client: `PLIMSOLL_TEST_CLIENT` if set, else the one installed with npm into the build
/// folder.
pub fn pinned_claude() -> PathBuf {
    static PINNED: OnceLock<PathBuf> = OnceLock::new();
    let path_from_env = || std::env::var_os("PLIMSOLL_TEST_CLIENT").map(PathBuf::from);
    PINNED.get_or_init(|| path_from_env().unwrap_or_else(|| claude_of_version(CLIENT_VERSION))).clone()
}

/// Returns the client of this version and installs it if needed. Panics if it cannot be installed.
pub fn claude_of_version(version: &str) -> PathBuf {
    let folder = target_dir().join(format!("client-{version}"));
    let program = folder.join("node_modules/.bin/claude");
    let completion_marker = folder.join("complete");
    if completion_marker.is_file() {
        return program;
    }
    fs::create_dir_all(&folder).expect("the build folder is writable");
    let _lock = lock_exclusively(&folder.join("lock"));
    if !completion_marker.is_file() {
        install_with_npm(&folder, version);
        check_installed_version(&program, version);
        fs::write(&completion_marker, version).expect("the build folder is writable");
    }
    program
}

/// Waits for the lock that lets parallel tests install or build something only once. Dropping the file
/// releases it.
pub(crate) fn lock_exclusively(path: &Path) -> File {
    let file = File::create(path).expect("the lock file can be made");
    let start = Instant::now();
    while FileExt::try_lock_exclusive(&file).is_err() {
        let message = "another process has held the lock for too long";
        assert!(start.elapsed() < INSTALL_TIMEOUT + Duration::from_secs(30), "{message}: {}", path.display());
        sleep(Duration::from_millis(100));
    }
    file
}

fn install_with_npm(folder: &Path, version: &str) {
    for program in ["node", "npm"] {
        let hint = "install Node.js with npm, or set PLIMSOLL_TEST_CLIENT to a claude program";
        assert!(find_program_folder(program).is_some(), "`{program}` is not on PATH: {hint}");
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(folder);
    npm.arg(format!("@anthropic-ai/claude-code@{version}"));
    if let Err(error) = tool::run_with_timeout(&mut npm, INSTALL_TIMEOUT) {
        panic!("npm did not install client {version}: {error}");
    }
}

/// Runs `--version` of the new client: a missing native part is reported here, not in an unrelated test.
fn check_installed_version(program: &Path, version: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(program);
    command.arg("--version").env_clear().env("HOME", home.path()).env("PATH", search_path(&[]));
    let output = tool::run_with_timeout(&mut command, Duration::from_secs(30));
    let is_expected_version = output.as_ref().is_ok_and(|text| text.starts_with(version));
    assert!(
        is_expected_version,
        "the client {version} was installed but `claude --version` answers {output:?}"
    );
}

/// Returns a PATH of the given folders, the usual ones of the system, and those of node and git.
pub(crate) fn search_path(first_folders: &[PathBuf]) -> std::ffi::OsString {
    let mut folders = first_folders.to_vec();
    // Agents of the tests edit files with GNU tools, which a Mac has in separate folders.
    if cfg!(target_os = "macos") {
        folders.extend(["sed", "timeout"].iter().filter_map(|program| find_program_folder(program)));
    }
    folders.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    for folder in ["node", "git"].iter().filter_map(|program| find_program_folder(program)) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    std::env::join_paths(folders).expect("no folder of PATH has a colon in its name")
}
