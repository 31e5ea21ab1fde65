//! The real client, at a pinned version, installed once into the build folder.

use crate::places::{folder_of, target_dir};
use crate::tool;
use fs2::FileExt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The version of the client every test runs against unless it asks for another one.
pub const CLIENT_VERSION: &str = "2.1.329";

/// Long enough for a slow registry (the package is about 250 MB), short enough for a test run.
const INSTALL_LIMIT: Duration = Duration::from_secs(300);

/// The pinned client: `PLIMSOLL_TEST_CLIENT` when set, else installed with npm into the build folder.
pub fn claude() -> PathBuf {
    static PINNED: OnceLock<PathBuf> = OnceLock::new();
    let find = || std::env::var_os("PLIMSOLL_TEST_CLIENT").map(PathBuf::from);
    PINNED.get_or_init(|| find().unwrap_or_else(|| claude_version(CLIENT_VERSION))).clone()
}

/// Another version of the client, installed like the pinned one; panics with what is missing.
pub fn claude_version(version: &str) -> PathBuf {
    let folder = target_dir().join(format!("client-{version}"));
    let program = folder.join("node_modules/.bin/claude");
    let complete = folder.join("complete");
    if complete.is_file() {
        return program;
    }
    fs::create_dir_all(&folder).expect("the build folder is writable");
    let _lock = lock(&folder.join("lock"));
    if !complete.is_file() {
        install(&folder, version);
        check_version(&program, version);
        fs::write(&complete, version).expect("the build folder is writable");
    }
    program
}

/// Waits for the lock that lets parallel tests install or make something only once; it is free again when the file is dropped.
pub(crate) fn lock(path: &Path) -> File {
    let file = File::create(path).expect("the lock file can be made");
    let start = Instant::now();
    while FileExt::try_lock_exclusive(&file).is_err() {
        let message = "another process has held the lock for too long";
        assert!(start.elapsed() < INSTALL_LIMIT + Duration::from_secs(30), "{message}: {}", path.display());
        sleep(Duration::from_millis(100));
    }
    file
}

fn install(folder: &Path, version: &str) {
    for program in ["node", "npm"] {
        let hint = "install Node.js with npm, or set PLIMSOLL_TEST_CLIENT to a claude program";
        assert!(folder_of(program).is_some(), "`{program}` is not on PATH: {hint}");
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(folder);
    npm.arg(format!("@anthropic-ai/claude-code@{version}"));
    if let Err(problem) = tool::run(&mut npm, INSTALL_LIMIT) {
        panic!("npm did not install client {version}: {problem}");
    }
}

/// Starts the fresh client once: an installation whose native part is missing shows here, not in a strange test.
fn check_version(program: &Path, version: &str) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(program);
    command.arg("--version").env_clear().env("HOME", home.path()).env("PATH", search_path(&[]));
    let said = tool::run(&mut command, Duration::from_secs(30));
    let works = said.as_ref().is_ok_and(|text| text.starts_with(version));
    assert!(works, "the client {version} was installed but `claude --version` answers {said:?}");
}

/// A PATH of the given folders, the system's usual ones, and those that hold node and git.
pub(crate) fn search_path(first: &[PathBuf]) -> std::ffi::OsString {
    let mut folders = first.to_vec();
    // The agents of the tests edit files by GNU's tools, which a Mac has in folders of their own.
    if cfg!(target_os = "macos") {
        folders.extend(["sed", "timeout"].iter().filter_map(|program| folder_of(program)));
    }
    folders.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    for folder in ["node", "git"].iter().filter_map(|program| folder_of(program)) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    std::env::join_paths(folders).expect("no folder of PATH has a colon in its name")
}
