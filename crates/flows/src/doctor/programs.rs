//! Inspects Plimsoll's programs: those next to this one, those on the PATH, and those that settings name.

use super::SettingsFiles;
use crate::install::{
    command_link_folder, program_folder_or_copy_if_in_npm_or_plugin, upgrade_safe_or_direct_program_path,
};
use crate::optional_program;
use plimsoll_domain::build::BuildInfo;
use plimsoll_policy::doctor::{
    ConfiguredProgram, EntryThatFailsWithoutPath, ProgramInfo, ProgramStatus, SettingsScope, StartFailure,
};
use plimsoll_protocol::settings::{OurHookEntry, PROGRAM_NAMES, servers};
use plimsoll_store::{Project, disk, environment};
use plimsoll_system::paths::{program_name, program_path};
use std::path::{Component, Path, PathBuf};

pub(super) fn inspect_installed_programs(project: &Project, settings_files: &SettingsFiles) -> ProgramInfo {
    let install_folder = program_folder_or_copy_if_in_npm_or_plugin().unwrap_or_default();
    let optional_programs = optional_program::OPTIONAL_PROGRAMS
        .into_iter()
        .filter(|program| disk::exists(&program_path(&install_folder, program)));
    let programs = PROGRAM_NAMES.iter().copied().chain([servers::SERVER_PROGRAM]).chain(optional_programs);
    let sibling_programs: Vec<(String, ProgramStatus)> = programs
        .map(|program| {
            (program.to_owned(), run_program_to_query_status(&program_path(&install_folder, program)))
        })
        .collect();
    let current_program = disk::canonicalize_or_keep(&program_path(&install_folder, "plimsoll"));
    let (programs_on_path, is_first_on_path) =
        find_plimsoll_on_path_and_if_current_is_first(project, &current_program);
    ProgramInfo {
        current_build: current_build(),
        is_first_on_path,
        programs_on_path: programs_on_path
            .into_iter()
            .map(|(path, status)| (path.display().to_string(), status))
            .collect(),
        configured_programs: configured_programs_outside_install_folder(
            project,
            settings_files,
            &install_folder,
        ),
        entries_that_fail_without_path: find_personal_entries_that_fail_without_path(
            project,
            settings_files,
            &install_folder,
        ),
        command_folder: folder_to_add_to_path()
            .unwrap_or_else(|| install_folder.clone())
            .display()
            .to_string(),
        program_folder: install_folder.display().to_string(),
        sibling_programs,
    }
}

fn current_build() -> BuildInfo {
    BuildInfo::for_current_program("plimsoll")
}

/// Returns every `plimsoll` on the PATH with its status, and whether the first one is this program. Programs outside the
/// project are run to query their version. A program inside the project, or on a relative PATH entry, is never run.
fn find_plimsoll_on_path_and_if_current_is_first(
    project: &Project,
    current_program: &Path,
) -> (Vec<(PathBuf, ProgramStatus)>, bool) {
    let current_node_modules = environment::executable_folder()
        .and_then(|executable_folder| outermost_node_modules(&executable_folder));
    let is_current_installation = |path: &Path| {
        path == current_program
            || current_node_modules.is_some() && outermost_node_modules(path) == current_node_modules
    };
    let mut programs: Vec<(PathBuf, ProgramStatus)> = Vec::new();
    for program in environment::find_all_programs("plimsoll") {
        let path = disk::canonicalize_or_keep(&program);
        // npx puts npm's script on the PATH in addition to our link to the copied program.
        let is_duplicate_of_current = is_current_installation(&path)
            && programs.iter().any(|(program_path, _)| is_current_installation(program_path));
        if is_duplicate_of_current || programs.iter().any(|(program_path, _)| *program_path == path) {
            continue;
        }
        let is_absolute_and_outside_project =
            program.is_absolute() && !disk::is_inside(project.root(), &program);
        let status = match is_absolute_and_outside_project {
            _ if is_current_installation(&path) => ProgramStatus::ReportedBuild(current_build()),
            // Run by its path on the PATH, not by the resolved path: npm's entry links to a script that runs our program.
            true => run_program_to_query_status(&program),
            false => ProgramStatus::DifferentFile,
        };
        programs.push((path, status));
    }
    let is_current_first = programs.first().is_some_and(|(path, _)| is_current_installation(path));
    (programs, is_current_first)
}

