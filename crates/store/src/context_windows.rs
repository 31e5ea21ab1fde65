//! Context window sizes learned from the client: model id (with its suffix) to tokens.

use crate::{Durability, Project, StoreError, disk, sessions};
use std::collections::BTreeMap;

/// Loads the context windows that earlier sessions reported.
pub fn load_context_windows(project: &Project) -> BTreeMap<String, u64> {
    sessions::read_json_if_valid(&project.windows_path()).unwrap_or_default()
}

/// Saves a model's context window if it is new or has changed; 0 is ignored.
pub fn save_nonzero_context_window_if_changed(
    project: &Project,
    model: &str,
    window_tokens: u64,
) -> Result<(), StoreError> {
    let mut windows = load_context_windows(project);
    if window_tokens == 0 || windows.get(model) == Some(&window_tokens) {
        return Ok(());
    }
    // No lock is taken: if two sessions save at the same moment, one value is lost and saved again later.
    sessions::set_aside_if_invalid(&project.windows_path())?;
    windows.insert(model.to_owned(), window_tokens);
    disk::replace(
        &project.windows_path(),
        &serde_json::to_vec_pretty(&windows).unwrap_or_default(),
        Durability::Lazy,
    )
}
