//! Loads settings (the project's override the user's, which override the defaults), and the client's own keys
//! that change the auto-compact threshold.

use crate::{Project, StoreError, disk, environment, ledger, sessions};
use plimsoll_domain::record::ClientCompactionSettings;
use plimsoll_domain::settings::authority::{self, IgnoredKey};
use plimsoll_domain::{RunId, SessionId, Settings};
use plimsoll_protocol::client_settings::CompactionSettings;
use plimsoll_system::paths::append_to_path;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The effective settings, with the errors and ignored keys of their files.
#[derive(Debug, Default)]
pub struct LoadedSettings {
    pub settings: Settings,
    /// A settings file with an error. Its content is ignored until it is repaired.
    pub error: Option<StoreError>,
    /// Keys that are ignored, each with its file.
    pub ignored_keys: Vec<(PathBuf, IgnoredKey)>,
}

/// Loads the effective settings, and the error of an invalid file if there is one. With an error in the user's
/// file the defaults apply; with an error in the project's file the user's settings apply.
pub fn load_settings(project: &Project) -> (Settings, Option<StoreError>) {
    let loaded = load_with_ignored_keys(project);
    (loaded.settings, loaded.error)
}

/// Loads the effective settings, with the keys that are ignored.
pub fn load_with_ignored_keys(project: &Project) -> LoadedSettings {
    load_with_project_file(
        project,
        &project_settings_path(project, ledger::run_id_from_environment().as_ref()),
    )
}

/// Loads the settings from the files as they are now, even inside a run, because `plimsoll doctor` checks the
/// files themselves.
pub fn load_from_current_files(project: &Project) -> LoadedSettings {
    load_with_project_file(project, &project.settings_path())
}

/// Loads the settings of a run, for the program that works for it.
pub fn load_for_run(project: &Project, run_id: &RunId) -> Settings {
    load_with_project_file(project, &project_settings_path(project, Some(run_id))).settings
}

/// Returns the path of the project's settings. In a run it is the copy from the run's start, so that
/// thresholds an agent changes meanwhile have no effect.
fn project_settings_path(project: &Project, run_id: Option<&RunId>) -> PathBuf {
    let run_copy = run_id.and_then(|run_id| ledger::settings_copy_path(project, run_id));
    run_copy.filter(|path| disk::exists(path)).unwrap_or_else(|| project.settings_path())
}

fn load_with_project_file(project: &Project, project_file: &Path) -> LoadedSettings {
    load_and_merge_user_and_project_files(
        user_settings_path().as_deref(),
        |user_path| is_outside_project(user_path, project.root()),
        project,
        project_file,
    )
}

/// Returns true if the user's settings file is outside the project. A file inside counts as the project's,
/// because an agent can write it. So does a file that is reached through a link in the project. If the project
/// is the home folder itself, every file counts as outside.
fn is_outside_project(user_path: &Path, root: &Path) -> bool {
    !disk::is_inside(root, user_path)
        || environment::home_folder().is_some_and(|home| disk::is_same_path(home, root))
}

/// Returns the path of the user's own settings, which apply to every project; `None` without a home.
pub fn user_settings_path() -> Option<PathBuf> {
    environment::config_home().map(|folder| append_to_path(&folder, &["/plimsoll/settings.json"]))
}

/// The content of one settings file: its raw keys, for merging with another file (null if there is no file),
/// and the parsed settings.
#[derive(Debug, Default)]
struct SettingsContent {
    keys: Value,
    settings: Settings,
}

