//! Facts about our programs: those next to this one, those on the PATH, and those that settings name.

use super::SettingsFiles;
use crate::install::{command_link_folder, own_folder_or_permanent_copy, upgrade_safe_path_or_own_path};
use crate::optional_program;
use plimsoll_domain::build::BuildInfo;
use plimsoll_policy::doctor::{
    ConfiguredProgram, ProgramFacts, ProgramStatus, SettingsScope, StartFailure, UnstartedEntry,
};
use plimsoll_protocol::settings::{OurHookEntry, PROGRAM_NAMES, servers};
use plimsoll_store::{Project, disk, environment};
use std::path::{Component, Path, PathBuf};

pub(super) fn gather_program_facts(project: &Project, settings_files: &SettingsFiles) -> ProgramFacts {
    let own_folder = own_folder_or_permanent_copy().unwrap_or_default();
    let optional_programs = optional_program::OPTIONAL_PROGRAMS
        .into_iter()
        .filter(|program| disk::exists(&own_folder.join(program)));
    let programs = PROGRAM_NAMES.iter().copied().chain([servers::SERVER_PROGRAM]).chain(optional_programs);
    let sibling_programs: Vec<(String, ProgramStatus)> =
        programs.map(|program| (program.to_owned(), program_status(&own_folder.join(program)))).collect();
    let own_program = disk::canonicalize_or_keep(&own_folder.join("plimsoll"));
    let (programs_on_path, is_first_on_path) = find_programs_on_path(project, &own_program);
    ProgramFacts {
        own_build: own_build(),
        is_first_on_path,
        programs_on_path: programs_on_path
            .into_iter()
            .map(|(path, status)| (path.display().to_string(), status))
            .collect(),
        configured_programs: configured_programs_outside_own_folder(project, settings_files, &own_folder),
        unstarted_entries: find_unstarted_entries(project, settings_files, &own_folder),
        command_folder: command_folder().unwrap_or_else(|| own_folder.clone()).display().to_string(),
        own_folder: own_folder.display().to_string(),
        sibling_programs,
    }
}

fn own_build() -> BuildInfo {
    BuildInfo::for_current_program("plimsoll")
}

/// Finds every `plimsoll` on the PATH, and whether the first one is this program. The user's programs are
/// asked for their version. One inside the project, or on a relative PATH entry, is never started.
fn find_programs_on_path(project: &Project, own_program: &Path) -> (Vec<(PathBuf, ProgramStatus)>, bool) {
    let own_npm_folder =
        environment::executable_folder().and_then(|own_folder| outermost_node_modules(&own_folder));
    let is_own = |path: &Path| {
        path == own_program || own_npm_folder.is_some() && outermost_node_modules(path) == own_npm_folder
    };
    let mut programs: Vec<(PathBuf, ProgramStatus)> = Vec::new();
    for program in environment::find_all_programs("plimsoll") {
        let path = disk::canonicalize_or_keep(&program);
        // npx puts npm's script on the PATH next to our link to the copied program.
        let is_second_own_entry =
            is_own(&path) && programs.iter().any(|(program_path, _)| is_own(program_path));
        if is_second_own_entry || programs.iter().any(|(program_path, _)| *program_path == path) {
            continue;
        }
        let is_users_program =
            program.is_absolute() && !path.starts_with(disk::canonicalize_or_keep(project.root()));
        let status = match is_users_program {
            _ if is_own(&path) => ProgramStatus::KnownBuild(own_build()),
            // Started by its name on the PATH: npm's entry is a link to a script that starts our program.
            true => program_status(&program),
            false => ProgramStatus::DifferentFile,
        };
        programs.push((path, status));
    }
    let is_first_own = programs.first().is_some_and(|(path, _)| is_own(path));
    (programs, is_first_own)
}

/// Returns the outermost `node_modules` folder of a path. Both npm's script and our programs are below it.
fn outermost_node_modules(path: &Path) -> Option<PathBuf> {
    let is_node_modules = |part: &Component<'_>| part.as_os_str() == "node_modules";
    let index = path.components().position(|part| is_node_modules(&part))?;
    Some(path.components().take(index + 1).collect())
}

