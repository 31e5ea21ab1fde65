//! Our programs: those beside us, and those that the settings name.

use super::Files;
use crate::linear::program as linear_program;
use plimsoll_policy::doctor::{Named, ProgramFacts, Standing};
use plimsoll_protocol::settings::{PROGRAMS, servers};
use plimsoll_store::{Project, disk, environment, volume};
use std::path::{Path, PathBuf};

pub(super) fn facts(project: &Project, found: &Files) -> ProgramFacts {
    let folder = environment::own_directory().unwrap_or_default();
    // Optional: it is needed only where an issue in Linear is set.
    let optional = Some(linear_program::PROGRAM).filter(|program| disk::exists(&folder.join(program)));
    let programs = PROGRAMS.iter().copied().chain([servers::PROGRAM]).chain(optional);
    let beside: Vec<(String, Standing)> =
        programs.map(|program| (program.to_owned(), standing(&folder.join(program)))).collect();
    let mut on_path: Vec<PathBuf> =
        environment::find_programs("plimsoll").iter().map(|path| disk::canonical(path)).collect();
    on_path.dedup();
    let we = disk::canonical(&folder.join("plimsoll"));
    ProgramFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        first_is_we: on_path.first() == Some(&we),
        on_path: on_path.iter().map(|path| path.display().to_string()).collect(),
        is_static: needs_no_loader(&folder.join(PROGRAMS[0])),
        named: named(project, found, &folder),
        folder: folder.display().to_string(),
        beside,
    }
}

/// Each program that a settings file names and that is none of those beside us, once.
fn named(project: &Project, found: &Files, folder: &Path) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    for one in found {
        let Some(survey) = one.said() else { continue };
        let line = survey.status_line.iter().filter(|line| line.ours).map(|line| (&line.starts, false));
        for (name, guarded) in survey.ours.iter().map(|entry| (&entry.starts, entry.guarded)).chain(line) {
            let path = environment::find_program(name).or_else(|| reach(project, name));
            let known = path.as_deref().map(disk::canonical);
            let is_beside = known.as_deref().and_then(Path::parent) == Some(folder);
            if is_beside || all.iter().any(|named| named.name == *name && named.file == one.path) {
                continue;
            }
            let standing = path.map_or(Standing::Missing, |path| elsewhere(&path, folder));
            all.push(Named { name: name.clone(), file: one.path.clone(), standing, guarded });
        }
    }
    all
}

/// A file that is not executable counts as present, and is reported as such.
fn reach(project: &Project, name: &str) -> Option<PathBuf> {
    let path = project.root().join(name);
    (name.contains('/') && disk::exists(&path)).then_some(path)
}

/// One that we would start ourselves: beside us, or, of those for Linear, on the PATH.
pub(super) fn standing(path: &Path) -> Standing {
    if !disk::exists(path) {
        return Standing::Missing;
    }
    if !environment::is_executable(path) {
        return Standing::NotExecutable;
    }
    let is_hook = !path.ends_with(servers::PROGRAM) && !path.ends_with(linear_program::PROGRAM);
    let word = if is_hook { "version" } else { "--version" };
    plimsoll_launcher::own_version(path, word).map_or(Standing::Silent, Standing::Version)
}

/// A program that settings name is never started to ask it: the project may not be trusted.
fn elsewhere(path: &Path, folder: &Path) -> Standing {
    if !environment::is_executable(path) {
        return Standing::NotExecutable;
    }
    let own = folder.join(path.file_name().unwrap_or_default());
    let bytes = |path: &Path| disk::read(path).ok().flatten();
    let same = disk::size(path) == disk::size(&own) && bytes(path) == bytes(&own);
    if same { Standing::Version(env!("CARGO_PKG_VERSION").to_owned()) } else { Standing::Other }
}

/// True when a program needs no loader to start; none if the file is no program of this kind of computer.
fn needs_no_loader(path: &Path) -> Option<bool> {
    const MOST: u64 = 4096;
    const INTERPRETER: u32 = 3;
    let bytes = volume::beginning(path, MOST)?;
    let is_64_bit = bytes.starts_with(b"\x7fELF\x02\x01");
    if !is_64_bit {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let table = u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?);
    let (size, count) = (usize::from(short(54)?), usize::from(short(56)?));
    let start = usize::try_from(table).ok()?;
    let kind = |index: usize| {
        let at = start + index * size;
        Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let kinds: Option<Vec<u32>> = (0..count).map(kind).collect();
    Some(!kinds?.contains(&INTERPRETER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_names_a_loader_needs_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let elf = |kind: u32| {
            let mut bytes = vec![0u8; 64 + 56];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            bytes[32] = 64;
            (bytes[54], bytes[56]) = (56, 1);
            bytes[64..68].copy_from_slice(&kind.to_le_bytes());
            bytes
        };
        for (bytes, expected) in [(elf(1), Some(true)), (elf(3), Some(false)), (b"#!/bin/sh".to_vec(), None)]
        {
            disk::replace(&path, &bytes, plimsoll_store::Durability::Lazy).unwrap();
            assert_eq!(needs_no_loader(&path), expected);
        }
        assert_eq!(needs_no_loader(&folder.path().join("none")), None);
    }
}
