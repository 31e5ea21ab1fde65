//! Settings: the project's over the user's over the defaults; and the client's own keys that move the ceiling.

use crate::{Project, StoreError, disk, environment, sessions};
use protocol::client_settings::CompactionKeys;
use serde_json::Value;
use session::Settings;
use session::record::ClientSettings;
use std::path::{Path, PathBuf};

/// The settings in force. A file with a fault is named; the defaults hold until it is mended.
pub fn load(project: &Project) -> (Settings, Option<StoreError>) {
    let files: Vec<PathBuf> = user_file().into_iter().chain([project.settings()]).collect();
    match combine(&files) {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::default(), Some(error)),
    }
}

/// The user's own settings, for every project; none without a home.
pub fn user_file() -> Option<PathBuf> {
    environment::variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| environment::home().map(|home| home.join(".config")))
        .map(|folder| folder.join("plimsoll/settings.json"))
}

fn combine(files: &[PathBuf]) -> Result<Settings, StoreError> {
    let mut combined: Option<Value> = None;
    for path in files {
        let Some(bytes) = disk::read(path)? else { continue };
        let value = parse(path, &bytes)?;
        match &mut combined {
            Some(below) => session::state::merge(below, value),
            None => combined = Some(value),
        }
    }
    combined.map_or_else(
        || Ok(Settings::default()),
        |value| serde_json::from_value(value).map_err(|error| fault(Path::new("(combined)"), error)),
    )
}

/// Each file must make sense by itself, so that a fault is reported where it stands.
fn parse(path: &Path, bytes: &[u8]) -> Result<Value, StoreError> {
    let settings: Settings = sessions::parse(bytes).map_err(|error| fault(path, error))?;
    if let Some(why) = settings.problem() {
        return Err(fault(path, why));
    }
    serde_json::from_slice(bytes).map_err(|error| fault(path, error))
}

fn fault(path: &Path, why: impl std::fmt::Display) -> StoreError {
    StoreError::Settings { path: path.to_owned(), why: why.to_string() }
}

/// Where an administrator keeps the client's settings on Linux.
pub const MANAGED: &str = "/etc/claude-code";

/// The client's own folder of the user.
pub fn client_folder() -> Option<PathBuf> {
    environment::variable("CLAUDE_CONFIG_DIR")
        .map(PathBuf::from)
        .or_else(|| environment::home().map(|home| home.join(".claude")))
}

/// The file in which the client keeps what it remembers, and some settings: beside its folder, or in a folder of the
/// user's choice.
fn client_state() -> Option<PathBuf> {
    let folder = environment::variable("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(environment::home);
    folder.map(|folder| folder.join(".claude.json"))
}

/// The client's own keys that move the ceiling: the nearest file that speaks wins.
pub fn client_settings(project: &Project) -> ClientSettings {
    let home = client_folder();
    let mut found = ClientSettings::default();
    let nearest_first = [
        Some(project.root().join(".claude/settings.local.json")),
        Some(project.root().join(".claude/settings.json")),
        home.as_ref().map(|folder| folder.join("settings.json")),
        client_state(),
    ];
    for path in nearest_first.into_iter().flatten() {
        let Ok(Some(bytes)) = disk::read(&path) else { continue };
        let keys = CompactionKeys::parse(&bytes);
        found.auto_compact_enabled = found.auto_compact_enabled.or(keys.auto_compact_enabled);
        found.auto_compact_window = found.auto_compact_window.or(keys.auto_compact_window);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_overrides_the_user_field_by_field_and_a_fault_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) = (folder.path().join("user.json"), folder.path().join("project.json"));
        let write =
            |path: &Path, text: &str| disk::replace(path, text.as_bytes(), crate::Durability::Lazy).unwrap();
        write(&user, r#"{"levels": {"l1": 50}, "grace_batches": 3}"#);
        write(&project, r#"{"levels": {"l2": 80}}"#);
        let both = [user, project.clone()];
        let settings = combine(&both).unwrap();
        assert_eq!((settings.levels.l1, settings.levels.l2, settings.grace_batches), (50.0, 80.0, 3));
        for (text, word) in
            [("{\"levls\": {}}", "levls"), ("{\"levels\": {\"l1\": 99}}", "rise"), ("{", "EOF")]
        {
            write(&project, text);
            let error = combine(&both).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("project.json"), "{error}");
        }
    }
}
