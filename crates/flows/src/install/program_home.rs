//! The permanent folder of our programs, and the paths by which settings name them. npm keeps programs in
//! folders that it empties and moves (`node_modules`, the cache of npx), and a plugin's folder is replaced by
//! its next version, but a hook's entry in a settings file outlives both. From such folders the programs are
//! copied into a folder of the user, under their version, and a link leads to the version that was set up
//! last.

use super::hook_links;
use crate::optional_program;
use plimsoll_domain::build::BuildInfo;
use plimsoll_protocol::settings::PROGRAM_NAMES;
use plimsoll_store::{Project, StoreError, disk, environment};
use std::path::{Path, PathBuf};

/// The programs with a file of their own: all but the hooks.
pub(super) const COMMAND_PROGRAMS: [&str; 5] =
    ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel"];

/// Returns the folder of our programs: this program's folder, or the one into which it is copied.
pub fn own_folder_or_permanent_copy() -> Option<PathBuf> {
    let own_folder = environment::executable_folder()?;
    if is_in_node_modules_or_plugin(&own_folder, &disk::exists) {
        own_version_folder().or(Some(own_folder))
    } else {
        Some(own_folder)
    }
}

/// Returns true if our programs are copied before hooks are set up.
pub(crate) fn are_programs_copied() -> bool {
    environment::executable_folder().is_some_and(|own_folder| {
        is_in_node_modules_or_plugin(&own_folder, &disk::exists) && own_version_folder().is_some()
    })
}

/// Returns the folder into which the programs will be copied, if they will be.
pub fn planned_copy_folder() -> Option<PathBuf> {
    own_folder_or_permanent_copy().filter(|_| are_programs_copied())
}

/// Returns the absolute path by which a new entry of a settings file names one of our programs. A path is
/// needed because a client that an editor, the desktop or cron starts has another PATH than the user's shell.
pub(super) fn program_path_for_settings(program: &str) -> Option<PathBuf> {
    // In a dry run the link does not exist yet, so its path is computed.
    let version_link =
        current_version_link().filter(|_| are_programs_copied()).filter(|link| is_free_for_link(link));
    version_link.map_or_else(|| upgrade_safe_path_or_own_path(program), |folder| Some(folder.join(program)))
}

/// Returns the path of one of our programs that stays valid after an upgrade, otherwise its own path: package
/// managers replace the folder of a version and keep the folder of links (`/opt/homebrew/bin`,
/// `~/.nix-profile/bin`, `~/.local/bin`).
pub(crate) fn upgrade_safe_path_or_own_path(program: &str) -> Option<PathBuf> {
    let home = own_folder_or_permanent_copy()?;
    let own_program = home.join(program);
    let links_to_own_file = |folder: &Path, name: &str| {
        let (own_file, linked_file) = (home.join(name), folder.join(name));
        disk::exists(&linked_file)
            && disk::canonicalize_or_keep(&linked_file) == disk::canonicalize_or_keep(&own_file)
    };
    // One folder for all programs: other folders may contain links to the user's commands alone.
    let has_hooks = |folder: &Path| {
        links_to_own_file(folder, PROGRAM_NAMES[0])
            || links_to_own_file(folder, hook_links::HOOK_PROGRAM_FILE)
    };
    let lasting_folder = folders_that_survive_upgrades().into_iter().find(|folder| has_hooks(folder));
    let lasting_program =
        lasting_folder.filter(|folder| links_to_own_file(folder, program)).map(|folder| folder.join(program));
    Some(lasting_program.unwrap_or(own_program))
}

/// Returns the folders in which links to our programs may stay, the best first.
fn folders_that_survive_upgrades() -> Vec<PathBuf> {
    let other_folders = environment::invocation_folder().into_iter().chain(current_version_link());
    lasting_path_folders()
        .into_iter()
        .chain(other_folders.filter(|folder| is_lasting_folder(folder, &project_folders())))
        .collect()
}

/// Returns the folders of the PATH that are permanent.
pub(super) fn lasting_path_folders() -> Vec<PathBuf> {
    let project_folders = project_folders();
    environment::absolute_search_folders()
        .into_iter()
        .filter(|folder| is_lasting_folder(folder, &project_folders))
        .collect()
}

/// Returns true for a permanent folder that no clone can have created.
fn is_lasting_folder(folder: &Path, project_folders: &[PathBuf]) -> bool {
    !is_in_node_modules_or_plugin(folder, &disk::exists)
        && optional_program::reason_to_ignore(&folder.join("plimsoll"), project_folders).is_none()
}