/// Returns the outermost `node_modules` folder of a path. npm installs both its script and our programs there.
fn outermost_node_modules(path: &Path) -> Option<PathBuf> {
    let is_node_modules = |component: &Component<'_>| component.as_os_str() == "node_modules";
    let index = path.components().position(|component| is_node_modules(&component))?;
    Some(path.components().take(index + 1).collect())
}

/// Returns each program that a settings file names and that is not next to this one, once per file.
fn configured_programs_outside_install_folder(
    project: &Project,
    settings_files: &SettingsFiles,
    install_folder: &Path,
) -> Vec<ConfiguredProgram> {
    let mut programs: Vec<ConfiguredProgram> = Vec::new();
    for file in settings_files {
        let Some(summary) = file.summary_if_parsed() else { continue };
        let status_line_program = summary
            .status_line
            .iter()
            .filter(|status_line_command| status_line_command.is_ours)
            .map(|status_line_command| (status_line_command.executable.clone(), false));
        for (name, is_team_entry) in summary
            .our_hooks
            .iter()
            .map(|entry| (entry.executable(), entry.is_team_entry))
            .chain(status_line_program)
        {
            let path =
                environment::find_program(&name).or_else(|| find_program_file_in_project(project, &name));
            let canonical_path = path.as_deref().map(disk::canonicalize_or_keep);
            let is_sibling = canonical_path.as_deref().and_then(Path::parent) == Some(install_folder);
            if is_sibling
                || programs.iter().any(|program| program.name == name && program.settings_file == file.path)
            {
                continue;
            }
            let status = path.map_or(ProgramStatus::Missing, |path| {
                status_by_file_comparison_without_running(&path, install_folder)
            });
            programs.push(ConfiguredProgram {
                name,
                settings_file: file.path.clone(),
                status,
                is_team_entry,
            });
        }
    }
    programs
}

/// Returns the folder that a user adds to the PATH to be able to type `plimsoll`.
fn folder_to_add_to_path() -> Option<PathBuf> {
    command_link_folder()
        .or_else(|| Some(upgrade_safe_or_direct_program_path("plimsoll")?.parent()?.to_owned()))
}

/// Returns the entries of the user's settings and local settings that fail to start in a client with a different PATH.
/// Entries shared with a team (`--guarded`) are skipped because they search the PATH on purpose. Missing programs are
/// skipped because another check reports them.
fn find_personal_entries_that_fail_without_path(
    project: &Project,
    settings_files: &SettingsFiles,
    install_folder: &Path,
) -> Vec<EntryThatFailsWithoutPath> {
    let project_folders = optional_program::project_root_and_working_tree(project);
    let mut entries: Vec<EntryThatFailsWithoutPath> = Vec::new();
    for file in
        settings_files.iter().filter(|file| matches!(file.scope, SettingsScope::Local | SettingsScope::User))
    {
        let Some(summary) = file.summary_if_parsed() else { continue };
        let status_line_command = summary
            .status_line
            .iter()
            .filter(|command| command.is_ours)
            .map(|command| command.executable.clone());
        let hook_commands =
            summary.our_hooks.iter().filter(|entry| !entry.is_team_entry).map(OurHookEntry::executable);
        let mut names: Vec<String> = hook_commands.chain(status_line_command).collect();
        names.sort();
        names.dedup();
        let failing_entries = names.into_iter().filter_map(|name| {
            let failure =
                find_failure_to_start_without_path(&name, file.scope, install_folder, &project_folders)?;
            Some(EntryThatFailsWithoutPath { name, settings_file: file.path.clone(), failure })
        });
        entries.extend(failing_entries);
    }
    entries
}

