//! The folder of a project that has nothing of ours in it, among the user's state; and whether it has.

use super::below;
use crate::{disk, environment};
use plimsoll_protocol::settings;
use std::path::{Path, PathBuf};

/// `~/.local/state/plimsoll/projects/NAME-HASH`: the name for people, the hash for two projects of one name. None
/// where there is no home.
pub(super) fn folder(root: &Path) -> Option<PathBuf> {
    let home = environment::state_home()?;
    let root = disk::canonical(root);
    let hash = plimsoll_domain::digest::sha256(&[root.as_os_str().as_encoded_bytes()]);
    let name = root.file_name().map(|name| plain(&name.to_string_lossy())).unwrap_or_default();
    Some(below(&home, &["/plimsoll/projects/", &name, "-", &hash[..16]]))
}

/// A name that every shell, archive and eye takes as it is.
fn plain(name: &str) -> String {
    const LONGEST: usize = 40;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let name = name.trim_start_matches('.');
    name.chars().take(LONGEST).map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// True when the settings of the project itself have our hooks; in the user's own folder the file is the user's.
pub(super) fn is_installed_in(root: &Path) -> bool {
    let names_us = |path: &PathBuf| {
        let text = disk::read_text(path).ok().flatten().unwrap_or_default();
        // Most files do not even mention us.
        text.contains("plimsoll-") && settings::has_our_hooks(&text).unwrap_or(false)
    };
    let found = ["/.claude/settings.json", "/.claude/settings.local.json"].map(|name| below(root, &[name]));
    found.into_iter().filter(names_us).any(|path| !is_users(&path))
}

fn is_users(path: &Path) -> bool {
    environment::client_folder()
        .is_some_and(|folder| disk::canonical(&folder.join("settings.json")) == disk::canonical(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folders_name_stays_readable_and_plain() {
        for (name, expected) in [
            ("plimsoll", "plimsoll"),
            ("a b\u{e9}/", "a_b__"),
            ("..", ""),
            (".hidden", "hidden"),
            ("x\ny", "x_y"),
        ] {
            assert_eq!(plain(name), expected);
        }
        assert_eq!(plain(&"x".repeat(300)).len(), 40);
    }
}