fn load_and_merge_user_and_project_files(
    user_path: Option<&Path>,
    is_user_file_unrestricted: impl FnOnce(&Path) -> bool,
    project: &Project,
    project_path: &Path,
) -> LoadedSettings {
    let user_content = match user_path.map(|path| read_user_settings(path, project.root())).transpose() {
        Ok(content) => content.flatten(),
        Err(error) => return LoadedSettings { error: Some(error), ..LoadedSettings::default() },
    };
    let user_path = user_path.filter(|_| user_content.is_some());
    let SettingsContent { mut keys, settings } = user_content.unwrap_or_default();
    let mut loaded = LoadedSettings { settings, error: None, ignored_keys: Vec::new() };
    if let Some(user_path) = user_path {
        let mut allowed_keys = keys.clone();
        let ignored_keys = authority::remove_forbidden_keys(&mut allowed_keys, &Value::Null);
        // The location of the file matters only for these keys, which few users set. Every hook loads the settings.
        let has_forbidden_keys = !ignored_keys.is_empty() || allowed_keys != keys;
        if has_forbidden_keys && !is_user_file_unrestricted(user_path) {
            if allowed_keys != keys {
                keys = allowed_keys;
                loaded.settings = match settings_from_keys(&keys, user_path) {
                    Ok(settings) => settings,
                    Err(error) => return LoadedSettings { error: Some(error), ..LoadedSettings::default() },
                };
            }
            loaded.add_ignored_keys(user_path, ignored_keys);
        }
    }
    match read_settings_file(project_path) {
        Ok(None) => {}
        Ok(Some(content)) => match merge_allowed_project_keys_over_user(&keys, content, project_path) {
            Ok((settings, ignored_keys)) => {
                loaded.settings = settings;
                loaded.add_ignored_keys(project_path, ignored_keys);
            }
            Err(error) => loaded.error = Some(error),
        },
        Err(error) => loaded.error = Some(error),
    }
    loaded
}

impl LoadedSettings {
    fn add_ignored_keys(&mut self, file: &Path, ignored_keys: Vec<IgnoredKey>) {
        self.ignored_keys.extend(ignored_keys.into_iter().map(|key| (file.to_owned(), key)));
    }
}

/// Reads the user's settings and applies the section for this project.
fn read_user_settings(path: &Path, root: &Path) -> Result<Option<SettingsContent>, StoreError> {
    read_settings_file(path)?
        .map(|content| apply_project_section_and_validate(content, path, root))
        .transpose()
}

#[inline(never)]
fn apply_project_section_and_validate(
    content: SettingsContent,
    path: &Path,
    root: &Path,
) -> Result<SettingsContent, StoreError> {
    let SettingsContent { mut keys, mut settings } = content;
    let projects = keys.as_object_mut().and_then(|keys| keys.remove("projects"));
    if let Some(projects) = projects {
        let canonical_root = disk::canonicalize_or_keep(root);
        let expand_home = |folder: &str| {
            folder
                .strip_prefix("~/")
                .and_then(|relative_path| Some(environment::home_folder()?.join(relative_path)))
                .unwrap_or_else(|| PathBuf::from(folder))
        };
        let is_this_project_by_text = |folder: &str| {
            let folder = expand_home(folder);
            folder == root || folder == canonical_root
        };
        let projects = if let Value::Object(projects) = projects { projects } else { Map::new() };
        // A folder in another spelling is looked up on the disk, which is only done if no section has this one.
        let has_section_by_text = projects.keys().any(|folder| is_this_project_by_text(folder));
        let is_this_project = |folder: &str| {
            if has_section_by_text {
                is_this_project_by_text(folder)
            } else {
                disk::is_same_path(&expand_home(folder), root)
            }
        };
        for (_, mut section) in projects.into_iter().filter(|(folder, _)| is_this_project(folder)) {
            let _ = section.as_object_mut().and_then(|keys| keys.remove("projects"));
            plimsoll_domain::state::merge_keeping_unknown_fields(&mut keys, section);
        }
        settings = settings_from_keys(&keys, path)?;
    }
    match settings.find_validation_error() {
        Some(reason) => Err(settings_error(path, reason)),
        None => Ok(SettingsContent { keys, settings }),
    }
}

/// Merges a project's settings over the user's. Validates the merge before the forbidden keys are removed.
#[inline(never)]
fn merge_allowed_project_keys_over_user(
    user_keys: &Value,
    project_content: SettingsContent,
    path: &Path,
) -> Result<(Settings, Vec<IgnoredKey>), StoreError> {
    let has_user_keys = user_keys.as_object().is_some_and(|keys| !keys.is_empty());
    let merge_over_user = |project_keys: &Value| {
        let mut merged_keys = user_keys.clone();
        plimsoll_domain::state::merge_keeping_unknown_fields(&mut merged_keys, project_keys.clone());
        merged_keys
    };
    // Usually only one of the two files exists and nothing in it is ignored; then the first parse is enough.
    let merged_settings = if has_user_keys {
        settings_from_keys(&merge_over_user(&project_content.keys), path)?
    } else {
        project_content.settings
    };
    if let Some(reason) = merged_settings.find_validation_error() {
        return Err(settings_error(path, reason));
    }
    let mut keys = project_content.keys.clone();
    let ignored_keys = authority::remove_forbidden_keys(&mut keys, user_keys);
    let settings = if keys == project_content.keys {
        merged_settings
    } else {
        settings_from_keys(&merge_over_user(&keys), path)?
    };
    Ok((settings, ignored_keys))
}

