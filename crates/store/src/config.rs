//! Settings: the project's over the user's over the defaults; and the client's own keys that move the auto-compact threshold.

use crate::layout::below;
use crate::{Project, StoreError, disk, environment, ledger, sessions};
use plimsoll_domain::record::ClientSettings;
use plimsoll_domain::settings::authority::{self, Ignored};
use plimsoll_domain::{RunId, SessionId, Settings};
use plimsoll_protocol::client_settings::CompactionKeys;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The settings in force, and what of the files is not.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The settings in force.
    pub settings: Settings,
    /// A file with a fault: what it says does not hold until it is repaired.
    pub fault: Option<StoreError>,
    /// Keys that are ignored in their file, by file.
    pub ignored: Vec<(PathBuf, Ignored)>,
}

/// The settings in force. A file with a fault is named; without the user's the defaults hold, without the project's
/// the user's.
pub fn load(project: &Project) -> (Settings, Option<StoreError>) {
    let loaded = load_telling(project);
    (loaded.settings, loaded.fault)
}

/// The same, with what does not hold.
pub fn load_telling(project: &Project) -> Loaded {
    of_file(project, &own_file(project, ledger::run_of_environment().as_ref()))
}

/// The settings by the files as they are now, also in a run: the doctor checks the files themselves.
pub fn load_of_files(project: &Project) -> Loaded {
    of_file(project, &project.settings())
}

/// The settings of a run, for the program that works for it.
pub fn load_of_run(project: &Project, run_id: &RunId) -> Settings {
    of_file(project, &own_file(project, Some(run_id))).settings
}

/// The project's file. In a run it is as it was at the run's start: thresholds that an agent moves meanwhile do not hold.
fn own_file(project: &Project, run_id: Option<&RunId>) -> PathBuf {
    let kept = run_id.and_then(|run_id| ledger::preferences_path(project, run_id));
    kept.filter(|kept| disk::exists(kept)).unwrap_or_else(|| project.settings())
}

fn of_file(project: &Project, own: &Path) -> Loaded {
    combine(user_file().as_deref(), |user| lies_outside(user, project.root()), project, own)
}

/// A user's file that is in the project is the project's: an agent can write it. A project that is the home itself
/// has no outside.
fn lies_outside(user: &Path, root: &Path) -> bool {
    !user.starts_with(root) || environment::home().is_some_and(|home| home == root)
}

/// The user's own settings, for every project; none without a home.
pub fn user_file() -> Option<PathBuf> {
    let of_home = || Some(below(environment::home()?, &["/.config/plimsoll/settings.json"]));
    let folder = environment::variable("XDG_CONFIG_HOME").map(PathBuf::from);
    folder.map(|folder| below(&folder, &["/plimsoll/settings.json"])).or_else(of_home)
}

/// What a file says: its keys, for putting another file's over them (null where there is none), and what they mean.
#[derive(Debug, Default)]
struct Content {
    keys: Value,
    settings: Settings,
}

fn combine(
    user: Option<&Path>,
    is_outside: impl FnOnce(&Path) -> bool,
    project: &Project,
    own: &Path,
) -> Loaded {
    let content = match user.map(|path| of_user(path, project.root())).transpose() {
        Ok(content) => content.flatten(),
        Err(error) => return Loaded { fault: Some(error), ..Loaded::default() },
    };
    let user = user.filter(|_| content.is_some());
    let Content { mut keys, settings } = content.unwrap_or_default();
    let mut loaded = Loaded { settings, fault: None, ignored: Vec::new() };
    if let Some(user) = user.filter(|user| !is_outside(user)) {
        let said = keys.clone();
        let ignored = authority::restrict(&mut keys, &Value::Null);
        if keys != said {
            loaded.settings = match sense(&keys, user) {
                Ok(settings) => settings,
                Err(error) => return Loaded { fault: Some(error), ..Loaded::default() },
            };
        }
        loaded.note(user, ignored);
    }
    match read(own) {
        Ok(None) => {}
        Ok(Some(content)) => match with_project(&keys, content, own) {
            Ok((settings, ignored)) => {
                loaded.settings = settings;
                loaded.note(own, ignored);
            }
            Err(error) => loaded.fault = Some(error),
        },
        Err(error) => loaded.fault = Some(error),
    }
    loaded
}

