//! One test's own world: a home, a project, an environment, and nothing of the computer's user.

mod clients;
mod launch;
mod leftovers;
mod stable_text;

pub use launch::{Finished, Launch, Running};

use crate::client::{CLIENT_VERSION, search_path};
use crate::places::bin_dir;
use serde_json::{Value, json};
use std::fmt::Display;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Looks like a key and opens nothing.
const API_KEY: &str = "sk-ant-api03-scripted-model-only-0000000000000";

/// How long a test waits for what must come: so long that no slow or shared machine makes it fail, since nothing but the
/// failure itself costs this time. A test that promises a pace measures it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// Where there is a client, hooks wait so long for its writer: on a busy machine it may come later than users would wait for it.
const FRESHNESS_WAIT: &str = "freshness_wait_ms";
const WRITER_TIMEOUT_MS: u64 = 5_000;

/// A temporary folder with a home and a project; gone, with every process that still uses it, when dropped.
pub struct World {
    // Declared before the folder: what runs is ended before its files go.
    leftovers: leftovers::Leftovers,
    _folder: TempDir,
    root: PathBuf,
    set: Vec<(String, String)>,
    with_git: bool,
    with_plimsoll: bool,
    with_client: bool,
    client: Option<PathBuf>,
}

impl World {
    /// A world whose project is a git repository with one commit on `main`.
    #[expect(clippy::new_without_default, reason = "a world is made, not a default value")]
    pub fn new() -> World {
        World::build(true, true)
    }

    /// The same, and nothing of ours has ever been in the project.
    pub fn untouched() -> World {
        World::build(true, false)
    }

    /// A world whose project is a plain folder.
    pub fn without_git() -> World {
        World::build(false, true)
    }

    /// The same world with only the client on its PATH: our own programs are not even built.
    pub fn without_plimsoll(mut self) -> World {
        self.with_plimsoll = false;
        self
    }

    fn build(with_git: bool, with_ours: bool) -> World {
        let folder = tempfile::Builder::new().prefix("plimsoll-test-").tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("the temporary folder exists");
        let home = root.join("home");
        for name in ["home", "tmp"] {
            fs::create_dir(root.join(name)).expect("the temporary folder is writable");
        }
        let leftovers = leftovers::Leftovers::of(home);
        let set = Vec::new();
        let world = World {
            leftovers,
            _folder: folder,
            root,
            set,
            with_git,
            with_plimsoll: true,
            with_client: false,
            client: None,
        };
        write(&world.client_file(), &first_client_file().to_string());
        if with_ours {
            world.project_at("project");
        } else {
            world.untouched_project_at("project");
        }
        world
    }

    /// Puts a run into the project, as one that this world's user began: its state, its record and its ledger.
    pub fn put_run(&self, state: &Value) {
        let run_id = state["run_id"].as_str().expect("a run has an id");
        let folder = self.runs().join(run_id);
        let project = self.project().canonicalize().expect("the project is there");
        let record = json!({ "run_id": run_id, "project": project });
        self.write(folder.join("record.json"), &record.to_string());
        self.write(folder.join("ledger.json"), &state.to_string());
        self.write(".claude/ralph-state.json", &state.to_string());
    }

    /// Where the records of its runs lie.
    pub fn runs(&self) -> PathBuf {
        self.home().join(".local/state/plimsoll/runs")
    }

    /// The HOME of everything started here.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The folder everything is started in.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Makes another project beside the first, known to the client as trusted. Our files are in it, as after
    /// `plimsoll init` or a run.
    pub fn project_at(&self, name: &str) -> PathBuf {
        let project = self.untouched_project_at(name);
        fs::create_dir_all(project.join(".claude/plimsoll")).expect("the temporary folder is writable");
        project
    }

