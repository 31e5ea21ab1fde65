//! The real client at a pinned version, installed once into the build folder.

use crate::environment::{program_file_name, system_program_folders, user_variables};
use crate::tool;
use crate::workspace_paths::{find_program_folder_on_path, target_dir};
use fs2::FileExt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The client version that tests use by default.
pub const CLIENT_VERSION: &str = "2.1.332";

/// Timeout of `npm install`: the package is about 250 MB, and the registry may be slow.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);

/// Returns the pinned client: `PLIMSOLL_TEST_CLIENT` if set, else the one installed with npm into the build
/// folder.
pub fn find_claude_from_env_or_install_pinned() -> PathBuf {
    static CLIENT_PATH: OnceLock<PathBuf> = OnceLock::new();
    let path_from_env = || std::env::var_os("PLIMSOLL_TEST_CLIENT").map(PathBuf::from);
    CLIENT_PATH
        .get_or_init(|| path_from_env().unwrap_or_else(|| install_claude_version_once(CLIENT_VERSION)))
        .clone()
}

/// Returns the path of this version of the client, and installs it if needed. Panics if the installation fails.
pub fn install_claude_version_once(version: &str) -> PathBuf {
    let folder = target_dir().join(format!("client-{version}"));
    // On Windows `.bin` has scripts that start the program.
    let relative_path = if cfg!(windows) {
        "node_modules/@anthropic-ai/claude-code/bin/claude.exe"
    } else {
        "node_modules/.bin/claude"
    };
    let program = folder.join(relative_path);
    let completion_marker = folder.join("complete");
    if completion_marker.is_file() {
        return program;
    }
    fs::create_dir_all(&folder).expect("the build folder is writable");
    let _lock = wait_for_exclusive_file_lock(&folder.join("lock"));
    if !completion_marker.is_file() {
        install_with_npm(&folder, version);
        assert_installed_version(&program, version);
        fs::write(&completion_marker, version).expect("the build folder is writable");
    }
    program
}

/// Locks a file exclusively so that parallel tests install or build something only once. Panics after a timeout.
/// Dropping the returned file releases the lock.
pub(crate) fn wait_for_exclusive_file_lock(path: &Path) -> File {
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
        assert!(find_program_folder_on_path(program).is_some(), "`{program}` is not on PATH: {hint}");
    }
    let mut npm = Command::new(program_file_name("npm"));
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(folder);
    npm.arg(format!("@anthropic-ai/claude-code@{version}"));
    if let Err(error) = tool::run_for_combined_output(&mut npm, INSTALL_TIMEOUT) {
        panic!("npm did not install client {version}: {error}");
    }
}

/// Runs `claude --version`, so that a missing native binary is reported here and not in an unrelated test.
fn assert_installed_version(program: &Path, version: &str) {
    let temporary_home = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(program);
    command
        .arg("--version")
        .env_clear()
        .envs(user_variables(temporary_home.path(), temporary_home.path()))
        .env("PATH", path_variable_with_system_node_and_git(&[]));
    let output = tool::run_for_combined_output(&mut command, Duration::from_secs(30));
    let is_expected_version = output.as_ref().is_ok_and(|text| text.starts_with(version));
    assert!(
        is_expected_version,
        "the client {version} was installed but `claude --version` answers {output:?}"
    );
}

/// Returns a PATH value with `first_folders`, the standard system folders, and the folders of node and git.
pub(crate) fn path_variable_with_system_node_and_git(first_folders: &[PathBuf]) -> std::ffi::OsString {
    let mut folders = first_folders.to_vec();
    // Test agents edit files with GNU tools, which are in separate folders on macOS.
    if cfg!(target_os = "macos") {
        folders.extend(["sed", "timeout"].iter().filter_map(|program| find_program_folder_on_path(program)));
    }
    folders.extend(system_program_folders());
    for folder in ["node", "git"].iter().filter_map(|program| find_program_folder_on_path(program)) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    std::env::join_paths(folders).expect("no folder of PATH has the separator in its name")
}
