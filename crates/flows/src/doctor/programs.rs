//! Our programs: those beside us, and those that the settings name.

use super::Files;
use crate::install::{lasting_path, linked_folder, program_home};
use crate::optional_program;
use plimsoll_domain::build::Build;
use plimsoll_policy::doctor::{Named, ProgramFacts, Scope, Standing, StartFailure, UnstartedEntry};
use plimsoll_protocol::settings::{OurHook, PROGRAMS, servers};
use plimsoll_store::{Project, disk, environment};
use std::path::{Component, Path, PathBuf};

pub(super) fn facts(project: &Project, found: &Files) -> ProgramFacts {
    let folder = program_home().unwrap_or_default();
    let optional = optional_program::ALL.into_iter().filter(|program| disk::exists(&folder.join(program)));
    let programs = PROGRAMS.iter().copied().chain([servers::PROGRAM]).chain(optional);
    let beside: Vec<(String, Standing)> =
        programs.map(|program| (program.to_owned(), standing(&folder.join(program)))).collect();
    let we = disk::canonical(&folder.join("plimsoll"));
    let (on_path, first_is_we) = on_path(project, &we);
    ProgramFacts {
        own: our_build(),
        first_is_we,
        on_path: on_path.into_iter().map(|(path, what)| (path.display().to_string(), what)).collect(),
        named: named(project, found, &folder),
        unstarted: unstarted(project, found, &folder),
        command_folder: command_folder().unwrap_or_else(|| folder.clone()).display().to_string(),
        folder: folder.display().to_string(),
        beside,
    }
}

fn our_build() -> Build {
    Build::own("plimsoll")
}

/// Every `plimsoll` on the PATH, and whether the first is we. The user's are asked what they are; one in the project, or by a
/// relative entry, is never started.
fn on_path(project: &Project, we: &Path) -> (Vec<(PathBuf, Standing)>, bool) {
    let npms = environment::own_directory().and_then(|own| npms_folder(&own));
    let is_we = |path: &Path| path == we || npms.is_some() && npms_folder(path) == npms;
    let mut all: Vec<(PathBuf, Standing)> = Vec::new();
    for found in environment::find_programs("plimsoll") {
        let path = disk::canonical(&found);
        // npx puts npm's script on the PATH, beside our link to the copied program.
        let is_again_we = is_we(&path) && all.iter().any(|(known, _)| is_we(known));
        if is_again_we || all.iter().any(|(known, _)| *known == path) {
            continue;
        }
        let is_users = found.is_absolute() && !path.starts_with(disk::canonical(project.root()));
        let what = match is_users {
            _ if is_we(&path) => Standing::Built(our_build()),
            // By the name on the PATH: npm's is a link to a script, which starts our program.
            true => standing(&found),
            false => Standing::Other,
        };
        all.push((path, what));
    }
    let first_is_we = all.first().is_some_and(|(first, _)| is_we(first));
    (all, first_is_we)
}

/// The `node_modules` that a path is in, the outermost: npm has the script that starts us and our programs below one.
fn npms_folder(path: &Path) -> Option<PathBuf> {
    let is_npms = |part: &Component<'_>| part.as_os_str() == "node_modules";
    let depth = path.components().position(|part| is_npms(&part))?;
    Some(path.components().take(depth + 1).collect())
}

/// Each program that a settings file names and that is none of those beside us, once.
fn named(project: &Project, found: &Files, folder: &Path) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    for one in found {
        let Some(survey) = one.said() else { continue };
        let line =
            survey.status_line.iter().filter(|line| line.ours).map(|line| (line.starts.clone(), false));
        for (name, guarded) in survey.ours.iter().map(|entry| (entry.starts(), entry.guarded)).chain(line) {
            let path = environment::find_program(&name).or_else(|| reach(project, &name));
            let known = path.as_deref().map(disk::canonical);
            let is_beside = known.as_deref().and_then(Path::parent) == Some(folder);
            if is_beside || all.iter().any(|named| named.name == name && named.file == one.path) {
                continue;
            }
            let standing = path.map_or(Standing::Missing, |path| elsewhere(&path, folder));
            all.push(Named { name, file: one.path.clone(), standing, guarded });
        }
    }
    all
}

