//! Lists, measures, copies and removes the stored files of sessions, handoffs and runs. The order of removal is such
//! that a kill in between never leaves a record without a file that it needs.

use crate::{HandoffIndex, Project, StoreError, TurnLog, disk, layout, ledger};
use plimsoll_domain::{RunId, SessionId};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The size and age of a record's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SizeAndAge {
    /// Total bytes of the files.
    pub bytes: u64,
    /// Seconds since the newest file was written. `None` if there are no files, or if the clock went back.
    pub age_seconds: Option<u64>,
}

/// The maximum depth of the files that Plimsoll itself stores.
const MAX_FOLDER_DEPTH: u32 = 6;
/// The maximum depth of cache files, which commands write. Files that are nested deeper are not removed.
const MAX_CACHE_DEPTH: u32 = 64;

/// Returns the sessions that have a record or a turn log, including those in the project's earlier location.
pub fn sessions_with_record_or_turn_log(project: &Project) -> Vec<SessionId> {
    let ids_of_files_with_suffix = |folder: PathBuf, suffix: &'static str| {
        let names = disk::list_names(&folder).into_iter();
        names.filter_map(move |name| Some(name.strip_suffix(suffix)?.to_owned()))
    };
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for location in project.current_and_earlier_location() {
        let record_ids = ids_of_files_with_suffix(location.data_folder().join("sessions"), ".json")
            .filter(|id| !id.ends_with(".status"));
        // Blobs are removed last, so this also finds what a killed removal left behind.
        let log_ids = [".jsonl", ".jsonl.zst", ".head", ".torn", ".blobs"]
            .into_iter()
            .flat_map(|suffix| ids_of_files_with_suffix(location.turn_logs_folder(), suffix));
        ids.extend(record_ids.chain(log_ids));
    }
    ids.into_iter().filter(|id| layout::is_plain_file_name(id)).map(SessionId::from).collect()
}

/// Returns the file names of the handoffs.
pub fn handoff_names(project: &Project) -> Vec<String> {
    let mut names = disk::list_names(&project.handoffs_folder());
    names.retain(|name| layout::is_plain_file_name(name) && name.ends_with(".md"));
    names
}

/// Returns the runs whose output or caches are still stored.
pub fn runs_with_output_or_cache(project: &Project) -> Vec<RunId> {
    let folder = project.data_folder().join("runs");
    let names = disk::list_names(&folder).into_iter();
    let is_run =
        |name: &String| layout::is_plain_file_name(name) && disk::is_folder_and_not_link(&folder.join(name));
    let mut runs: Vec<RunId> = names.filter(is_run).map(RunId::from).collect();
    for id in ledger::runs_with_cache(project) {
        if !runs.contains(&id) {
            runs.push(id);
        }
    }
    runs
}

fn files_in_run_cache(project: &Project, id: &RunId) -> Vec<PathBuf> {
    ledger::run_cache_folder(project, id)
        .map(|cache_folder| files_below(&cache_folder, MAX_CACHE_DEPTH))
        .unwrap_or_default()
}

/// Returns the size and age of all files of a session.
pub fn session_size_and_age(project: &Project, id: &SessionId) -> SizeAndAge {
    size_and_age_of_files(&session_files(project, id))
}

/// Returns the size and age of a handoff.
pub fn handoff_size_and_age(project: &Project, name: &str) -> SizeAndAge {
    size_and_age_of_files(&[project.handoffs_folder().join(name)])
}

/// Returns the size and age of a run's output and caches.
pub fn run_size_and_age(project: &Project, id: &RunId) -> SizeAndAge {
    let output_files = files_below(&project.run_folder(id), MAX_FOLDER_DEPTH);
    size_and_age_of_files(&[output_files, files_in_run_cache(project, id)].concat())
}