fn find_failure_to_start_without_path(
    name: &str,
    scope: SettingsScope,
    install_folder: &Path,
    project_folders: &[PathBuf],
) -> Option<StartFailure> {
    let path = environment::find_program(name)?;
    if is_bare_name(name) {
        return Some(StartFailure::BareName);
    }
    // The local settings file is in the project, so the project's author may have written it. Only programs of this
    // installation are started for it, and no program inside the project is ever started.
    let is_from_install_folder = disk::canonicalize_or_keep(&path)
        == disk::canonicalize_or_keep(&install_folder.join(path.file_name()?));
    let is_safe_to_start = optional_program::reason_if_relative_or_in_project(&path, project_folders)
        .is_none()
        && (scope == SettingsScope::User || is_from_install_folder);
    let starts_without_path =
        || plimsoll_launcher::query_own_program_build_without_path(&path, &["version", "--json"]).is_some();
    (is_safe_to_start && !starts_without_path()).then_some(StartFailure::NoResponse)
}

/// Finds a program by its path relative to the project. Also returns a file that is not executable, so that the doctor
/// can report it.
fn find_program_file_in_project(project: &Project, name: &str) -> Option<PathBuf> {
    let path = project.root().join(name);
    (!is_bare_name(name) && disk::exists(&path)).then_some(path)
}

/// Returns true for a name that is looked up on the PATH.
fn is_bare_name(name: &str) -> bool {
    Path::new(name).components().count() == 1 && !name.contains('/')
}

/// Runs a program to query its build. Must be called only for trusted programs: next to this one or on the user's PATH.
pub(super) fn run_program_to_query_status(path: &Path) -> ProgramStatus {
    if !disk::exists(path) {
        return ProgramStatus::Missing;
    }
    if !environment::is_executable(path) {
        return ProgramStatus::NotExecutable;
    }
    let is_hook_program = PROGRAM_NAMES.contains(&&*program_name(path));
    let version_argument = if is_hook_program { "version" } else { "--version" };
    plimsoll_launcher::query_own_program_build(path, &[version_argument, "--json"])
        .map_or(ProgramStatus::NoVersionReported, ProgramStatus::ReportedBuild)
}

/// Returns the status of a program that a settings file names, by comparing its content with the installed program of
/// the same name. Never starts it, because the project may not be trusted.
fn status_by_file_comparison_without_running(path: &Path, install_folder: &Path) -> ProgramStatus {
    if !environment::is_executable(path) {
        return ProgramStatus::NotExecutable;
    }
    let installed_program = install_folder.join(path.file_name().unwrap_or_default());
    let read_bytes = |path: &Path| disk::read(path).ok().flatten();
    let is_identical = disk::file_size(path) == disk::file_size(&installed_program)
        && read_bytes(path) == read_bytes(&installed_program);
    if is_identical { ProgramStatus::ReportedBuild(current_build()) } else { ProgramStatus::DifferentFile }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npms_script_and_our_programs_share_one_node_modules_folder() {
        let node_modules_folder =
            |path: &str| outermost_node_modules(Path::new(path)).map(|folder| folder.display().to_string());
        for (script, program) in [
            (
                "/usr/lib/node_modules/plimsoll/bin/plimsoll.js",
                "/usr/lib/node_modules/plimsoll/node_modules/@plimsoll/linux-x64/bin",
            ),
            (
                "/a b/node_modules/plimsoll/bin/plimsoll.js",
                "/a b/node_modules/.pnpm/x/node_modules/@plimsoll/linux-x64/bin",
            ),
        ] {
            assert!(node_modules_folder(script).is_some());
            assert_eq!(node_modules_folder(script), node_modules_folder(program));
        }
        assert_ne!(node_modules_folder("/a/node_modules/x"), node_modules_folder("/b/node_modules/x"));
        assert_eq!(node_modules_folder("/home/dev/.local/bin"), None);
    }
}