    /// The same without a file of ours: what is noted about its sessions is kept outside.
    pub fn untouched_project_at(&self, name: &str) -> PathBuf {
        let project = self.root.join(name);
        fs::create_dir_all(&project).expect("the temporary folder is writable");
        self.trust(&project);
        if self.with_git {
            self.first_commit(&project);
        }
        project
    }

    fn first_commit(&self, project: &Path) {
        empty_repository(&project.join(".git"));
        write(&project.join("README.md"), "A project.\n");
        self.git_in(project, &["add", "README.md"]);
        self.git_in(project, &["commit", "--quiet", "-m", "First commit"]);
    }

    fn client_file(&self) -> PathBuf {
        self.home().join(".claude.json")
    }

    /// Answers the client's question whether this folder is trusted.
    fn trust(&self, project: &Path) {
        let mut settings: Value = parse(&self.client_file());
        settings["projects"][project.display().to_string()] =
            // Client 1.0.128 stumbles over a project without the list that it keeps there.
            json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": [] });
        write(&self.client_file(), &settings.to_string());
    }

    /// A path in the project (an absolute path stays as it is).
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.project().join(relative)
    }

    /// Writes a file of the project, with its folders.
    pub fn write(&self, relative: impl AsRef<Path>, text: &str) {
        write(&self.path(relative), text);
    }

    /// Writes the user's own settings: a project's file starts no program, sends nothing out and lifts no bound.
    pub fn write_user_settings(&self, settings: &Value) {
        let mut settings = settings.clone();
        if let (true, Some(settings)) = (self.with_client, settings.as_object_mut()) {
            settings.entry(FRESHNESS_WAIT).or_insert_with(|| WRITER_TIMEOUT_MS.into());
        }
        write(&self.users_settings(), &settings.to_string());
    }

    fn users_settings(&self) -> PathBuf {
        self.home().join(".config/plimsoll/settings.json")
    }

    /// Writes a program, with its folders, and says where it lies.
    pub fn write_program(&self, relative: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.path(relative);
        write(&path, text);
        let made = fs::set_permissions(&path, fs::Permissions::from_mode(0o755));
        assert!(made.is_ok(), "cannot make {} a program: {made:?}", path.display());
        path
    }

    /// Reads a file of the project; panics with its path.
    pub fn read(&self, relative: impl AsRef<Path>) -> String {
        read(&self.path(relative))
    }

    /// Reads a JSON file of the project; panics with its path.
    pub fn json(&self, relative: impl AsRef<Path>) -> Value {
        parse(&self.path(relative))
    }

    /// Whether the project has this file or folder.
    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.path(relative).exists()
    }

    /// Runs git in the project and returns its output without the last line end; panics if git fails.
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.project(), args)
    }

    fn git_in(&self, project: &Path, args: &[&str]) -> String {
        // It would start another git to look whether there is something to tidy up.
        let args = [&["-c", "maintenance.auto=false"], args].concat();
        let finished = Launch::new("git", &args, project.to_path_buf(), self.env_with(&[])).run();
        assert_eq!(finished.code, Some(0), "git {args:?} failed: {}", finished.stderr);
        finished.stdout.trim_end().to_owned()
    }

    /// Sets a variable for everything started from now on.
    pub fn set_env(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.set.retain(|(old, _)| *old != name);
        self.set.push((name, value.into()));
    }

    /// The whole environment of a program started here; the client is on its PATH once there is a model for it.
    pub fn env(&self) -> Vec<(String, String)> {
        let client = self.with_client.then(|| self.client());
        let client = client.and_then(|path| path.parent().map(Path::to_path_buf));
        let ours = self.with_plimsoll.then(bin_dir);
        self.env_with(&ours.into_iter().chain(client).collect::<Vec<_>>())
    }

    fn env_with(&self, first_on_path: &[PathBuf]) -> Vec<(String, String)> {
        let temporary = self.root.join("tmp").display().to_string();
        let usual = [
            ("HOME", self.home().display().to_string()),
            ("PATH", search_path(first_on_path).to_string_lossy().into_owned()),
            ("TMPDIR", temporary.clone()),
            ("CLAUDE_CODE_TMPDIR", temporary),
            ("TERM", "xterm-256color".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            // Else the client takes whatever shell is installed.
            ("SHELL", "/bin/bash".to_owned()),
            // For its short sessions here what the client's engine compiles, and does beside it, costs more than it saves.
            ("BUN_JSC_useJIT", "0".to_owned()),
            ("BUN_JSC_useConcurrentGC", "0".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("ANTHROPIC_API_KEY", API_KEY.to_owned()),
            // Nobody listens there: without a scripted model the client reaches nothing.
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ];
        let mut env: Vec<(String, String)> =
            usual.into_iter().map(|(name, value)| (name.into(), value)).collect();
        env.retain(|(name, _)| self.set.iter().all(|(set, _)| set != name));
        env.extend(self.set.clone());
        env
    }

    /// Prepares a program: in the project, with this world's environment, empty stdin, two minutes.
    pub fn command(&self, program: impl AsRef<Path>, args: &[&str]) -> Launch {
        Launch::new(program.as_ref(), args, self.project(), self.env())
    }

    /// Prepares the real client.
    pub fn claude(&self, args: &[&str]) -> Launch {
        self.command(self.client(), args)
    }

    /// Prepares our command line.
    pub fn plimsoll(&self, args: &[&str]) -> Launch {
        self.command(bin_dir().join("plimsoll"), args)
    }

    /// Prepares one of our hook programs with its payload.
    pub fn hook(&self, name: &str, stdin_json: &(impl Display + ?Sized)) -> Launch {
        self.command(bin_dir().join(name), &[]).stdin(stdin_json.to_string())
    }

    /// Waits until something is so; panics with `what` when the time is over.
    pub fn wait_until(&self, mut is_so: impl FnMut() -> bool, what: &str) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
            sleep(Duration::from_millis(20));
        }
    }

    /// All transcripts the client wrote in this world, of subagents too, sorted by path.
    pub fn transcripts(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect_transcripts(&self.home().join(".claude/projects"), &mut found);
        found.sort();
        found
    }

    /// Ends every process that still runs with this world's HOME, wherever its parent went.
    pub fn end_leftovers(&self) {
        self.leftovers.end();
    }
}