/// Returns the total size in bytes of Plimsoll's files of a project, including those in its earlier location.
pub fn total_plimsoll_bytes(project: &Project) -> u64 {
    let data_files = project
        .current_and_earlier_location()
        .iter()
        .flat_map(|location| files_below(location.data_folder(), MAX_FOLDER_DEPTH))
        .collect::<Vec<_>>();
    let handoffs = project.handoffs_folder();
    let separate_handoff_files =
        if handoffs.starts_with(project.data_folder()) { Vec::new() } else { files_below(&handoffs, 1) };
    let cache_files =
        ledger::runs_with_cache(project).into_iter().flat_map(|id| files_in_run_cache(project, &id));
    size_and_age_of_files(&data_files).bytes
        + size_and_age_of_files(&separate_handoff_files).bytes
        + size_and_age_of_files(&cache_files.collect::<Vec<_>>()).bytes
}

/// Copies all records of a project to another project: sessions with their turn logs, handoffs and run
/// output. The journal is copied into the run folder of `run_id_for_copied_journal`. An existing file is
/// never overwritten, because a folder in which an agent works must not change the records of another
/// project. Repeating the call completes an interrupted copy.
pub fn copy_sessions_runs_handoffs_and_journal(
    source: &Project,
    target: &Project,
    run_id_for_copied_journal: &RunId,
) -> Result<(), StoreError> {
    let copy_data_file = |file: PathBuf| match file.strip_prefix(source.data_folder()) {
        Ok(relative_path) => {
            copy_under_alternative_name_if_taken(&file, &target.data_folder().join(relative_path))
        }
        Err(_) => Ok(()),
    };
    for session in sessions_with_record_or_turn_log(source) {
        session_files(source, &session).into_iter().try_for_each(copy_data_file)?;
    }
    for run in runs_with_output_or_cache(source) {
        files_below(&source.run_folder(&run), MAX_FOLDER_DEPTH).into_iter().try_for_each(copy_data_file)?;
    }
    for name in handoff_names(source) {
        copy_under_alternative_name_if_taken(
            &source.handoffs_folder().join(&name),
            &target.handoffs_folder().join(&name),
        )?;
    }
    copy_under_alternative_name_if_taken(
        &source.journal_path(),
        &target.run_folder(run_id_for_copied_journal).join("journal.jsonl"),
    )
}

/// Copies a file without overwriting. If the target exists with different content, the copy gets a name with a
/// hash prefix. Links and missing files are skipped.
fn copy_under_alternative_name_if_taken(source: &Path, target: &Path) -> Result<(), StoreError> {
    let Some(bytes) = (if disk::is_link(source) { None } else { disk::read(source)? }) else { return Ok(()) };
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digest = plimsoll_domain::digest::sha256_hex(&[&bytes]);
    let alternative_target = target.with_file_name(format!("{}-{name}", &digest[..8]));
    for candidate in [target, &alternative_target] {
        match disk::read(candidate)? {
            Some(existing) if existing == bytes => return Ok(()),
            Some(_) => {}
            None => return disk::replace(candidate, &bytes, disk::Durability::Durable),
        }
    }
    Ok(())
}

/// Removes a session's files in both locations. Records are removed first, because a later `turns sync` would read
/// the transcript of a session with a record again. The caller holds the session's lock; the lock file is kept.
pub fn remove_session_files(project: &Project, id: &SessionId) -> Result<(), StoreError> {
    let files = session_files(project, id);
    files.iter().try_for_each(|path| disk::remove_if_exists(path))?;
    for location in project.current_and_earlier_location() {
        disk::remove_empty_folder(&location.turn_logs_folder().join(format!("{id}.blobs")));
    }
    Ok(())
}

/// Removes a handoff, then its index entry.
pub fn remove_handoff_and_index_entry(project: &Project, name: &str) -> Result<(), StoreError> {
    disk::remove_if_exists(&project.handoffs_folder().join(name))?;
    HandoffIndex::for_project(project).remove(name);
    Ok(())
}

