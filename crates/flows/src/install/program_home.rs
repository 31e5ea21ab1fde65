//! The permanent folder of our programs, and their paths in settings files. npm keeps programs in folders that
//! it deletes or moves (`node_modules`, the cache of npx), and a plugin's folder is replaced by its next
//! version, but a hook entry in a settings file remains. Programs in such folders are therefore copied into a
//! folder of the user for each version, and a link leads to the version that was set up last.

use super::hook_links;
use crate::optional_program;
use plimsoll_domain::build::BuildInfo;
use plimsoll_protocol::settings::PROGRAM_NAMES;
use plimsoll_store::{Project, StoreError, disk, environment};
use plimsoll_system::files::CAN_CREATE_LINKS;
use plimsoll_system::paths::program_path;
use std::path::{Path, PathBuf};

/// The programs other than the hooks. Each has its own executable file.
pub(super) const COMMAND_PROGRAMS: [&str; 5] =
    ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp", "plimsoll-otel"];

/// Returns the folder of the running program. If it is temporary (npm or plugin), returns the permanent folder
/// for copies of this version, whether or not the copies exist yet.
pub fn program_folder_or_copy_if_in_npm_or_plugin() -> Option<PathBuf> {
    let executable_folder = environment::executable_folder()?;
    if is_in_node_modules_or_plugin(&executable_folder, &disk::exists) {
        this_version_folder().or(Some(executable_folder))
    } else {
        Some(executable_folder)
    }
}

/// Returns true if the running program is in a temporary folder and must be copied before hooks are set up.
pub(crate) fn needs_permanent_copy() -> bool {
    environment::executable_folder().is_some_and(|executable_folder| {
        is_in_node_modules_or_plugin(&executable_folder, &disk::exists) && this_version_folder().is_some()
    })
}

/// Returns the folder into which the programs will be copied, or `None` if they need no copy.
pub fn planned_copy_folder() -> Option<PathBuf> {
    program_folder_or_copy_if_in_npm_or_plugin().filter(|_| needs_permanent_copy())
}

/// Returns the absolute path of one of our programs for a new entry in a settings file. A bare name would not
/// do: a client started by an editor, the desktop or cron has a different PATH than the user's shell.
pub(super) fn version_link_or_upgrade_safe_program_path(program: &str) -> Option<PathBuf> {
    // In a dry run the link does not exist yet, so its path is computed.
    let version_link =
        current_version_link().filter(|_| needs_permanent_copy()).filter(|link| is_missing_or_link(link));
    version_link.map_or_else(
        || upgrade_safe_or_direct_program_path(program),
        |folder| Some(program_path(&folder, program)),
    )
}

/// Returns a link to one of our programs that stays valid after an upgrade, or the program's direct path if
/// there is none. Package managers replace the folder of a version and keep the folder of links
/// (`/opt/homebrew/bin`, `~/.nix-profile/bin`, `~/.local/bin`).
pub(crate) fn upgrade_safe_or_direct_program_path(program: &str) -> Option<PathBuf> {
    let program_folder = program_folder_or_copy_if_in_npm_or_plugin()?;
    let direct_path = program_path(&program_folder, program);
    let leads_to_same_file = |folder: &Path, name: &str| {
        let (direct_file, linked_file) = (program_path(&program_folder, name), program_path(folder, name));
        disk::exists(&linked_file)
            && disk::canonicalize_or_keep(&linked_file) == disk::canonicalize_or_keep(&direct_file)
    };
    // The folder must also link to the hooks: some folders contain links only to the programs that users start.
    let has_hook_links = |folder: &Path| {
        leads_to_same_file(folder, PROGRAM_NAMES[0]) || leads_to_same_file(folder, hook_links::HOOK_PROGRAM)
    };
    let permanent_folder =
        upgrade_safe_folders_by_preference().into_iter().find(|folder| has_hook_links(folder));
    let permanent_path = permanent_folder
        .filter(|folder| leads_to_same_file(folder, program))
        .map(|folder| program_path(&folder, program));
    Some(permanent_path.unwrap_or(direct_path))
}

/// Returns the folders whose links to our programs may survive an upgrade, the preferred folder first.
fn upgrade_safe_folders_by_preference() -> Vec<PathBuf> {
    let other_folders = environment::invocation_folder().into_iter().chain(current_version_link());
    permanent_path_folders_outside_project()
        .into_iter()
        .chain(other_folders.filter(|folder| {
            is_permanent_folder_outside_project(folder, &project_folders_not_containing_home())
        }))
        .collect()
}

pub(super) fn permanent_path_folders_outside_project() -> Vec<PathBuf> {
    let project_folders = project_folders_not_containing_home();
    environment::absolute_search_folders()
        .into_iter()
        .filter(|folder| is_permanent_folder_outside_project(folder, &project_folders))
        .collect()
}