fn settings_from_keys(keys: &Value, path: &Path) -> Result<Settings, StoreError> {
    sessions::parse_json_unless_list(keys.to_string().as_bytes()).map_err(|error| settings_error(path, error))
}

/// Reads one settings file. Unknown keys and wrong types are errors that name the file and the position.
fn read_settings_file(path: &Path) -> Result<Option<SettingsContent>, StoreError> {
    let Some(bytes) = disk::read(path)? else { return Ok(None) };
    let settings = sessions::parse_json_unless_list(&bytes).map_err(|error| settings_error(path, error))?;
    let keys = sessions::parse_json_unless_list(&bytes).map_err(|error| settings_error(path, error))?;
    Ok(Some(SettingsContent { keys, settings }))
}

fn settings_error(path: &Path, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Settings { path: path.to_owned(), reason: reason.to_string() }
}

/// Returns the folder in which an administrator keeps the client's settings on this system.
pub fn managed_settings_folder() -> &'static Path {
    Path::new(managed_settings_folder_on(std::env::consts::OS))
}

fn managed_settings_folder_on(system: &str) -> &'static str {
    match system {
        "macos" => "/Library/Application Support/ClaudeCode",
        _ => "/etc/claude-code",
    }
}

/// Finds the transcript of a session in the client's own folder. The client names the folder of each project
/// by its own rules, so all of them are searched.
pub fn find_client_transcript(session_id: &SessionId) -> Option<PathBuf> {
    let is_safe_char = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if session_id.is_empty() || !session_id.chars().all(is_safe_char) {
        return None;
    }
    let projects_folder = environment::client_config_folder()?.join("projects");
    let folder_names = disk::list_names(&projects_folder).into_iter();
    folder_names
        .map(|name| projects_folder.join(name).join(format!("{session_id}.jsonl")))
        .find(|path| disk::is_file(path) && !disk::is_link(path))
}

/// Returns the path of a transcript without links in its folder; `None` if the client keeps no transcripts in
/// that folder. The client's sandbox does not let commands write there.
pub fn resolve_client_transcript(path: &Path) -> Option<PathBuf> {
    let (folder, name) = (disk::canonicalize_or_keep(path.parent()?), path.file_name()?);
    let projects_folder = disk::canonicalize_or_keep(&environment::client_config_folder()?.join("projects"));
    (folder.parent()? == projects_folder).then(|| folder.join(name))
}

