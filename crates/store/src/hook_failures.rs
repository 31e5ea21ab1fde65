//! Records the last errors of our own hooks in one small file of the project. The file is written only when
//! a hook fails.

use crate::{Durability, Project, StoreError, clock, disk};
use plimsoll_domain::text::truncate_end;
use plimsoll_domain::{RecordedHookFailure, SessionId};

/// The size in bytes at which the older half is removed: only the last few errors are read.
const MAX_FILE_BYTES: u64 = 16 * 1024;
/// The maximum length of a text in characters. The start of an error is the important part.
const MAX_TEXT_CHARS: usize = 600;

/// Records a failure of a hook with the current time. Does nothing in a project without our data folder, so
/// that a failing hook does not create the first file there.
pub fn record_hook_failure_if_data_folder_exists(
    project: &Project,
    failure: &RecordedHookFailure,
) -> Result<(), StoreError> {
    if !disk::is_folder(project.data_folder()) {
        return Ok(());
    }
    let path = project.hook_failures_path();
    let size = match disk::file_size(&path) {
        None if disk::exists(&path) => return Err(StoreError::NotAFile { path }),
        size => size.unwrap_or(0),
    };
    let failure = RecordedHookFailure {
        occurred_at: clock::to_millis_timestamp(clock::now()),
        session_id: SessionId::from(truncate_end(&failure.session_id, MAX_TEXT_CHARS)),
        message: truncate_end(&failure.message, MAX_TEXT_CHARS),
        ..failure.clone()
    };
    let line = serde_json::to_string(&failure).unwrap_or_default() + "\n";
    if size < MAX_FILE_BYTES {
        return disk::append_line(&path, line.trim_end());
    }
    // The older half is removed and not just one line: otherwise each further failure would rewrite the whole
    // file.
    let previous_text = read_failures_text(project);
    let dropped_count = previous_text.lines().count() / 2;
    let kept_text: String =
        previous_text.lines().skip(dropped_count).map(|line| format!("{line}\n")).collect();
    disk::replace(&path, (kept_text + &line).as_bytes(), Durability::Lazy)
}

/// Returns the last recorded failure; `None` if there is none.
pub fn last_hook_failure(project: &Project) -> Option<RecordedHookFailure> {
    read_failures_text(project).lines().rev().find_map(parse_failure)
}

/// Returns all recorded failures, oldest first.
pub fn all_hook_failures(project: &Project) -> Vec<RecordedHookFailure> {
    read_failures_text(project).lines().filter_map(parse_failure).collect()
}

/// Reads the file of failures; empty if it is missing or too large to be ours.
fn read_failures_text(project: &Project) -> String {
    let path = project.hook_failures_path();
    let is_small_file = disk::file_size(&path).is_some_and(|size| size <= 4 * MAX_FILE_BYTES);
    if is_small_file { disk::read_text(&path).ok().flatten().unwrap_or_default() } else { String::new() }
}

/// Parses a line; `None` if it is incomplete.
fn parse_failure(line: &str) -> Option<RecordedHookFailure> {
    serde_json::from_str(line).ok().filter(|failure: &RecordedHookFailure| !failure.message.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(message: &str) -> RecordedHookFailure {
        RecordedHookFailure {
            program: "plimsoll-stop-gate".to_owned(),
            message: message.to_owned(),
            ..RecordedHookFailure::default()
        }
    }

    #[test]
    fn the_last_fault_is_returned_and_the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::with_local_files(folder.path());
        record_hook_failure_if_data_folder_exists(&project, &fault("before anything of ours is there"))
            .unwrap();
        assert_eq!(disk::list_names(folder.path()), [""; 0], "nothing is left where nothing was");
        disk::create_folder(project.data_folder()).unwrap();
        assert_eq!(last_hook_failure(&project), None);
        for number in 0..500 {
            record_hook_failure_if_data_folder_exists(
                &project,
                &fault(&format!("{number} {}", "x".repeat(500))),
            )
            .unwrap();
        }
        let size = disk::file_size(&project.hook_failures_path()).unwrap();
        assert!(size < 2 * MAX_FILE_BYTES, "{size}");
        let newest = last_hook_failure(&project).unwrap();
        assert!(
            newest.message.starts_with("499 ") && clock::parse_timestamp(&newest.occurred_at).is_some(),
            "{newest:?}"
        );
        disk::append(&project.hook_failures_path(), b"{\"what\": \"to").unwrap();
        assert_eq!(last_hook_failure(&project), Some(newest), "a torn line is none");
        assert!(all_hook_failures(&project).len() > 5);
    }
}
