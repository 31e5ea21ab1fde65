//! A test's own world: a home, a project and an environment, separate from the computer's user.

mod clients;
mod launch;
mod leftovers;
mod stable_text;

pub use launch::{FinishedProgram, Launch, RunningProgram};

use crate::client::{CLIENT_VERSION, search_path};
use crate::workspace_paths::bin_dir;
use serde_json::{Value, json};
use std::fmt::Display;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Has the form of a key but gives access to nothing.
const API_KEY: &str = "sk-ant-api03-scripted-model-only-0000000000000";

/// How long a test waits for an expected event. It is so long that a slow or shared machine does not make the
/// test fail; only a real failure takes this time. A test about speed measures it itself.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// In worlds with a client, hooks wait this long for its transcript writer, which is slower on a busy machine
/// than users would accept.
const FRESHNESS_WAIT_SETTING: &str = "freshness_wait_ms";
const WRITER_TIMEOUT_MS: u64 = 5_000;

/// A temporary folder with a home and a project. Dropping it removes the folder and kills every process that
/// still uses it.
pub struct World {
    // Declared before the folder, so that processes are killed before their files are removed.
    leftovers: leftovers::LeftoverProcesses,
    _folder: TempDir,
    root: PathBuf,
    variables: Vec<(String, String)>,
    with_git: bool,
    with_plimsoll_programs: bool,
    with_client: bool,
    client: Option<PathBuf>,
}

impl World {
    /// Creates a world whose project is a git repository with one commit on `main`.
    #[expect(clippy::new_without_default, reason = "a world is made, not a default value")]
    pub fn new() -> World {
        World::build(true, true)
    }

    /// Creates a world whose project is a git repository without any file of Plimsoll.
    pub fn without_plimsoll_files() -> World {
        World::build(true, false)
    }

    /// Creates a world whose project is a plain folder.
    pub fn without_git() -> World {
        World::build(false, true)
    }

    /// Leaves our programs off the PATH, so that they are not even built.
    pub fn without_plimsoll_programs(mut self) -> World {
        self.with_plimsoll_programs = false;
        self
    }

    fn build(with_git: bool, with_plimsoll_files: bool) -> World {
        let folder = tempfile::Builder::new().prefix("plimsoll-test-").tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("the temporary folder exists");
        let home = root.join("home");
        for name in ["home", "tmp"] {
            fs::create_dir(root.join(name)).expect("the temporary folder is writable");
        }
        let leftovers = leftovers::LeftoverProcesses::with_home(home);
        let variables = Vec::new();
        let world = World {
            leftovers,
            _folder: folder,
            root,
            variables,
            with_git,
            with_plimsoll_programs: true,
            with_client: false,
            client: None,
        };
        write_file(&world.client_state_file(), &initial_client_state().to_string());
        if with_plimsoll_files {
            world.create_project("project");
        } else {
            world.create_project_without_plimsoll_files("project");
        }
        world
    }

    /// Writes a run into the project as if this world's user had started it: its state, record and ledger.
    pub fn write_run(&self, state: &Value) {
        let run_id = state["run_id"].as_str().expect("a run has an id");
        let folder = self.runs_folder().join(run_id);
        let project = self.project().canonicalize().expect("the project is there");
        let record = json!({ "run_id": run_id, "project": project });
        self.write(folder.join("record.json"), &record.to_string());
        self.write(folder.join("ledger.json"), &state.to_string());
        self.write(".claude/ralph-state.json", &state.to_string());
    }

    /// The folder with the records of this world's runs.
    pub fn runs_folder(&self) -> PathBuf {
        self.home().join(".local/state/plimsoll/runs")
    }

    /// The HOME of every program started here.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The folder in which every program is started.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Creates another project beside the first, which the client knows as trusted. It contains Plimsoll's
    /// folder, as after `plimsoll init` or a run.
    pub fn create_project(&self, name: &str) -> PathBuf {
        let project = self.create_project_without_plimsoll_files(name);
        fs::create_dir_all(project.join(".claude/plimsoll")).expect("the temporary folder is writable");
        project
    }

