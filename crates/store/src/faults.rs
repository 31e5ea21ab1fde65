//! The last faults of our own hooks, in one small file of the project. Only a hook that has failed writes it.

use crate::{Durability, Project, StoreError, clock, disk};
use plimsoll_domain::text::clip;
use plimsoll_domain::{Fault, SessionId};

/// Only the last few are read.
const MOST_BYTES: u64 = 16 * 1024;
/// What an error has to say is at its beginning.
const LONGEST: usize = 600;

/// Notes a fault, stamped with the time. A project that has no folder of ours gets none: whoever fails leaves
/// nothing behind where nothing was.
pub fn note(project: &Project, fault: &Fault) -> Result<(), StoreError> {
    if !disk::is_folder(project.own()) {
        return Ok(());
    }
    let path = project.faults();
    let size = match disk::size(&path) {
        None if disk::exists(&path) => return Err(StoreError::NotAFile { path }),
        size => size.unwrap_or(0),
    };
    let fault = Fault {
        at: clock::fine_stamp(clock::now()),
        session_id: SessionId::from(clip(&fault.session_id, LONGEST)),
        what: clip(&fault.what, LONGEST),
        ..fault.clone()
    };
    let line = serde_json::to_string(&fault).unwrap_or_default() + "\n";
    if size < MOST_BYTES {
        return disk::append_line(&path, line.trim_end());
    }
    // The older half goes, not one line: else each fault from now on would write the whole file again.
    let old = text(project);
    let half = old.lines().count() / 2;
    let kept: String = old.lines().skip(half).map(|line| format!("{line}\n")).collect();
    disk::replace(&path, (kept + &line).as_bytes(), Durability::Lazy)
}

/// The last fault; none if nothing has failed.
pub fn last(project: &Project) -> Option<Fault> {
    text(project).lines().rev().find_map(parse)
}

/// The faults that are still known, oldest first.
pub fn all(project: &Project) -> Vec<Fault> {
    text(project).lines().filter_map(parse).collect()
}

/// Only a small plain file can be ours.
fn text(project: &Project) -> String {
    let path = project.faults();
    let ours = disk::size(&path).is_some_and(|size| size <= 4 * MOST_BYTES);
    if ours { disk::read_text(&path).ok().flatten().unwrap_or_default() } else { String::new() }
}

/// A torn line is none.
fn parse(line: &str) -> Option<Fault> {
    serde_json::from_str(line).ok().filter(|fault: &Fault| !fault.what.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(what: &str) -> Fault {
        Fault { program: "plimsoll-stop-gate".to_owned(), what: what.to_owned(), ..Fault::default() }
    }

    #[test]
    fn the_last_fault_is_known_and_the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        note(&project, &fault("before anything of ours is there")).unwrap();
        assert_eq!(disk::names(folder.path()), [""; 0], "nothing is left where nothing was");
        disk::create_folder(project.own()).unwrap();
        assert_eq!(last(&project), None);
        for number in 0..500 {
            note(&project, &fault(&format!("{number} {}", "x".repeat(500)))).unwrap();
        }
        let size = disk::size(&project.faults()).unwrap();
        assert!(size < 2 * MOST_BYTES, "{size}");
        let newest = last(&project).unwrap();
        assert!(newest.what.starts_with("499 ") && clock::moment(&newest.at).is_some(), "{newest:?}");
        disk::append(&project.faults(), b"{\"what\": \"to").unwrap();
        assert_eq!(last(&project), Some(newest), "a torn line is none");
        assert!(all(&project).len() > 5);
    }
}