/// Returns the folder that a user adds to the PATH to type `plimsoll`.
fn command_folder() -> Option<PathBuf> {
    linked_folder().or_else(|| Some(lasting_path("plimsoll")?.parent()?.to_owned()))
}

/// The entries of the user's own settings that a client with another PATH than ours does not start. A guarded entry searches the PATH on
/// purpose, and one whose program is missing is among the named ones.
fn unstarted(project: &Project, found: &Files, folder: &Path) -> Vec<UnstartedEntry> {
    let places = optional_program::places_of(project);
    let mut all: Vec<UnstartedEntry> = Vec::new();
    for one in found.iter().filter(|one| matches!(one.scope, Scope::Local | Scope::User)) {
        let Some(survey) = one.said() else { continue };
        let line = survey.status_line.iter().filter(|line| line.ours).map(|line| line.starts.clone());
        let hooks = survey.ours.iter().filter(|entry| !entry.guarded).map(OurHook::starts);
        let mut names: Vec<String> = hooks.chain(line).collect();
        names.sort();
        names.dedup();
        let failures = names.into_iter().filter_map(|name| {
            let failure = start_failure(&name, one.scope, folder, &places)?;
            Some(UnstartedEntry { name, file: one.path.clone(), failure })
        });
        all.extend(failures);
    }
    all
}

fn start_failure(name: &str, scope: Scope, folder: &Path, places: &[PathBuf]) -> Option<StartFailure> {
    let path = environment::find_program(name)?;
    if !name.contains('/') {
        return Some(StartFailure::BareName);
    }
    // The local settings lie in the project, so whoever wrote it may have written them: they start nothing but the programs of this
    // installation. Nothing inside of the project is started.
    let is_own = disk::canonical(&path) == disk::canonical(&folder.join(path.file_name()?));
    let may_start =
        optional_program::why_ignored(&path, places).is_none() && (scope == Scope::User || is_own);
    let starts = || plimsoll_launcher::own_build_without_path(&path, &["version", "--json"]).is_some();
    (may_start && !starts()).then_some(StartFailure::Silent)
}

/// A file that is not executable counts as present, and is reported as such.
fn reach(project: &Project, name: &str) -> Option<PathBuf> {
    let path = project.root().join(name);
    (name.contains('/') && disk::exists(&path)).then_some(path)
}

/// One that we would start ourselves: beside us, or on the user's PATH.
pub(super) fn standing(path: &Path) -> Standing {
    if !disk::exists(path) {
        return Standing::Missing;
    }
    if !environment::is_executable(path) {
        return Standing::NotExecutable;
    }
    let is_hook = PROGRAMS.iter().any(|program| path.ends_with(program));
    let word = if is_hook { "version" } else { "--version" };
    plimsoll_launcher::own_build(path, &[word, "--json"]).map_or(Standing::Silent, Standing::Built)
}

/// A program that settings name is never started to ask it: the project may not be trusted.
fn elsewhere(path: &Path, folder: &Path) -> Standing {
    if !environment::is_executable(path) {
        return Standing::NotExecutable;
    }
    let own = folder.join(path.file_name().unwrap_or_default());
    let bytes = |path: &Path| disk::read(path).ok().flatten();
    let same = disk::size(path) == disk::size(&own) && bytes(path) == bytes(&own);
    if same { Standing::Built(our_build()) } else { Standing::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npms_script_and_our_programs_are_below_one_folder() {
        let folder = |path: &str| npms_folder(Path::new(path)).map(|folder| folder.display().to_string());
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
            assert!(folder(script).is_some());
            assert_eq!(folder(script), folder(program));
        }
        assert_ne!(folder("/a/node_modules/x"), folder("/b/node_modules/x"));
        assert_eq!(folder("/home/dev/.local/bin"), None);
    }
}
