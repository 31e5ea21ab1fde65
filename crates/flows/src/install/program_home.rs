//! The folder in which our programs stay. npm keeps them where it empties and moves folders (`node_modules`, the cache of npx),
//! and a plugin's folder goes with its next version, but a hook's entry in a settings file outlives both. From there they are
//! copied into a folder of the user's, under their version, and entries name that one.

use super::hook_links;
use plimsoll_domain::build::Build;
use plimsoll_store::{StoreError, disk, environment};
use std::path::{Path, PathBuf};

/// What is copied. The names of the hook programs are links that are made there: npm's packages keep none.
const FILES: [&str; 5] = ["plimsoll", hook_links::FILE, "plimsoll-mcp", "plimsoll-linear", "plimsoll-otel"];

/// The folder that entries name: the one of this program, or the one into which it is copied.
pub fn program_home() -> Option<PathBuf> {
    let own = environment::own_directory()?;
    if is_passing(&own, &disk::exists) { lasting().or(Some(own)) } else { Some(own) }
}

/// True where our programs are copied before hooks are set up.
pub(crate) fn is_copied() -> bool {
    environment::own_directory().is_some_and(|own| is_passing(&own, &disk::exists) && lasting().is_some())
}

/// True for a folder in which programs do not stay.
fn is_passing(folder: &Path, is_there: &dyn Fn(&Path) -> bool) -> bool {
    let is_npms = folder.components().any(|part| part.as_os_str() == "node_modules");
    // A plugin with our programs has them in `programs/SYSTEM`.
    let is_plugins = || {
        let plugin = folder.parent().and_then(Path::parent);
        plugin.is_some_and(|plugin| is_there(&plugin.join(".claude-plugin/plugin.json")))
    };
    is_npms || is_plugins()
}

fn lasting() -> Option<PathBuf> {
    let versions = environment::data_home()?.join("plimsoll/versions");
    Some(versions.join(Build::own("plimsoll").version).join("bin"))
}

/// Makes what entries will name: copies the programs where they do not stay where they are, then makes the names of the hooks
/// that are missing. Answers where they were copied to, if they were.
///
/// # Errors
/// If the folder takes no file.
pub fn ready_programs() -> Result<Option<PathBuf>, StoreError> {
    let Some(home) = program_home() else { return Ok(None) };
    let own = environment::own_directory().filter(|own| *own != home);
    if let Some(own) = &own {
        let files = FILES.iter().map(|name| (own.join(name), home.join(name)));
        files
            .filter(|(from, _)| disk::exists(from))
            .try_for_each(|(from, to)| disk::copy_program(&from, &to))?;
    }
    hook_links::link_hook_programs(&home)?;
    Ok(own.map(|_| home))
}

/// True for a program that [`ready_programs`] will make.
pub(super) fn will_be_made(path: &Path) -> bool {
    let from = |path: &Path| {
        let own = environment::own_directory()?;
        Some(own.join(path.file_name()?))
    };
    let is_there = |path: &Path| disk::exists(path) || from(path).is_some_and(|from| disk::exists(&from));
    is_there(path) || hook_links::is_name(path) && is_there(&path.with_file_name(hook_links::FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npms_folders_and_a_plugins_are_passing_and_no_others() {
        let plugin = Path::new("/home/dev/.claude/plugins/cache/plimsoll/plimsoll/0.1.0");
        let is_there = |path: &Path| path == plugin.join(".claude-plugin/plugin.json");
        for (folder, passing) in [
            ("/home/dev/.local/bin", false),
            ("/home/dev/.cargo/bin", false),
            ("/home/dev/node_modules_of_mine/bin", false),
            ("/home/dev/project/node_modules/@plimsoll/linux-x64/bin", true),
            ("/home/dev/.npm/_npx/0f1e2d/node_modules/@plimsoll/linux-x64/bin", true),
            ("/usr/lib/node_modules/plimsoll/node_modules/@plimsoll/linux-x64/bin", true),
            ("/home/dev/.claude/plugins/cache/plimsoll/plimsoll/0.1.0/programs/Linux x86_64", true),
            ("/home/dev/.claude/plugins/cache/plimsoll/plimsoll/0.1.0/programs", false),
            ("/", false),
        ] {
            assert_eq!(is_passing(Path::new(folder), &is_there), passing, "{folder}");
        }
    }
}
