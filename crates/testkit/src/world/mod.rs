//! An isolated test environment with its own home, project and environment variables.

mod clients;
mod launch;
mod leftovers;
mod stable_text;

pub use launch::{FinishedProgram, Launch, RunningProgram};

use crate::client::{CLIENT_VERSION, path_variable_with_system_node_and_git};
use crate::environment::{config_folder, state_folder, user_variables};
use crate::workspace_paths::{find_or_build_bin_dir, find_or_build_program};
use serde_json::{Value, json};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A key in the expected format that gives access to nothing.
const API_KEY: &str = "sk-ant-api03-scripted-model-only-0000000000000";

/// How long a test waits for an expected event. Long enough that only a real failure takes this time, even on a
/// slow or shared machine. Tests about speed measure the time themselves.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// In worlds with a client, hooks wait this long for its transcript writer. The wait is longer than the default,
/// because the writer is slower on a busy machine.
const FRESHNESS_WAIT_SETTING: &str = "freshness_wait_ms";
const FRESHNESS_WAIT_MS: u64 = 5_000;

/// A temporary folder with a home and a project. Dropping it removes the folder and kills every process that was
/// started with this home.
pub struct World {
    // Declared before the folder, so that processes are killed before their files are removed.
    leftovers: leftovers::LeftoverProcesses,
    _folder: TempDir,
    root: PathBuf,
    env_overrides: Vec<(String, String)>,
    with_git: bool,
    with_plimsoll_programs: bool,
    puts_client_on_path: bool,
    client_override: Option<PathBuf>,
}

impl World {
    /// Creates a world whose project is a git repository with one commit on `main`.
    #[expect(clippy::new_without_default, reason = "a world is made, not a default value")]
    pub fn new() -> World {
        World::create_with_project(true, true)
    }

    /// Creates a world whose project is a git repository without Plimsoll's files.
    pub fn without_plimsoll_files() -> World {
        World::create_with_project(true, false)
    }

    /// Creates a world whose project is a plain folder.
    pub fn without_git() -> World {
        World::create_with_project(false, true)
    }

    /// Leaves Plimsoll's programs off the PATH, so that they are not even built.
    pub fn without_plimsoll_programs(mut self) -> World {
        self.with_plimsoll_programs = false;
        self
    }

    fn create_with_project(with_git: bool, with_plimsoll_files: bool) -> World {
        let folder = tempfile::Builder::new().prefix("plimsoll-test-").tempdir().expect("a temporary folder");
        // Neither a short name of Windows nor a path that starts with `\\?\`, which git does not accept.
        let root = dunce::canonicalize(folder.path()).expect("the temporary folder exists");
        let home = root.join("home");
        for name in ["home", "tmp"] {
            fs::create_dir(root.join(name)).expect("the temporary folder is writable");
        }
        let leftovers = leftovers::LeftoverProcesses::with_home(home);
        let env_overrides = Vec::new();
        let world = World {
            leftovers,
            _folder: folder,
            root,
            env_overrides,
            with_git,
            with_plimsoll_programs: true,
            puts_client_on_path: false,
            client_override: None,
        };
        write_file(&world.client_state_file(), &client_state_with_completed_onboarding().to_string());
        if with_plimsoll_files {
            world.create_project("project");
        } else {
            world.create_project_without_plimsoll_files("project");
        }
        world
    }

    /// Writes the state, record and ledger of a run, as if this world's user had started it in the project.
    pub fn write_run_state_record_and_ledger(&self, state: &Value) {
        let run_id = state["run_id"].as_str().expect("a run has an id");
        let folder = self.runs_folder().join(run_id);
        let project = dunce::canonicalize(self.project()).expect("the project is there");
        let record = json!({ "run_id": run_id, "project": project });
        self.write(folder.join("record.json"), &record.to_string());
        self.write(folder.join("ledger.json"), &state.to_string());
        self.write(".claude/ralph-state.json", &state.to_string());
    }

    /// Returns the folder with the records of this world's runs.
    pub fn runs_folder(&self) -> PathBuf {
        self.plimsoll_state_folder().join("runs")
    }

    /// Returns the folder in which Plimsoll keeps this world's runs, and the records of projects without its files.
    pub fn plimsoll_state_folder(&self) -> PathBuf {
        state_folder(&self.home()).join("plimsoll")
    }

    /// Returns the HOME of every program in this world.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the project, which is the default working directory of every program.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Creates a trusted project next to the first. It contains `.claude/plimsoll`, as after `plimsoll init` or a
    /// run.
    pub fn create_project(&self, name: &str) -> PathBuf {
        let project = self.create_project_without_plimsoll_files(name);
        fs::create_dir_all(project.join(".claude/plimsoll")).expect("the temporary folder is writable");
        project
    }