impl Loaded {
    fn note(&mut self, file: &Path, ignored: Vec<Ignored>) {
        self.ignored.extend(ignored.into_iter().map(|one| (file.to_owned(), one)));
    }
}

/// The user's settings, with what they say of this project alone.
fn of_user(path: &Path, root: &Path) -> Result<Option<Content>, StoreError> {
    read(path)?.map(|content| with_own_part(content, path, root)).transpose()
}

#[inline(never)]
fn with_own_part(content: Content, path: &Path, root: &Path) -> Result<Content, StoreError> {
    let Content { mut keys, mut settings } = content;
    let projects = keys.as_object_mut().and_then(|keys| keys.remove("projects"));
    if let Some(projects) = projects {
        let canonical = disk::canonical(root);
        let here = |folder: &str| {
            let folder = folder
                .strip_prefix("~/")
                .and_then(|below| Some(environment::home()?.join(below)))
                .unwrap_or_else(|| PathBuf::from(folder));
            folder == root || folder == canonical
        };
        let projects = if let Value::Object(projects) = projects { projects } else { Map::new() };
        for (_, mut own) in projects.into_iter().filter(|(folder, _)| here(folder)) {
            let _ = own.as_object_mut().and_then(|keys| keys.remove("projects"));
            plimsoll_domain::state::merge(&mut keys, own);
        }
        settings = sense(&keys, path)?;
    }
    match settings.problem() {
        Some(why) => Err(fault(path, why)),
        None => Ok(Content { keys, settings }),
    }
}

/// A project's settings over the user's. They must make sense together, before anything is taken out of them.
#[inline(never)]
fn with_project(user: &Value, own: Content, path: &Path) -> Result<(Settings, Vec<Ignored>), StoreError> {
    let has_user = user.as_object().is_some_and(|keys| !keys.is_empty());
    let over_user = |own: &Value| {
        let mut together = user.clone();
        plimsoll_domain::state::merge(&mut together, own.clone());
        together
    };
    // Mostly only one of the two files is there, and nothing in it is ignored: it was read once, and that is all.
    let together = if has_user { sense(&over_user(&own.keys), path)? } else { own.settings };
    if let Some(why) = together.problem() {
        return Err(fault(path, why));
    }
    let mut keys = own.keys.clone();
    let ignored = authority::restrict(&mut keys, user);
    let settings = if keys == own.keys { together } else { sense(&over_user(&keys), path)? };
    Ok((settings, ignored))
}

fn sense(keys: &Value, path: &Path) -> Result<Settings, StoreError> {
    sessions::parse(keys.to_string().as_bytes()).map_err(|error| fault(path, error))
}

/// One file, of which each key is known and has the right type, so that a fault is reported with its place.
fn read(path: &Path) -> Result<Option<Content>, StoreError> {
    let Some(bytes) = disk::read(path)? else { return Ok(None) };
    let settings = sessions::parse(&bytes).map_err(|error| fault(path, error))?;
    let keys = sessions::parse(&bytes).map_err(|error| fault(path, error))?;
    Ok(Some(Content { keys, settings }))
}

fn fault(path: &Path, why: impl std::fmt::Display) -> StoreError {
    StoreError::Settings { path: path.to_owned(), why: why.to_string() }
}

/// Where an administrator keeps the client's settings on Linux.
pub const MANAGED: &str = "/etc/claude-code";

/// Finds the transcript of a session in the client's own folder: there is a folder for each project, named by rules of the client.
pub fn client_transcript(session_id: &SessionId) -> Option<PathBuf> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    if session_id.is_empty() || !session_id.chars().all(is_plain) {
        return None;
    }
    let projects = environment::client_folder()?.join("projects");
    let names = disk::names(&projects).into_iter();
    names.map(|name| projects.join(name).join(format!("{session_id}.jsonl"))).find(|path| disk::exists(path))
}

