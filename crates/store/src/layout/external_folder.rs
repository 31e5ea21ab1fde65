//! The folder in the user's state for a project that has none of our files inside, and the check whether our
//! hooks are installed in the project.

use crate::{disk, environment};
use plimsoll_protocol::settings;
use plimsoll_system::paths::append_to_path;
use std::path::{Path, PathBuf};

/// Returns `~/.local/state/plimsoll/projects/NAME-HASH`: the name is for people, the hash distinguishes
/// projects with the same name. `None` without a home.
pub(super) fn external_data_folder(root: &Path) -> Option<PathBuf> {
    let home = environment::state_home()?;
    let root = disk::canonicalize_or_keep(root);
    let hash = plimsoll_domain::digest::sha256_hex(&[root.as_os_str().as_encoded_bytes()]);
    let name = root.file_name().map(|name| sanitize_folder_name(&name.to_string_lossy())).unwrap_or_default();
    Some(append_to_path(&home, &["/plimsoll/projects/", &name, "-", &hash[..16]]))
}

/// Replaces characters that are unsafe in file names, and shortens the name.
fn sanitize_folder_name(name: &str) -> String {
    const MAX_NAME_CHARS: usize = 40;
    let is_safe_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name = name.trim_start_matches('.');
    name.chars().take(MAX_NAME_CHARS).map(|c| if is_safe_char(c) { c } else { '_' }).collect()
}

/// Returns true if the project's own settings contain our hooks. The user's settings file does not count,
/// even if it is in this folder.
pub(super) fn has_our_hooks_in_project_settings(root: &Path) -> bool {
    let has_our_hooks = |path: &PathBuf| {
        let text = disk::read_text(path).ok().flatten().unwrap_or_default();
        // The cheap check comes first: most files do not mention Plimsoll at all.
        text.contains("plimsoll-") && settings::has_our_hooks(&text).unwrap_or(false)
    };
    let settings_files =
        ["/.claude/settings.json", "/.claude/settings.local.json"].map(|name| append_to_path(root, &[name]));
    settings_files.into_iter().filter(has_our_hooks).any(|path| !is_user_settings_file(&path))
}

fn is_user_settings_file(path: &Path) -> bool {
    environment::client_config_folder().is_some_and(|folder| {
        disk::canonicalize_or_keep(&folder.join("settings.json")) == disk::canonicalize_or_keep(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sanitized_folder_name_stays_readable() {
        for (name, expected) in [
            ("plimsoll", "plimsoll"),
            ("a b\u{e9}/", "a_b__"),
            ("..", ""),
            (".hidden", "hidden"),
            ("x\ny", "x_y"),
        ] {
            assert_eq!(sanitize_folder_name(name), expected);
        }
        assert_eq!(sanitize_folder_name(&"x".repeat(300)).len(), 40);
    }
}