/// Returns each program that a settings file names and that is not next to this one, once per file.
fn configured_programs_outside_own_folder(
    project: &Project,
    settings_files: &SettingsFiles,
    own_folder: &Path,
) -> Vec<ConfiguredProgram> {
    let mut programs: Vec<ConfiguredProgram> = Vec::new();
    for file in settings_files {
        let Some(survey) = file.readable_survey() else { continue };
        let status_line_program = survey
            .status_line
            .iter()
            .filter(|status_line_command| status_line_command.is_ours)
            .map(|status_line_command| (status_line_command.executable.clone(), false));
        for (name, guarded) in survey
            .our_hooks
            .iter()
            .map(|entry| (entry.executable(), entry.guarded))
            .chain(status_line_program)
        {
            let path = environment::find_program(&name).or_else(|| find_in_project(project, &name));
            let canonical_path = path.as_deref().map(disk::canonicalize_or_keep);
            let is_sibling = canonical_path.as_deref().and_then(Path::parent) == Some(own_folder);
            if is_sibling
                || programs.iter().any(|program| program.name == name && program.settings_file == file.path)
            {
                continue;
            }
            let status = path.map_or(ProgramStatus::Missing, |path| {
                status_by_comparison_with_own_program(&path, own_folder)
            });
            programs.push(ConfiguredProgram {
                name,
                settings_file: file.path.clone(),
                status,
                is_guarded: guarded,
            });
        }
    }
    programs
}

/// Returns the folder that a user adds to the PATH to be able to type `plimsoll`.
fn command_folder() -> Option<PathBuf> {
    command_link_folder().or_else(|| Some(upgrade_safe_path_or_own_path("plimsoll")?.parent()?.to_owned()))
}

/// Returns the entries of the user's own settings that a client with another PATH does not start. Guarded
/// entries search the PATH on purpose, and missing programs are reported elsewhere.
fn find_unstarted_entries(
    project: &Project,
    settings_files: &SettingsFiles,
    own_folder: &Path,
) -> Vec<UnstartedEntry> {
    let project_folders = optional_program::project_folders(project);
    let mut entries: Vec<UnstartedEntry> = Vec::new();
    for file in
        settings_files.iter().filter(|file| matches!(file.scope, SettingsScope::Local | SettingsScope::User))
    {
        let Some(survey) = file.readable_survey() else { continue };
        let status_line_command =
            survey.status_line.iter().filter(|line| line.is_ours).map(|line| line.executable.clone());
        let hook_commands =
            survey.our_hooks.iter().filter(|entry| !entry.guarded).map(OurHookEntry::executable);
        let mut names: Vec<String> = hook_commands.chain(status_line_command).collect();
        names.sort();
        names.dedup();
        let failures = names.into_iter().filter_map(|name| {
            let failure = start_failure_if_any(&name, file.scope, own_folder, &project_folders)?;
            Some(UnstartedEntry { name, settings_file: file.path.clone(), failure })
        });
        entries.extend(failures);
    }
    entries
}

fn start_failure_if_any(
    name: &str,
    scope: SettingsScope,
    own_folder: &Path,
    project_folders: &[PathBuf],
) -> Option<StartFailure> {
    let path = environment::find_program(name)?;
    if !name.contains('/') {
        return Some(StartFailure::BareName);
    }
    // The local settings lie in the project, so its author may have written them: they may start only the
    // programs of this installation. Nothing inside the project is started.
    let is_own_program =
        disk::canonicalize_or_keep(&path) == disk::canonicalize_or_keep(&own_folder.join(path.file_name()?));
    let may_start = optional_program::reason_to_ignore(&path, project_folders).is_none()
        && (scope == SettingsScope::User || is_own_program);
    let responds =
        || plimsoll_launcher::query_own_program_build_without_path(&path, &["version", "--json"]).is_some();
    (may_start && !responds()).then_some(StartFailure::NoResponse)
}

/// Finds a program by its path in the project. A file that is not executable counts as present, and is
/// reported as such.
fn find_in_project(project: &Project, name: &str) -> Option<PathBuf> {
    let path = project.root().join(name);
    (name.contains('/') && disk::exists(&path)).then_some(path)
}

/// Returns the status of a program that may be started: one next to this program, or on the user's PATH.
pub(super) fn program_status(path: &Path) -> ProgramStatus {
    if !disk::exists(path) {
        return ProgramStatus::Missing;
    }
    if !environment::is_executable(path) {
        return ProgramStatus::NotExecutable;
    }
    let is_hook = PROGRAM_NAMES.iter().any(|program| path.ends_with(program));
    let version_option = if is_hook { "version" } else { "--version" };
    plimsoll_launcher::query_own_program_build(path, &[version_option, "--json"])
        .map_or(ProgramStatus::NoVersion, ProgramStatus::KnownBuild)
}

/// Returns the status of a program that settings name. It is never started, because the project may not be
/// trusted.
fn status_by_comparison_with_own_program(path: &Path, own_folder: &Path) -> ProgramStatus {
    if !environment::is_executable(path) {
        return ProgramStatus::NotExecutable;
    }
    let own_program = own_folder.join(path.file_name().unwrap_or_default());
    let read_bytes = |path: &Path| disk::read(path).ok().flatten();
    let is_identical = disk::file_size(path) == disk::file_size(&own_program)
        && read_bytes(path) == read_bytes(&own_program);
    if is_identical { ProgramStatus::KnownBuild(own_build()) } else { ProgramStatus::DifferentFile }
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