/// Returns the transcript that a path names, without links on the way; `None` if Claude Code keeps no transcripts in that folder. What
/// Claude Code's sandbox lets a command write is elsewhere.
pub fn kept_transcript(path: &Path) -> Option<PathBuf> {
    let (folder, name) = (disk::canonical(path.parent()?), path.file_name()?);
    let projects = disk::canonical(&environment::client_folder()?.join("projects"));
    (folder.parent()? == projects).then(|| folder.join(name))
}

/// The file in which the client keeps what it remembers, and some settings: beside its folder, or in a folder of the
/// user's choice.
fn client_state() -> Option<PathBuf> {
    let home = || environment::home().map(Path::to_owned);
    let folder = environment::variable("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(home);
    folder.map(|folder| folder.join(".claude.json"))
}

/// The client's settings files, the nearest first.
fn client_settings_files(project: &Project) -> [Option<PathBuf>; 3] {
    [
        Some(project.root().join(".claude/settings.local.json")),
        Some(project.root().join(".claude/settings.json")),
        environment::client_folder().map(|folder| folder.join("settings.json")),
    ]
}

/// Returns what the client's settings say about compaction, if a settings file was written since `known` was read.
pub fn changed_client_settings(project: &Project, known: Option<&ClientSettings>) -> Option<ClientSettings> {
    let files = client_settings_files(project);
    let nanoseconds = |path: &Option<PathBuf>| {
        let written = disk::modified(path.as_deref()?)?.duration_since(std::time::UNIX_EPOCH).ok()?;
        u64::try_from(written.as_nanos()).ok()
    };
    let written = files.each_ref().map(|path| nanoseconds(path).unwrap_or_default());
    known.is_none_or(|known| known.written != written).then(|| read_client_settings(files, written))
}

/// The client's own keys that move the auto-compact threshold: the nearest file that speaks wins. Hooks inherit the variables
/// of the client, but not its settings: those they read themselves.
#[inline(never)]
fn read_client_settings(files: [Option<PathBuf>; 3], written: [u64; 3]) -> ClientSettings {
    let mut found = ClientSettings { written, ..ClientSettings::default() };
    for path in files.into_iter().chain([client_state()]).flatten() {
        let Ok(Some(bytes)) = disk::read(&path) else { continue };
        let keys = CompactionKeys::parse(&bytes);
        found.auto_compact_enabled = found.auto_compact_enabled.or(keys.auto_compact_enabled);
        found.compaction_windows.extend(keys.windows());
    }
    found
}

/// What the client's settings say about compaction now.
pub fn client_settings(project: &Project) -> ClientSettings {
    changed_client_settings(project, None).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        disk::replace(path, text.as_bytes(), crate::Durability::Lazy).unwrap();
    }

    /// The settings of a user and of a project, together.
    fn together(user: &str, own: &str) -> Loaded {
        let folder = tempfile::tempdir().unwrap();
        let (path, project) = (folder.path().join("user.json"), Project::at(&folder.path().join("project")));
        write(&path, &user.replace("PROJECT", &project.root().display().to_string()));
        write(&project.settings(), own);
        combine(Some(&path), |_| true, &project, &project.settings())
    }

    #[test]
    fn the_project_overrides_the_user_field_by_field_and_a_fault_is_named() {
        let user = r#"{"levels": {"l1": 50}, "grace_batches": 3}"#;
        let settings = together(user, r#"{"levels": {"l2": 80}}"#).settings;
        assert_eq!((settings.levels.l1, settings.levels.l2, settings.grace_batches), (50.0, 80.0, 3));
        for (text, word) in
            [("{\"levls\": {}}", "levls"), ("{\"levels\": {\"l1\": 99}}", "rise"), ("{", "EOF")]
        {
            let loaded = together(user, text);
            let error = loaded.fault.unwrap().to_string();
            assert!(error.contains(word) && error.contains("plimsoll.json"), "{error}");
            assert_eq!(loaded.settings.grace_batches, 3, "a project's fault costs the user nothing");
        }
    }

    #[test]
    fn what_starts_a_program_holds_only_where_the_user_says_it() {
        let own = r#"{"linear": {"issue": "EVIL-1", "key_command": "evil"},
            "statusline": {"lines": [["clock", "new"]],
                           "segments": {"clock": {"command": ["evil"]}, "new": {"command": ["evil"]}}}}"#;
        let user =
            r#"{"linear": {"issue": "ENG-1"}, "statusline": {"segments": {"clock": {"command": ["date"]}}}}"#;
        let loaded = together(user, own);
        assert!(loaded.fault.is_none(), "{:?}", loaded.fault);
        let (linear, look) = (loaded.settings.linear, loaded.settings.statusline);
        assert_eq!((linear.issue.as_deref(), linear.key_command), (Some("ENG-1"), None));
        assert_eq!(look.of("clock").unwrap().command.as_deref(), Some(&["date".to_owned()][..]));
        assert_eq!(look.of("new").unwrap().command, None);
        assert_eq!(look.lines, [["clock", "new"]], "its layout holds");
        assert_eq!(loaded.ignored.len(), 4);
    }

    #[test]
    fn the_user_says_what_holds_in_one_project() {
        let user = r#"{"breaker": {"refused": 2}, "projects": {"/elsewhere": {"grace_batches": 9},
            "PROJECT": {"linear": {"issue": "ENG-7"}, "breaker": {"refused": 8}}}}"#;
        let settings = together(user, r#"{"breaker": {"refused": 7}}"#).settings;
        assert_eq!(settings.linear.issue.as_deref(), Some("ENG-7"));
        assert_eq!((settings.breaker.refused, settings.grace_batches), (7, 5));
        let loaded = together(r#"{"projects": {"PROJECT": {"levels": {"l1": 99}}}}"#, "{}");
        assert!(loaded.fault.unwrap().to_string().contains("user.json"));
    }

    #[test]
    fn a_users_file_in_the_project_is_the_projects() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let user = folder.path().join(".config/plimsoll/settings.json");
        assert!(!lies_outside(&user, project.root()));
        write(&user, r#"{"linear": {"issue": "EVIL-1"}, "grace_batches": 3}"#);
        let loaded = combine(Some(&user), |_| false, &project, &project.settings());
        assert_eq!((loaded.settings.linear.issue, loaded.settings.grace_batches), (None, 3));
        assert_eq!(loaded.ignored[0].0, user);
    }

    /// The settings of a project as a run keeps them: a file as a user writes it, copied when the run starts.
    const KEPT: &str = include_str!("../tests/fixtures/run-preferences.json");

    #[test]
    fn the_settings_that_a_run_has_kept_hold() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path()).with_runs_in(&folder.path().join("runs"));
        write(&ledger::preferences_path(&project, &"r1".into()).unwrap(), KEPT);
        let kept = own_file(&project, Some(&"r1".into()));
        assert!(kept.ends_with("runs/r1/preferences.json"), "{kept:?}");
        let loaded = combine(None, |_| true, &project, &kept);
        assert!(loaded.fault.is_none() && loaded.ignored.is_empty(), "{loaded:?}");
        let (mut holds, said) = (serde_json::to_value(&loaded.settings).unwrap(), parsed(KEPT));
        // Only the user's own file says it.
        assert_eq!(
            holds.as_object_mut().unwrap().remove("linear"),
            Some(parsed("{\"issue\":null,\"key_command\":null}"))
        );
        assert_eq!(holds.as_object_mut().unwrap().remove("protect"), Some(parsed("[]")));
        let models = serde_json::to_value(plimsoll_domain::settings::Models::default()).unwrap();
        assert_eq!(holds.as_object_mut().unwrap().remove("models"), Some(models));
        assert_eq!(holds, said, "every key of it is known and its value holds");
        let defaults = serde_json::to_value(Settings::default()).unwrap();
        for (key, value) in said.as_object().unwrap() {
            assert_ne!(defaults.get(key), Some(value), "{key} must differ from its default");
        }
        let written = serde_json::to_string(&loaded.settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&written).unwrap(), loaded.settings);
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }
}
