//! The folder in which our programs stay, and the paths by which settings name them. npm keeps programs where it empties and moves
//! folders (`node_modules`, the cache of npx), and a plugin's folder goes with its next version, but a hook's entry in a settings file
//! outlives both. From there they are copied into a folder of the user's, under their version, and a link leads to the version that was
//! set up last.

use super::hook_links;
use crate::optional_program;
use plimsoll_domain::build::Build;
use plimsoll_protocol::settings::PROGRAMS;
use plimsoll_store::{Project, StoreError, disk, environment};
use std::path::{Path, PathBuf};

/// The programs that have a name of their own: all but the hooks.
pub(super) const NAMED_PROGRAMS: [&str; 5] =
    ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel"];

/// The folder that contains our programs: the one of this program, or the one into which it is copied.
pub fn program_home() -> Option<PathBuf> {
    let own = environment::own_directory()?;
    if is_passing(&own, &disk::exists) { version_folder().or(Some(own)) } else { Some(own) }
}

/// True where our programs are copied before hooks are set up.
pub(crate) fn is_copied() -> bool {
    environment::own_directory()
        .is_some_and(|own| is_passing(&own, &disk::exists) && version_folder().is_some())
}

/// The folder into which the programs will be copied, if they will be.
pub fn planned_copy() -> Option<PathBuf> {
    program_home().filter(|_| is_copied())
}

/// Returns the absolute path by which a new entry of a settings file names one of our programs: a client that an editor, the desktop
/// or cron starts has another PATH than the user's shell.
pub(super) fn settings_path(program: &str) -> Option<PathBuf> {
    // In a dry run nothing is there yet.
    let copied = stable_link().filter(|_| is_copied()).filter(|link| is_free_for_link(link));
    copied.map_or_else(|| lasting_path(program), |folder| Some(folder.join(program)))
}

/// Returns the path of one of our programs that an upgrade keeps, where there is one: package managers replace the folder of a version
/// and keep the folder of links (`/opt/homebrew/bin`, `~/.nix-profile/bin`, `~/.local/bin`).
pub(crate) fn lasting_path(program: &str) -> Option<PathBuf> {
    let home = program_home()?;
    let own = home.join(program);
    let leads_to = |folder: &Path, name: &str| {
        let (own, found) = (home.join(name), folder.join(name));
        disk::exists(&found) && disk::canonical(&found) == disk::canonical(&own)
    };
    // One folder for all programs: the user's commands alone are linked from other folders, too.
    let has_hooks = |folder: &Path| leads_to(folder, PROGRAMS[0]) || leads_to(folder, hook_links::FILE);
    let lasting = lasting_folders().into_iter().find(|folder| has_hooks(folder));
    let in_it = lasting.filter(|folder| leads_to(folder, program)).map(|folder| folder.join(program));
    Some(in_it.unwrap_or(own))
}

/// The folders in which links to our programs may stay, the best first.
fn lasting_folders() -> Vec<PathBuf> {
    let others = environment::invoked_directory().into_iter().chain(stable_link());
    command_folders()
        .into_iter()
        .chain(others.filter(|folder| may_stay(folder, &projects_places())))
        .collect()
}

/// The folders of the PATH in which programs stay.
pub(super) fn command_folders() -> Vec<PathBuf> {
    let places = projects_places();
    environment::search_folders().into_iter().filter(|folder| may_stay(folder, &places)).collect()
}

/// True for a folder in which programs stay, and which no clone can have brought.
fn may_stay(folder: &Path, places: &[PathBuf]) -> bool {
    !is_passing(folder, &disk::exists)
        && optional_program::why_ignored(&folder.join("plimsoll"), places).is_none()
}

/// The folders of the project here. In the home folder, and where it is a repository, the user's own folders lie in the project, and
/// no folder is the project's.
fn projects_places() -> Vec<PathBuf> {
    let home = environment::home().map(disk::canonical);
    let mut places = optional_program::places_of(&Project::of_command());
    places.retain(|place| !home.as_ref().is_some_and(|home| home.starts_with(place)));
    places
}

/// True for a folder in which programs do not stay.
fn is_passing(folder: &Path, is_there: &dyn Fn(&Path) -> bool) -> bool {
    let is_npms = folder.components().any(|part| part.as_os_str() == "node_modules");
    // A plugin with our programs has them in `programs/SYSTEM`, and what starts them in `bin`.
    let is_plugins = || {
        let mut above = folder.ancestors().skip(1).take(2);
        above.any(|plugin| is_there(&plugin.join(".claude-plugin/plugin.json")))
    };
    is_npms || is_plugins()
}

/// Returns the folder of every version that was copied, and of the link to the one set up last.
fn data_folder() -> Option<PathBuf> {
    Some(environment::data_home()?.join("plimsoll"))
}

fn version_folder() -> Option<PathBuf> {
    Some(data_folder()?.join("versions").join(Build::own("plimsoll").version).join("bin"))
}

/// The link to the folder of the version that was set up last.
pub(super) fn stable_link() -> Option<PathBuf> {
    Some(data_folder()?.join("bin"))
}

/// True if nothing but a link is at the path.
pub(super) fn is_free_for_link(path: &Path) -> bool {
    disk::is_link(path) || !disk::exists(path)
}

/// Copies the programs where they do not stay where they are, and makes the names of the hooks that are missing. Returns the folder into
/// which they were copied, if they were.
///
/// # Errors
/// If the folder takes no file.
pub(crate) fn ready_programs() -> Result<Option<PathBuf>, StoreError> {
    let Some(home) = program_home() else { return Ok(None) };
    let own = environment::own_directory().filter(|own| *own != home);
    if let Some(own) = &own {
        // The names of the hook programs are links that are made there: npm's packages keep none.
        let files = NAMED_PROGRAMS.iter().chain([&hook_links::FILE]);
        let files = files.map(|name| (own.join(name), home.join(name)));
        files
            .filter(|(from, _)| disk::exists(from))
            .try_for_each(|(from, to)| disk::copy_program(&from, &to))?;
    }
    hook_links::link_hook_programs(&home)?;
    Ok(own.map(|_| home))
}

/// Does what [`ready_programs`] does, and lets the link lead to the copied version. `plimsoll run` does not: an older version that is
/// tried once must not become the one of all sessions.
///
/// # Errors
/// If a folder takes no file.
pub fn set_up_programs() -> Result<Option<PathBuf>, StoreError> {
    let copied = ready_programs()?;
    if let (Some(folder), Some(link)) = (&copied, stable_link())
        && is_free_for_link(&link)
        && disk::link_target(&link).as_ref() != Some(folder)
    {
        disk::replace_link(folder, &link)?;
    }
    Ok(copied)
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
            ("/home/dev/.claude/plugins/cache/plimsoll/plimsoll/0.1.0/programs", true),
            ("/home/dev/.claude/plugins/cache/plimsoll/plimsoll/0.1.0/bin", true),
            ("/home/dev/.claude/plugins/cache/plimsoll/plimsoll/0.1.0", false),
            ("/", false),
        ] {
            assert_eq!(is_passing(Path::new(folder), &is_there), passing, "{folder}");
        }
    }
}