    /// Creates a trusted project without Plimsoll's files, so that records of its sessions are kept outside of it.
    pub fn create_project_without_plimsoll_files(&self, name: &str) -> PathBuf {
        let project = self.root.join(name);
        fs::create_dir_all(&project).expect("the temporary folder is writable");
        self.record_project_as_trusted(&project);
        if self.with_git {
            self.create_repository_with_first_commit(&project);
        }
        project
    }

    fn create_repository_with_first_commit(&self, project: &Path) {
        write_empty_git_repository(&project.join(".git"));
        write_file(&project.join("README.md"), "A project.\n");
        self.run_git_in(project, &["add", "README.md"]);
        self.run_git_in(project, &["commit", "--quiet", "-m", "First commit"]);
    }

    fn client_state_file(&self) -> PathBuf {
        self.home().join(".claude.json")
    }

    /// Records in the client's state that the user trusts this folder.
    fn record_project_as_trusted(&self, project: &Path) {
        let mut client_state: Value = parse_json_file(&self.client_state_file());
        client_state["projects"][project.display().to_string()] =
            // Client 1.0.128 fails on a project without `allowedTools`.
            json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": [] });
        write_file(&self.client_state_file(), &client_state.to_string());
    }

    /// Returns the path of a project file. An absolute path is returned unchanged.
    pub fn path(&self, relative_path: impl AsRef<Path>) -> PathBuf {
        self.project().join(relative_path)
    }

    /// Writes a project file and creates its parent folders.
    pub fn write(&self, relative_path: impl AsRef<Path>, text: &str) {
        write_file(&self.path(relative_path), text);
    }

    /// Writes Plimsoll's user settings. Unlike a project's settings, they may start programs, send data to others
    /// and raise limits. In worlds with a client, adds `freshness_wait_ms` if it is missing.
    pub fn write_plimsoll_user_settings(&self, settings: &Value) {
        let mut settings = settings.clone();
        if let (true, Some(settings)) = (self.puts_client_on_path, settings.as_object_mut()) {
            settings.entry(FRESHNESS_WAIT_SETTING).or_insert_with(|| FRESHNESS_WAIT_MS.into());
        }
        write_file(&self.plimsoll_user_settings_file(), &settings.to_string());
    }

    fn plimsoll_user_settings_file(&self) -> PathBuf {
        config_folder(&self.home()).join("plimsoll/settings.json")
    }