pub fn remove_run_output_and_cache(project: &Project, id: &RunId) -> Result<(), StoreError> {
    let folder = project.run_folder(id);
    files_below(&folder, MAX_FOLDER_DEPTH).iter().try_for_each(|path| disk::remove_if_exists(path))?;
    remove_empty_folders(&folder, MAX_FOLDER_DEPTH);
    // Errors are ignored: commands wrote to the cache, and a folder that they made read-only must not prevent other
    // removals.
    files_in_run_cache(project, id).iter().for_each(|path| drop(disk::remove_if_exists(path)));
    if let Some(cache_folder) = ledger::run_cache_folder(project, id) {
        remove_empty_folders(&cache_folder, MAX_CACHE_DEPTH);
    }
    Ok(())
}

/// Returns the files of a session in both locations, its records first. Lock files are not included, because they
/// are never removed.
fn session_files(project: &Project, id: &SessionId) -> Vec<PathBuf> {
    let locations = project.current_and_earlier_location();
    let record_files = locations.iter().flat_map(|location| session_record_files(location, id));
    let log_files = locations.iter().flat_map(|location| session_log_files(location, id));
    record_files.chain(log_files).collect()
}

/// Returns the files whose names start with the session id and a dot, without lock files.
fn files_with_session_prefix(folder: &Path, id: &SessionId) -> Vec<PathBuf> {
    let prefix = format!("{id}.");
    let names = disk::list_names(folder).into_iter();
    let session_names = names.filter(|name| name.starts_with(&prefix) && !name.ends_with(".lock"));
    session_names.map(|name| folder.join(name)).collect()
}

fn session_record_files(location: &Project, id: &SessionId) -> Vec<PathBuf> {
    let mut files = files_with_session_prefix(&location.data_folder().join("sessions"), id);
    // `one.two` may be another session's id, and its files start with `one.` too.
    files.retain(|path| {
        has_session_name_and_suffix(path, id, &[".json", ".status.json"]) || is_set_aside_file(path, id)
    });
    files
}

fn session_log_files(location: &Project, id: &SessionId) -> Vec<PathBuf> {
    let folder = location.turn_logs_folder();
    // A killed erasure or compression may have left temporary files behind.
    let mut files = TurnLog::for_session_in_turn_logs_folder(location, id)
        .map(|log| log.find_leftover_temporary_log_files())
        .unwrap_or_default();
    let is_log_file = |path: &PathBuf| {
        has_session_name_and_suffix(path, id, &[".jsonl", ".jsonl.zst", ".head", ".torn"])
            || is_set_aside_file(path, id)
    };
    files.extend(files_with_session_prefix(&folder, id).into_iter().filter(is_log_file));
    files.extend(files_below(&folder.join(format!("{id}.blobs")), 1));
    files
}

fn has_session_name_and_suffix(path: &Path, id: &SessionId, suffixes: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    suffixes.iter().any(|suffix| name.strip_suffix(suffix) == Some(id.as_str()))
}

/// Returns true for a record or a compressed log that did not parse and was set aside.
fn is_set_aside_file(path: &Path, id: &SessionId) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".json", ".jsonl.zst"].iter().any(|suffix| name.starts_with(&format!("{id}{suffix}.corrupt-")))
}

/// Lists the files below a folder. Links are not followed; they are listed like files.
fn files_below(folder: &Path, max_depth: u32) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in disk::list_names(folder) {
        let path = folder.join(name);
        if disk::is_folder_and_not_link(&path) {
            if max_depth > 1 {
                files.extend(files_below(&path, max_depth - 1));
            }
        } else {
            files.push(path);
        }
    }
    files
}

fn remove_empty_folders(folder: &Path, max_depth: u32) {
    if max_depth > 1 {
        for name in disk::list_names(folder) {
            let path = folder.join(name);
            if disk::is_folder_and_not_link(&path) {
                remove_empty_folders(&path, max_depth - 1);
            }
        }
    }
    disk::remove_empty_folder(folder);
}

fn size_and_age_of_files(files: &[PathBuf]) -> SizeAndAge {
    let bytes = files.iter().filter_map(|path| disk::file_size(path)).fold(0, u64::saturating_add);
    let age_seconds =
        files.iter().filter_map(|path| disk::time_since_modified(path)).min().map(|age| age.as_secs());
    SizeAndAge { bytes, age_seconds }
}