/// A session that the replay could not play proves nothing, whatever the test made of its end.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let refused = fs::read_to_string(self.refusals()).unwrap_or_default();
        assert!(refused.is_empty(), "the replayed client has no recording of {refused}: take the real one");
    }
}

/// What a user has answered long ago: with it the client's screen asks nothing.
fn first_client_file() -> Value {
    json!({
        "hasCompletedOnboarding": true,
        "lastOnboardingVersion": CLIENT_VERSION,
        "theme": "dark",
        "bypassPermissionsModeAccepted": true,
        "customApiKeyResponses": { "approved": [&API_KEY[API_KEY.len() - 20..]], "rejected": [] },
        "projects": {},
    })
}

/// What `git init -b main` makes, and who commits: nearly every test begins with it.
fn empty_repository(folder: &Path) {
    for name in ["hooks", "objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        fs::create_dir_all(folder.join(name)).expect("the temporary folder is writable");
    }
    write(&folder.join("HEAD"), "ref: refs/heads/main\n");
    write(&folder.join("info/exclude"), "");
    let config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
                  [user]\n\tname = Test\n\temail = test@example.invalid\n";
    write(&folder.join("config"), config);
}

fn collect_transcripts(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            collect_transcripts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            found.push(path);
        }
    }
}

fn write(path: &Path, text: &str) {
    let folder = path.parent().expect("a file lies in a folder");
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    assert!(written.is_ok(), "cannot write {}: {written:?}", path.display());
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

fn parse(path: &Path) -> Value {
    let text = read(path);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{} is not JSON: {error}\n{text}", path.display()))
}