/// Returns the path of the file in which the client keeps its own state and some settings: next to its
/// folder, or in `CLAUDE_CONFIG_DIR`.
fn client_state_path() -> Option<PathBuf> {
    let home = || environment::home_folder().map(Path::to_owned);
    let config_folder = environment::variable("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(home);
    config_folder.map(|folder| folder.join(".claude.json"))
}

/// Returns the paths of the client's settings files, the one with the highest precedence first.
fn client_settings_paths_by_precedence(project: &Project) -> [Option<PathBuf>; 3] {
    [
        Some(project.root().join(".claude/settings.local.json")),
        Some(project.root().join(".claude/settings.json")),
        environment::client_config_folder().map(|folder| folder.join("settings.json")),
    ]
}

/// Reads the client's compaction settings if a settings file was modified since `previous` was read.
pub fn read_client_settings_if_modified(
    project: &Project,
    previous: Option<&ClientCompactionSettings>,
) -> Option<ClientCompactionSettings> {
    let settings_paths = client_settings_paths_by_precedence(project);
    let modified_at_ns = |path: &Option<PathBuf>| {
        let modified = disk::modified_at(path.as_deref()?)?.duration_since(std::time::UNIX_EPOCH).ok()?;
        u64::try_from(modified.as_nanos()).ok()
    };
    let modified_times_ns = settings_paths.each_ref().map(|path| modified_at_ns(path).unwrap_or_default());
    previous
        .is_none_or(|cached| cached.modified_times_ns != modified_times_ns)
        .then(|| read_compaction_settings(settings_paths, modified_times_ns))
}

/// Reads the client's own keys that change the auto-compact threshold; the first file that sets a key wins.
/// Hooks inherit the client's environment variables but not its settings, so they are read from the files.
#[inline(never)]
fn read_compaction_settings(
    settings_paths: [Option<PathBuf>; 3],
    modified_times_ns: [u64; 3],
) -> ClientCompactionSettings {
    let mut settings = ClientCompactionSettings { modified_times_ns, ..ClientCompactionSettings::default() };
    for path in settings_paths.into_iter().chain([client_state_path()]).flatten() {
        let Ok(Some(bytes)) = disk::read(&path) else { continue };
        let file_settings = CompactionSettings::parse(&bytes);
        settings.auto_compact_enabled = settings.auto_compact_enabled.or(file_settings.auto_compact_enabled);
        settings.compaction_windows.extend(file_settings.model_windows_then_default_window());
    }
    settings
}

/// Reads the client's current compaction settings.
pub fn load_client_settings(project: &Project) -> ClientCompactionSettings {
    read_client_settings_if_modified(project, None).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_folder_of_managed_settings() {
        let table = [("linux", "/etc/claude-code"), ("macos", "/Library/Application Support/ClaudeCode")];
        for (system, folder) in table {
            assert_eq!(managed_settings_folder_on(system), folder, "{system}");
        }
        assert_eq!(managed_settings_folder(), Path::new(managed_settings_folder_on(std::env::consts::OS)));
    }

    fn write(path: &Path, text: &str) {
        disk::replace(path, text.as_bytes(), crate::Durability::Lazy).unwrap();
    }

    /// Loads the settings of a user and of a project together.
    fn load_user_and_project(user: &str, project_text: &str) -> LoadedSettings {
        let folder = tempfile::tempdir().unwrap();
        let (path, project) =
            (folder.path().join("user.json"), Project::with_local_files(&folder.path().join("project")));
        let root_in_json = project.root().display().to_string().replace('\\', "\\\\");
        write(&path, &user.replace("PROJECT", &root_in_json));
        write(&project.settings_path(), project_text);
        load_and_merge_user_and_project_files(Some(&path), |_| true, &project, &project.settings_path())
    }

    #[test]
    fn the_project_overrides_the_user_and_a_file_with_an_error_is_named() {
        let user = r#"{"levels": {"l1": 50}, "grace_batches": 3}"#;
        let settings = load_user_and_project(user, r#"{"levels": {"l2": 80}}"#).settings;
        assert_eq!((settings.levels.l1, settings.levels.l2, settings.grace_batches), (50.0, 80.0, 3));
        for (text, expected) in
            [("{\"levls\": {}}", "levls"), ("{\"levels\": {\"l1\": 99}}", "rise"), ("{", "EOF")]
        {
            let loaded = load_user_and_project(user, text);
            let error = loaded.error.unwrap().to_string();
            assert!(error.contains(expected) && error.contains("plimsoll.json"), "{error}");
            assert_eq!(loaded.settings.grace_batches, 3, "a project's fault costs the user nothing");
        }
    }

    #[test]
    fn only_the_user_can_configure_programs_that_are_started() {
        let project_text = r#"{"linear": {"issue": "EVIL-1", "key_command": "evil"},
            "statusline": {"lines": [["clock", "new"]],
                           "segments": {"clock": {"command": ["evil"]}, "new": {"command": ["evil"]}}}}"#;
        let user =
            r#"{"linear": {"issue": "ENG-1"}, "statusline": {"segments": {"clock": {"command": ["date"]}}}}"#;
        let loaded = load_user_and_project(user, project_text);
        assert!(loaded.error.is_none(), "{:?}", loaded.error);
        let (linear, statusline) = (loaded.settings.linear, loaded.settings.statusline);
        assert_eq!((linear.issue.as_deref(), linear.key_command), (Some("ENG-1"), None));
        assert_eq!(
            statusline.segment_settings("clock").unwrap().command.as_deref(),
            Some(&["date".to_owned()][..])
        );
        assert_eq!(statusline.segment_settings("new").unwrap().command, None);
        assert_eq!(statusline.lines, [["clock", "new"]], "its layout holds");
        assert_eq!(loaded.ignored_keys.len(), 4);
    }

    #[test]
    fn the_user_can_set_settings_for_one_project() {
        let user = r#"{"breaker": {"refused": 2}, "projects": {"/elsewhere": {"grace_batches": 9},
            "PROJECT": {"linear": {"issue": "ENG-7"}, "breaker": {"refused": 8}}}}"#;
        let settings = load_user_and_project(user, r#"{"breaker": {"refused": 7}}"#).settings;
        assert_eq!(settings.linear.issue.as_deref(), Some("ENG-7"));
        assert_eq!((settings.breaker.refused, settings.grace_batches), (7, 5));
        let loaded = load_user_and_project(r#"{"projects": {"PROJECT": {"levels": {"l1": 99}}}}"#, "{}");
        assert!(loaded.error.unwrap().to_string().contains("user.json"));
        // The folder in another spelling; without the folder itself, its text decides.
        let load_with_folder = |folder: &str| {
            let user = r#"{"projects": {"FOLDER": {"grace_batches": 9}}}"#.replace("FOLDER", folder);
            load_user_and_project(&user, "{}").settings.grace_batches
        };
        for (folder, expected) in
            [("PROJECT/", 9), ("PROJECT/.claude/..", 9), ("PROJECT/../project", 9), ("PROJECT/.claude", 5)]
        {
            assert_eq!(load_with_folder(folder), expected, "{folder}");
        }
    }

    #[test]
    fn a_user_settings_file_inside_the_project_counts_as_the_projects() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        let user = folder.path().join(".config/plimsoll/settings.json");
        assert!(!is_outside_project(&user, project.root()));
        let (alias, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = |target: &Path, link: &Path| crate::test_links::symlink(target, link).unwrap();
        link(folder.path(), &alias.path().join("config"));
        link(other.path(), &folder.path().join("linked"));
        for (config_home, is_outside) in [
            (alias.path().join("config"), false),
            (alias.path().join("config/new"), false),
            (other.path().join("../").join(folder.path().file_name().unwrap()), false),
            // A session can change this link.
            (folder.path().join("linked"), false),
            (alias.path().join("config/linked"), false),
            (alias.path().to_owned(), true),
            (other.path().join("new"), true),
        ] {
            let user_path = config_home.join("plimsoll/settings.json");
            assert_eq!(is_outside_project(&user_path, folder.path()), is_outside, "{config_home:?}");
        }
        write(&user, r#"{"linear": {"issue": "EVIL-1"}, "grace_batches": 3}"#);
        let loaded =
            load_and_merge_user_and_project_files(Some(&user), |_| false, &project, &project.settings_path());
        assert_eq!((loaded.settings.linear.issue, loaded.settings.grace_batches), (None, 3));
        assert_eq!(loaded.ignored_keys[0].0, user);
    }

    /// The settings of a project as a run stores them: a user's file, copied when the run starts.
    const RUN_SETTINGS: &str = include_str!("../tests/fixtures/run-preferences.json");

    #[test]
    fn the_settings_copy_of_a_run_is_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path()).with_runs_folder(&folder.path().join("runs"));
        write(&ledger::settings_copy_path(&project, &"r1".into()).unwrap(), RUN_SETTINGS);
        let run_copy = project_settings_path(&project, Some(&"r1".into()));
        assert!(run_copy.ends_with("runs/r1/preferences.json"), "{run_copy:?}");
        let loaded = load_and_merge_user_and_project_files(None, |_| true, &project, &run_copy);
        assert!(loaded.error.is_none() && loaded.ignored_keys.is_empty(), "{loaded:?}");
        let (mut effective_keys, written_keys) =
            (serde_json::to_value(&loaded.settings).unwrap(), parse_json(RUN_SETTINGS));
        // Only the user's own file can set these.
        assert_eq!(
            effective_keys.as_object_mut().unwrap().remove("linear"),
            Some(parse_json("{\"issue\":null,\"key_command\":null}"))
        );
        assert_eq!(effective_keys.as_object_mut().unwrap().remove("protect"), Some(parse_json("[]")));
        let models = serde_json::to_value(plimsoll_domain::settings::Models::default()).unwrap();
        assert_eq!(effective_keys.as_object_mut().unwrap().remove("models"), Some(models));
        assert_eq!(
            effective_keys.as_object_mut().unwrap().remove("compaction"),
            Some(parse_json("\"client\""))
        );
        assert_eq!(effective_keys, written_keys, "every key of it is known and its value holds");
        let defaults = serde_json::to_value(Settings::default()).unwrap();
        for (key, value) in written_keys.as_object().unwrap() {
            assert_ne!(defaults.get(key), Some(value), "{key} must differ from its default");
        }
        let serialized = serde_json::to_string(&loaded.settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&serialized).unwrap(), loaded.settings);
    }

    fn parse_json(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }
}