/// Returns true for a folder that npm and plugins do not replace and that is outside the project, so no clone
/// can have created it.
fn is_permanent_folder_outside_project(folder: &Path, project_folders: &[PathBuf]) -> bool {
    !is_in_node_modules_or_plugin(folder, &disk::exists)
        && optional_program::reason_if_relative_or_in_project(
            &program_path(folder, "plimsoll"),
            project_folders,
        )
        .is_none()
}

/// Returns the project's root and working tree, without those that contain the home folder: programs in the
/// user's own folders would otherwise count as part of the project.
fn project_folders_not_containing_home() -> Vec<PathBuf> {
    let home_folder = environment::home_folder().map(disk::canonicalize_or_keep);
    let mut folders =
        optional_program::project_root_and_working_tree(&Project::find_upwards_from_current_dir());
    folders.retain(|folder| !home_folder.as_ref().is_some_and(|home_folder| home_folder.starts_with(folder)));
    folders
}

/// Returns true for a temporary folder: npm or the client will remove or move its programs.
fn is_in_node_modules_or_plugin(folder: &Path, exists: &dyn Fn(&Path) -> bool) -> bool {
    let is_in_node_modules = folder.components().any(|component| component.as_os_str() == "node_modules");
    // Our plugin has its programs in `programs/SYSTEM`, and their launcher in `bin`.
    let is_in_plugin = || {
        let mut candidate_folders = folder.ancestors().skip(1).take(2);
        candidate_folders.any(|candidate_folder| exists(&candidate_folder.join(".claude-plugin/plugin.json")))
    };
    is_in_node_modules || is_in_plugin()
}

/// Returns the folder that contains all copied versions and the link to the one that was set up last.
fn data_folder() -> Option<PathBuf> {
    Some(environment::data_home()?.join("plimsoll"))
}

fn this_version_folder() -> Option<PathBuf> {
    Some(data_folder()?.join("versions").join(BuildInfo::for_current_program("plimsoll").version).join("bin"))
}

/// Returns the link to the folder of the version that was set up last. Where not every user can create links there is none,
/// and entries name the folder of the version.
pub(super) fn current_version_link() -> Option<PathBuf> {
    Some(data_folder()?.join("bin")).filter(|_| CAN_CREATE_LINKS)
}

pub(super) fn is_missing_or_link(path: &Path) -> bool {
    disk::is_link(path) || !disk::exists(path)
}

/// Copies the programs out of a temporary folder, and creates the missing links of the hook programs. Returns
/// the folder with the copies, or `None` if no copy was needed.
///
/// # Errors
/// If the folder cannot be written.
pub(crate) fn copy_programs_if_needed_and_create_hook_links() -> Result<Option<PathBuf>, StoreError> {
    let Some(program_folder) = program_folder_or_copy_if_in_npm_or_plugin() else { return Ok(None) };
    let source_folder = environment::executable_folder().filter(|folder| *folder != program_folder);
    if let Some(source_folder) = &source_folder {
        // Only files are copied. The links of the hook programs are created below, because npm's packages cannot
        // contain links.
        let files = COMMAND_PROGRAMS.iter().chain([&hook_links::HOOK_PROGRAM]);
        let files =
            files.map(|name| (program_path(source_folder, name), program_path(&program_folder, name)));
        files
            .filter(|(from, _)| disk::exists(from))
            .try_for_each(|(from, to)| disk::copy_program_if_changed(&from, &to))?;
    }
    hook_links::create_missing_links_or_update_copies(&program_folder)?;
    Ok(source_folder.map(|_| program_folder))
}

/// Calls `copy_programs_if_needed_and_create_hook_links`, and points the version link at the copies. Returns
/// the folder with the copies, or `None` if no copy was needed. `plimsoll run` does not update the link, because
/// trying an older version once must not change the version of all sessions.
///
/// # Errors
/// If a folder cannot be written.
pub fn copy_programs_and_update_version_link() -> Result<Option<PathBuf>, StoreError> {
    let copied_folder = copy_programs_if_needed_and_create_hook_links()?;
    if let (Some(folder), Some(link)) = (&copied_folder, current_version_link())
        && is_missing_or_link(&link)
        && disk::read_link_target(&link).as_ref() != Some(folder)
    {
        disk::replace_link(folder, &link)?;
    }
    Ok(copied_folder)
}

/// Returns true for a program that exists, or that `copy_programs_if_needed_and_create_hook_links` will
/// create.
pub(super) fn will_exist_after_setup(path: &Path) -> bool {
    let source_path = |path: &Path| {
        let executable_folder = environment::executable_folder()?;
        Some(executable_folder.join(path.file_name()?))
    };
    let exists_or_will_be_copied =
        |path: &Path| disk::exists(path) || source_path(path).is_some_and(|from| disk::exists(&from));
    exists_or_will_be_copied(path)
        || hook_links::is_hook_program_name(path)
            && exists_or_will_be_copied(&program_path(
                path.parent().unwrap_or(path),
                hook_links::HOOK_PROGRAM,
            ))
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
