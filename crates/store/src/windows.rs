//! Windows learned from the client: model id (with its suffix) → tokens.

use crate::{Durability, Project, StoreError, disk, sessions};
use std::collections::BTreeMap;

/// The windows of earlier sessions.
pub fn load(project: &Project) -> BTreeMap<String, u64> {
    sessions::load_parsed(&project.windows()).unwrap_or_default()
}

/// Remembers a window; writes only what is new.
pub fn learn(project: &Project, model: &str, tokens: u64) -> Result<(), StoreError> {
    let mut windows = load(project);
    if tokens == 0 || windows.get(model) == Some(&tokens) {
        return Ok(());
    }
    // Without a lock: of two sessions that learn at the same moment one is lost, and learns it again.
    sessions::clear_the_way(&project.windows())?;
    windows.insert(model.to_owned(), tokens);
    disk::replace(
        &project.windows(),
        &serde_json::to_vec_pretty(&windows).unwrap_or_default(),
        Durability::Lazy,
    )
}