    /// Writes an executable file, creates its parent folders and returns the file's path.
    #[cfg(unix)]
    pub fn write_program(&self, relative_path: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.path(relative_path);
        write_file(&path, text);
        let result = fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755));
        assert!(result.is_ok(), "cannot make {} a program: {result:?}", path.display());
        path
    }

    /// Reads a project file. Panics if that fails.
    pub fn read(&self, relative_path: impl AsRef<Path>) -> String {
        read_file(&self.path(relative_path))
    }

    /// Reads a JSON file of the project. Panics if that fails.
    pub fn read_json(&self, relative_path: impl AsRef<Path>) -> Value {
        parse_json_file(&self.path(relative_path))
    }

    /// Returns true if this file or folder exists in the project.
    pub fn exists(&self, relative_path: impl AsRef<Path>) -> bool {
        self.path(relative_path).exists()
    }

    /// Runs git in the project and returns its stdout without trailing whitespace. Panics if git fails.
    pub fn git(&self, args: &[&str]) -> String {
        self.run_git_in(&self.project(), args)
    }

    fn run_git_in(&self, project: &Path, args: &[&str]) -> String {
        // Otherwise git starts a second process that checks whether maintenance is due.
        let args = [&["-c", "maintenance.auto=false"], args].concat();
        let finished =
            Launch::new("git", &args, project.to_path_buf(), self.build_full_env_prepending_to_path(&[]))
                .run();
        assert_eq!(finished.code, Some(0), "git {args:?} failed: {}", finished.stderr);
        finished.stdout.trim_end().to_owned()
    }

    /// Sets an environment variable for every program started from now on.
    pub fn set_env(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.env_overrides.retain(|(variable, _)| *variable != name);
        self.env_overrides.push((name, value.into()));
    }

    /// Returns the complete environment of a program in this world. PATH includes the client once a model or client
    /// was selected.
    pub fn env_with_programs_on_path(&self) -> Vec<(String, String)> {
        let client_program = self.puts_client_on_path.then(|| self.client_program());
        let client_folder = client_program.and_then(|path| path.parent().map(Path::to_path_buf));
        let plimsoll_folder = self.with_plimsoll_programs.then(find_or_build_bin_dir);
        self.build_full_env_prepending_to_path(
            &plimsoll_folder.into_iter().chain(client_folder).collect::<Vec<_>>(),
        )
    }

    fn build_full_env_prepending_to_path(&self, folders_to_prepend: &[PathBuf]) -> Vec<(String, String)> {
        let temp_folder = self.root.join("tmp");
        let defaults = [
            (
                "PATH",
                path_variable_with_system_node_and_git(folders_to_prepend).to_string_lossy().into_owned(),
            ),
            ("CLAUDE_CODE_TMPDIR", temp_folder.display().to_string()),
            ("TERM", "xterm-256color".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            // In short sessions the client's JIT compiler and concurrent garbage collector cost more than they save.
            ("BUN_JSC_useJIT", "0".to_owned()),
            ("BUN_JSC_useConcurrentGC", "0".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("ANTHROPIC_API_KEY", API_KEY.to_owned()),
            // No server listens on this port, so the client can connect only to a scripted model.
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ];
        let mut env: Vec<(String, String)> = user_variables(&self.home(), &temp_folder)
            .into_iter()
            .chain(defaults)
            .map(|(name, value)| (name.into(), value))
            .collect();
        if cfg!(unix) {
            // Otherwise the client uses any installed shell. On Windows it finds Git Bash by itself.
            env.push(("SHELL".to_owned(), "/bin/bash".to_owned()));
        }
        env.retain(|(name, _)| self.env_overrides.iter().all(|(variable, _)| variable != name));
        env.extend(self.env_overrides.clone());
        env
    }

    /// Prepares a program that runs in the project, with this world's environment, empty stdin and a timeout of two
    /// minutes.
    pub fn command(&self, program: impl AsRef<Path>, args: &[&str]) -> Launch {
        Launch::new(program.as_ref(), args, self.project(), self.env_with_programs_on_path())
    }

    /// Prepares the client with these arguments.
    pub fn claude(&self, args: &[&str]) -> Launch {
        self.command(self.client_program(), args)
    }

    /// Prepares the `plimsoll` command with these arguments.
    pub fn plimsoll(&self, args: &[&str]) -> Launch {
        self.command(find_or_build_program("plimsoll"), args)
    }

    /// Prepares a Plimsoll hook program with its payload on stdin.
    pub fn hook(&self, name: &str, payload: &(impl Display + ?Sized)) -> Launch {
        self.command(find_or_build_program(name), &[]).stdin(payload.to_string())
    }

    /// Waits until the condition is true. Panics with the description on a timeout.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool, description: &str) {
        let started_at = Instant::now();
        while !condition() {
            assert!(started_at.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {description}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Returns the paths of all transcripts in this world, including those of subagents, in sorted order.
    pub fn transcript_paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        collect_transcripts(&self.home().join(".claude/projects"), &mut paths);
        paths.sort();
        paths
    }

    /// Kills every process that was started with this world's HOME, even if its parent has changed.
    pub fn kill_leftovers(&self) {
        self.leftovers.kill_all();
    }
}

/// Fails the test if the replayed client had no recording of a request. Such a session proves nothing, whatever the
/// test asserted.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let unrecorded_requests = fs::read_to_string(self.unrecorded_requests_file()).unwrap_or_default();
        assert!(
            unrecorded_requests.is_empty(),
            "the replayed client has no recording of {unrecorded_requests}: take the real one"
        );
    }
}

/// Returns the client's state after its first-start questions are answered, so that it shows no dialog.
fn client_state_with_completed_onboarding() -> Value {
    json!({
        "hasCompletedOnboarding": true,
        "lastOnboardingVersion": CLIENT_VERSION,
        "theme": "dark",
        "bypassPermissionsModeAccepted": true,
        "customApiKeyResponses": { "approved": [&API_KEY[API_KEY.len() - 20..]], "rejected": [] },
        "projects": {},
    })
}

/// Writes the files that `git init -b main` creates, and a user name. This is faster than git, and nearly every
/// test needs it.
fn write_empty_git_repository(git_folder: &Path) {
    for name in ["hooks", "objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        fs::create_dir_all(git_folder.join(name)).expect("the temporary folder is writable");
    }
    write_file(&git_folder.join("HEAD"), "ref: refs/heads/main\n");
    write_file(&git_folder.join("info/exclude"), "");
    let config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
                  [user]\n\tname = Test\n\temail = test@example.invalid\n";
    write_file(&git_folder.join("config"), config);
}

fn collect_transcripts(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            collect_transcripts(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            paths.push(path);
        }
    }
}

fn write_file(path: &Path, text: &str) {
    let folder = path.parent().expect("a file lies in a folder");
    let result = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    assert!(result.is_ok(), "cannot write {}: {result:?}", path.display());
}

fn read_file(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

fn parse_json_file(path: &Path) -> Value {
    let text = read_file(path);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{} is not JSON: {error}\n{text}", path.display()))
}
