//! Finds files in a format of a newer Plimsoll version, for `plimsoll doctor`. This version neither reads nor
//! writes them.

use crate::{Project, TurnLog, disk, ledger, memory, sessions, state_file};
use plimsoll_domain::RunId;
use plimsoll_domain::format;
use plimsoll_domain::log_line::LogLine;
use std::path::PathBuf;

/// Returns the files of a project that a newer version has written: the state and its copy, the ledgers of
/// this user's runs, session records, turn logs and the memory's log.
pub fn files_in_newer_format(project: &Project) -> Vec<PathBuf> {
    let run_names =
        ledger::records_folder(project).map(|folder| disk::list_names(&folder)).unwrap_or_default();
    let record_folder =
        |run_name: String| ledger::inherited_or_default_run_record_folder(project, &RunId::from(run_name));
    let record_folders = run_names.into_iter().filter_map(record_folder);
    let ledger_paths = record_folders
        .flat_map(|folder| ["ledger.json", "workers.json", "protected.json"].map(|name| folder.join(name)));
    let record_paths =
        sessions::sessions_with_record(project).into_iter().filter_map(|id| project.session_record_path(&id));
    let state_paths = [project.state_path().to_owned(), state_file::state_copy_path(project)];
    let documents = state_paths.into_iter().chain(ledger_paths).chain(record_paths);
    let is_newer = |path: &PathBuf| {
        disk::read(path)
            .ok()
            .flatten()
            .is_some_and(|bytes| format::newer_format_of_document(&bytes).is_some())
    };
    let mut newer_files: Vec<PathBuf> = documents.filter(is_newer).collect();
    // Compressed logs are skipped: they would have to be read completely, and their next writer checks the format.
    let logs = TurnLog::all_in_both_locations_oldest_modified_first(project)
        .into_iter()
        .filter(|log| !log.is_compressed());
    let logs = logs.chain([memory::memory_log(project)]);
    newer_files.extend(logs.filter(has_newer_last_line).map(|log| log.path()));
    newer_files
}

/// Returns true if the last line of a log was written by a newer version.
fn has_newer_last_line(log: &TurnLog) -> bool {
    let last_line = log.backward_lines().ok().and_then(|mut lines| lines.next()?.ok());
    last_line.is_some_and(|line| {
        LogLine::newer_format_of_line(&line.bytes, LogLine::parse(&line.bytes).as_ref()).is_some()
    })
}
