//! Records the last errors of our own hooks in one small file of the project. Only a hook that has failed
//! writes it.

use crate::{Durability, Project, StoreError, clock, disk};
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::{Fault, SessionId};

/// The size in bytes at which the older half is removed: only the last few errors are read.
const MAX_FILE_BYTES: u64 = 16 * 1024;
/// The maximum length of a text in characters. The important part of an error is at its beginning.
const MAX_TEXT_CHARS: usize = 600;

/// Records a fault with the current time. Does nothing in a project without a folder of ours, so that a
/// failing hook leaves no files where there were none.
pub fn record_fault(project: &Project, fault: &Fault) -> Result<(), StoreError> {
    if !disk::is_folder(project.data_folder()) {
        return Ok(());
    }
    let path = project.faults_path();
    let size = match disk::file_size(&path) {
        None if disk::exists(&path) => return Err(StoreError::NotAFile { path }),
        size => size.unwrap_or(0),
    };
    let fault = Fault {
        occurred_at: clock::to_millis_timestamp(clock::now()),
        session_id: SessionId::from(truncate_end(&fault.session_id, MAX_TEXT_CHARS)),
        message: truncate_end(&fault.message, MAX_TEXT_CHARS),
        ..fault.clone()
    };
    let line = serde_json::to_string(&fault).unwrap_or_default() + "\n";
    if size < MAX_FILE_BYTES {
        return disk::append_line(&path, line.trim_end());
    }
    // Removes the older half and not one line, because otherwise each further fault would rewrite the whole
    // file.
    let old_text = read_faults_text(project);
    let dropped_count = old_text.lines().count() / 2;
    let kept_text: String = old_text.lines().skip(dropped_count).map(|line| format!("{line}\n")).collect();
    disk::replace(&path, (kept_text + &line).as_bytes(), Durability::Lazy)
}

/// Returns the last fault; `None` if nothing has failed.
pub fn last_fault(project: &Project) -> Option<Fault> {
    read_faults_text(project).lines().rev().find_map(parse_fault)
}

/// Returns all recorded faults, oldest first.
pub fn all_faults(project: &Project) -> Vec<Fault> {
    read_faults_text(project).lines().filter_map(parse_fault).collect()
}

/// Reads the faults file; empty if it is missing or too large to be ours.
fn read_faults_text(project: &Project) -> String {
    let path = project.faults_path();
    let is_small_file = disk::file_size(&path).is_some_and(|size| size <= 4 * MAX_FILE_BYTES);
    if is_small_file { disk::read_text(&path).ok().flatten().unwrap_or_default() } else { String::new() }
}

/// Parses a line; `None` if it is incomplete.
fn parse_fault(line: &str) -> Option<Fault> {
    serde_json::from_str(line).ok().filter(|fault: &Fault| !fault.message.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(message: &str) -> Fault {
        Fault { program: "plimsoll-stop-gate".to_owned(), message: message.to_owned(), ..Fault::default() }
    }

    #[test]
    fn the_last_fault_is_returned_and_the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        record_fault(&project, &fault("before anything of ours is there")).unwrap();
        assert_eq!(disk::list_names(folder.path()), [""; 0], "nothing is left where nothing was");
        disk::create_folder(project.data_folder()).unwrap();
        assert_eq!(last_fault(&project), None);
        for number in 0..500 {
            record_fault(&project, &fault(&format!("{number} {}", "x".repeat(500)))).unwrap();
        }
        let size = disk::file_size(&project.faults_path()).unwrap();
        assert!(size < 2 * MAX_FILE_BYTES, "{size}");
        let newest = last_fault(&project).unwrap();
        assert!(
            newest.message.starts_with("499 ") && clock::parse_timestamp(&newest.occurred_at).is_some(),
            "{newest:?}"
        );
        disk::append(&project.faults_path(), b"{\"what\": \"to").unwrap();
        assert_eq!(last_fault(&project), Some(newest), "a torn line is none");
        assert!(all_faults(&project).len() > 5);
    }
}