/// Returns the project's folders. If the home folder lies in the project, the user's own folders do, too, so
/// no folder counts as the project's.
fn project_folders() -> Vec<PathBuf> {
    let home = environment::home_folder().map(disk::canonicalize_or_keep);
    let mut folders = optional_program::project_folders(&Project::find_for_command());
    folders.retain(|folder| !home.as_ref().is_some_and(|home| home.starts_with(folder)));
    folders
}

/// Returns true for a folder whose programs will be removed or moved.
fn is_in_node_modules_or_plugin(folder: &Path, exists: &dyn Fn(&Path) -> bool) -> bool {
    let is_in_node_modules = folder.components().any(|part| part.as_os_str() == "node_modules");
    // A plugin with our programs has them in `programs/SYSTEM`, and their launcher in `bin`.
    let is_in_plugin = || {
        let mut plugin_folders = folder.ancestors().skip(1).take(2);
        plugin_folders.any(|plugin| exists(&plugin.join(".claude-plugin/plugin.json")))
    };
    is_in_node_modules || is_in_plugin()
}

/// Returns the folder of every copied version, and of the link to the one set up last.
fn data_folder() -> Option<PathBuf> {
    Some(environment::data_home()?.join("plimsoll"))
}

fn own_version_folder() -> Option<PathBuf> {
    Some(data_folder()?.join("versions").join(BuildInfo::for_current_program("plimsoll").version).join("bin"))
}

/// Returns the link to the folder of the version that was set up last.
pub(super) fn current_version_link() -> Option<PathBuf> {
    Some(data_folder()?.join("bin"))
}

/// Returns true if there is nothing at the path, or a link.
pub(super) fn is_free_for_link(path: &Path) -> bool {
    disk::is_link(path) || !disk::exists(path)
}

/// Copies the programs out of a temporary folder, and creates the missing names of the hooks. Returns the
/// folder into which they were copied, if they were.
///
/// # Errors
/// If the folder cannot be written.
pub(crate) fn copy_programs_and_create_hook_links() -> Result<Option<PathBuf>, StoreError> {
    let Some(home) = own_folder_or_permanent_copy() else { return Ok(None) };
    let own_folder = environment::executable_folder().filter(|folder| *folder != home);
    if let Some(own_folder) = &own_folder {
        // The hook programs' names are links, created there: npm's packages contain no links.
        let files = COMMAND_PROGRAMS.iter().chain([&hook_links::HOOK_PROGRAM_FILE]);
        let files = files.map(|name| (own_folder.join(name), home.join(name)));
        files
            .filter(|(from, _)| disk::exists(from))
            .try_for_each(|(from, to)| disk::copy_program(&from, &to))?;
    }
    hook_links::create_missing_hook_links(&home)?;
    Ok(own_folder.map(|_| home))
}

/// Does the same as [`copy_and_link_programs`], and points the link at the copied version. `plimsoll run` does not:
/// an older version that is tried once must not be used by all sessions.
///
/// # Errors
/// If a folder cannot be written.
pub fn set_up_programs_and_version_link() -> Result<Option<PathBuf>, StoreError> {
    let copied_folder = copy_programs_and_create_hook_links()?;
    if let (Some(folder), Some(link)) = (&copied_folder, current_version_link())
        && is_free_for_link(&link)
        && disk::read_link_target(&link).as_ref() != Some(folder)
    {
        disk::replace_link(folder, &link)?;
    }
    Ok(copied_folder)
}

/// Returns true for a program that exists, or that [`copy_and_link_programs`] will create.
pub(super) fn will_exist_after_setup(path: &Path) -> bool {
    let source_path = |path: &Path| {
        let own_folder = environment::executable_folder()?;
        Some(own_folder.join(path.file_name()?))
    };
    let exists =
        |path: &Path| disk::exists(path) || source_path(path).is_some_and(|from| disk::exists(&from));
    exists(path)
        || hook_links::is_hook_program_name(path)
            && exists(&path.with_file_name(hook_links::HOOK_PROGRAM_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_npms_folders_and_a_plugins_are_temporary() {
        let plugin = Path::new("/home/dev/.claude/plugins/cache/plimsoll/plimsoll/0.1.0");
        let exists = |path: &Path| path == plugin.join(".claude-plugin/plugin.json");
        for (folder, expected) in [
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
            assert_eq!(is_in_node_modules_or_plugin(Path::new(folder), &exists), expected, "{folder}");
        }
    }
}