    /// Creates another trusted project without a file of Plimsoll, so that records of its sessions are kept
    /// outside of it.
    pub fn create_project_without_plimsoll_files(&self, name: &str) -> PathBuf {
        let project = self.root.join(name);
        fs::create_dir_all(&project).expect("the temporary folder is writable");
        self.trust_project(&project);
        if self.with_git {
            self.create_first_commit(&project);
        }
        project
    }

    fn create_first_commit(&self, project: &Path) {
        write_empty_repository(&project.join(".git"));
        write_file(&project.join("README.md"), "A project.\n");
        self.git_in(project, &["add", "README.md"]);
        self.git_in(project, &["commit", "--quiet", "-m", "First commit"]);
    }

    fn client_state_file(&self) -> PathBuf {
        self.home().join(".claude.json")
    }

    /// Answers the client's question whether this folder is trusted.
    fn trust_project(&self, project: &Path) {
        let mut client_state: Value = parse_json_file(&self.client_state_file());
        client_state["projects"][project.display().to_string()] =
            // Client 1.0.128 fails on a project without the list of allowed tools.
            json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": [] });
        write_file(&self.client_state_file(), &client_state.to_string());
    }

    /// Returns the path of a file in the project. An absolute path is returned unchanged.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.project().join(relative)
    }

    /// Writes a file of the project and creates its parent folders.
    pub fn write(&self, relative: impl AsRef<Path>, text: &str) {
        write_file(&self.path(relative), text);
    }

    /// Writes the user's own settings. Only these can start programs, send data out or raise limits; a
    /// project's settings cannot.
    pub fn write_user_settings(&self, settings: &Value) {
        let mut settings = settings.clone();
        if let (true, Some(settings)) = (self.with_client, settings.as_object_mut()) {
            settings.entry(FRESHNESS_WAIT_SETTING).or_insert_with(|| WRITER_TIMEOUT_MS.into());
        }
        write_file(&self.user_settings_file(), &settings.to_string());
    }

    fn user_settings_file(&self) -> PathBuf {
        self.home().join(".config/plimsoll/settings.json")
    }

    /// Writes an executable file, creates its parent folders and returns its path.
    pub fn write_program(&self, relative: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.path(relative);
        write_file(&path, text);
        let result = fs::set_permissions(&path, fs::Permissions::from_mode(0o755));
        assert!(result.is_ok(), "cannot make {} a program: {result:?}", path.display());
        path
    }

    /// Reads a file of the project. Panics with its path if that fails.
    pub fn read(&self, relative: impl AsRef<Path>) -> String {
        read_file(&self.path(relative))
    }

    /// Reads a JSON file of the project. Panics with its path if that fails.
    pub fn read_json(&self, relative: impl AsRef<Path>) -> Value {
        parse_json_file(&self.path(relative))
    }

    /// Returns true if the project has this file or folder.
    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.path(relative).exists()
    }

    /// Runs git in the project and returns its output without the final line break. Panics if git fails.
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.project(), args)
    }

    fn git_in(&self, project: &Path, args: &[&str]) -> String {
        // Otherwise git starts a second git that checks whether maintenance is due.
        let args = [&["-c", "maintenance.auto=false"], args].concat();
        let finished = Launch::new("git", &args, project.to_path_buf(), self.env_with_path(&[])).run();
        assert_eq!(finished.code, Some(0), "git {args:?} failed: {}", finished.stderr);
        finished.stdout.trim_end().to_owned()
    }

    /// Sets an environment variable for every program started from now on.
    pub fn set_env(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.variables.retain(|(variable, _)| *variable != name);
        self.variables.push((name, value.into()));
    }

    /// Returns the whole environment of a program started here. The client is on its PATH once there is a
    /// model for it.
    pub fn env(&self) -> Vec<(String, String)> {
        let client_program = self.with_client.then(|| self.client_program());
        let client_folder = client_program.and_then(|path| path.parent().map(Path::to_path_buf));
        let plimsoll_folder = self.with_plimsoll_programs.then(bin_dir);
        self.env_with_path(&plimsoll_folder.into_iter().chain(client_folder).collect::<Vec<_>>())
    }

    fn env_with_path(&self, first_on_path_folders: &[PathBuf]) -> Vec<(String, String)> {
        let temporary = self.root.join("tmp").display().to_string();
        let defaults = [
            ("HOME", self.home().display().to_string()),
            ("PATH", search_path(first_on_path_folders).to_string_lossy().into_owned()),
            ("TMPDIR", temporary.clone()),
            ("CLAUDE_CODE_TMPDIR", temporary),
            ("TERM", "xterm-256color".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            // Otherwise the client takes whatever shell is installed.
            ("SHELL", "/bin/bash".to_owned()),
            // For the short sessions here, the client's JIT compiler and concurrent garbage collector cost
            // more than they save.
            ("BUN_JSC_useJIT", "0".to_owned()),
            ("BUN_JSC_useConcurrentGC", "0".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("ANTHROPIC_API_KEY", API_KEY.to_owned()),
            // No server listens there: without a scripted model the client reaches nothing.
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ];
        let mut env: Vec<(String, String)> =
            defaults.into_iter().map(|(name, value)| (name.into(), value)).collect();
        env.retain(|(name, _)| self.variables.iter().all(|(variable, _)| variable != name));
        env.extend(self.variables.clone());
        env
    }

    /// Prepares a program: in the project, with this world's environment, empty stdin and a timeout of two
    /// minutes.
    pub fn command(&self, program: impl AsRef<Path>, args: &[&str]) -> Launch {
        Launch::new(program.as_ref(), args, self.project(), self.env())
    }

    /// Prepares the client.
    pub fn claude(&self, args: &[&str]) -> Launch {
        self.command(self.client_program(), args)
    }

    /// Prepares the `plimsoll` command.
    pub fn plimsoll(&self, args: &[&str]) -> Launch {
        self.command(bin_dir().join("plimsoll"), args)
    }

    /// Prepares one of our hook programs with its payload on stdin.
    pub fn hook(&self, name: &str, payload: &(impl Display + ?Sized)) -> Launch {
        self.command(bin_dir().join(name), &[]).stdin(payload.to_string())
    }

    /// Waits until the condition is true. Panics with the description `what` on a timeout.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool, description: &str) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {description}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Returns all transcripts that the client wrote in this world, including those of subagents, sorted by
    /// path.
    pub fn transcript_paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        collect_transcripts(&self.home().join(".claude/projects"), &mut paths);
        paths.sort();
        paths
    }

    /// Kills every process that still runs with this world's HOME, even if its parent has changed.
    pub fn kill_leftovers(&self) {
        self.leftovers.kill_all();
    }
}

/// Fails the test if the replayed client had no recording of a request: then the session proves nothing,
/// whatever the test asserted.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let unrecorded = fs::read_to_string(self.unrecorded_requests_file()).unwrap_or_default();
        assert!(
            unrecorded.is_empty(),
            "the replayed client has no recording of {unrecorded}: take the real one"
        );
    }
}

/// Returns the state of a client whose first-start questions are answered, so that its screen shows no
/// dialog.
fn initial_client_state() -> Value {
    json!({
        "hasCompletedOnboarding": true,
        "lastOnboardingVersion": CLIENT_VERSION,
        "theme": "dark",
        "bypassPermissionsModeAccepted": true,
        "customApiKeyResponses": { "approved": [&API_KEY[API_KEY.len() - 20..]], "rejected": [] },
        "projects": {},
    })
}

/// Writes what `git init -b main` creates, and a user name. Faster than git, and nearly every test starts
/// with it.
fn write_empty_repository(git_folder: &Path) {
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
