//! The record and ledger of each run. Both are in the user's state, where no sandboxed command of an agent
//! can write and where no clone can put a file. The record names the run, its project, and the command that
//! started it, and never changes. The ledger is the state as `plimsoll run`, `gate`, `start`, `stop`, `prompt
//! --checkpoint` and `fleet join` last wrote it; it takes precedence over the project's file
//! (`crate::authority`).

use crate::{Durability, Project, StoreError, disk, environment, newer_format_or_corrupt_error, sessions};
use plimsoll_domain::cost::Cost;
use plimsoll_domain::format::FormatVersion;
use plimsoll_domain::limits::DayCost;
use plimsoll_domain::{RunId, RunState, RunStatus, Timestamp};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LEDGER_FILE: &str = "ledger.json";
const RECORD_FILE: &str = "record.json";

/// The environment variable with the path of the run's record, for a shell loop or a process that has another
/// home.
pub const RUN_RECORD_VARIABLE: &str = "PLIMSOLL_RUN_RECORD";

/// The record of a run: its project and the command that started it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    pub format: FormatVersion,
    pub run_id: RunId,
    /// The project's folder with all links resolved.
    pub project: String,
    /// The command that started it, one argument per element.
    pub command: Vec<String>,
    /// RFC 3339 UTC.
    pub started_at: Timestamp,
}

/// The environment variable with the run's id, set for every program that is started inside one of its
/// sessions.
pub const RUN_VARIABLE: &str = "PLIMSOLL_RUN_ID";

/// Returns the run for which this process was started; `None` outside of a run.
pub fn run_id_from_environment() -> Option<RunId> {
    environment::variable(RUN_VARIABLE).map(RunId::from)
}

static IS_LEDGER_WRITER: AtomicBool = AtomicBool::new(false);

/// Lets this process write the ledger of the run that it changes. Only `plimsoll run` and similar commands
/// that the user starts call this; every other process writes only the project's file, whose claims are
/// checked against the ledger.
pub fn enable_ledger_writes() {
    IS_LEDGER_WRITER.store(true, Ordering::Relaxed);
}

/// Returns true if this process may write the ledger.
pub fn is_ledger_writer() -> bool {
    IS_LEDGER_WRITER.load(Ordering::Relaxed)
}

/// Returns the folder of the records of all runs; `None` without a home.
pub fn records_folder(project: &Project) -> Option<PathBuf> {
    project.runs_folder()
}

/// Returns the folder of a run's record; `None` without a home, or for an id that cannot be a file name.
pub fn inherited_or_default_run_record_folder(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    if !crate::layout::is_plain_file_name(run_id) {
        return None;
    }
    let record_path = environment::variable(RUN_RECORD_VARIABLE).map(PathBuf::from);
    let inherited_folder = record_path.and_then(|record| record.parent().map(Path::to_owned));
    // The variable may be inherited from another run, so the folder must have this run's id as its name.
    let is_folder_of_run = |folder: &PathBuf| {
        folder.is_absolute() && folder.file_name().is_some_and(|name| name == run_id.as_str())
    };
    inherited_folder.filter(is_folder_of_run).or_else(|| Some(project.runs_folder()?.join(run_id.as_str())))
}

/// The folder in a run's record for the caches of its sandboxed commands.
const CACHE_FOLDER: &str = "cache";

/// Returns the folder of the worktrees of all parallel runs, next to the records of runs; `None` without a
/// home.
fn worktrees_folder(project: &Project) -> Option<PathBuf> {
    worktrees_folder_beside(&records_folder(project)?)
}

/// Returns the cache folder of sandboxed commands; `None` without a home. Each worktree of a parallel run has
/// a separate one below that run's record, so that files an item's commands leave there cannot affect the
/// commands that verify the merge.
pub fn cache_folder_of_worktree_or_run(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    let worktrees = disk::canonicalize_or_keep(&worktrees_folder(project)?);
    let root = disk::canonicalize_or_keep(project.root());
    let mut parts = root.strip_prefix(worktrees).map(Path::components).into_iter().flatten();
    match (parts.next(), parts.next()) {
        (Some(run), Some(worktree)) => {
            Some(records_folder(project)?.join(run).join(CACHE_FOLDER).join(worktree))
        }
        _ => run_cache_folder(project, run_id),
    }
}

/// Returns the folder of all caches of a run, even if it does not exist yet; `None` without a home.
pub fn run_cache_folder(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    Some(inherited_or_default_run_record_folder(project, run_id)?.join(CACHE_FOLDER))
}

/// Returns the runs of this project that have caches.
pub(crate) fn runs_with_cache(project: &Project) -> Vec<RunId> {
    let Some(records) = records_folder(project) else { return Vec::new() };
    let has_cache = |name: &String| disk::is_folder_and_not_link(&records.join(name).join(CACHE_FOLDER));
    let runs = disk::list_names(&records).into_iter().filter(has_cache).map(RunId::from);
    runs.filter(|id| is_run_of_user_in_project(project, id)).collect()
}

/// Returns the path of a run's record, for `PLIMSOLL_RUN_RECORD`.
pub fn run_record_path(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    inherited_or_default_run_record_folder(project, run_id).map(|folder| folder.join(RECORD_FILE))
}

/// Loads the record of a run; `None` if this user has none.
pub fn load_run_record(project: &Project, run_id: &RunId) -> Option<RunRecord> {
    let record: RunRecord = sessions::read_json_if_valid(&run_record_path(project, run_id)?)?;
    (record.run_id == *run_id).then_some(record)
}

/// Returns true if this user started the run in this project.
pub fn is_run_of_user_in_project(project: &Project, run_id: &RunId) -> bool {
    load_run_record(project, run_id).is_some_and(|record| record.project == canonical_root_text(project))
}

/// Returns the records of this user's runs in all projects, without those of workers, which are parts of another run.
pub fn run_records_of_user_without_workers() -> Vec<RunRecord> {
    let Some(runs_folder) = crate::layout::default_runs_folder() else { return Vec::new() };
    let worktrees_folder = worktrees_folder_beside(&runs_folder);
    let load_record = |name: String| {
        let record: RunRecord = sessions::read_json_if_valid(&runs_folder.join(&name).join(RECORD_FILE))?;
        let is_of_worker = worktrees_folder
            .as_ref()
            .is_some_and(|worktrees| Path::new(&record.project).starts_with(worktrees));
        (record.run_id == *name && !is_of_worker).then_some(record)
    };
    disk::list_names(&runs_folder).into_iter().filter_map(load_record).collect()
}

/// Loads the state of a run of this user from its ledger; `None` if it cannot be read.
pub fn load_state_of_user_run(record: &RunRecord) -> Option<RunState> {
    let folder = crate::layout::default_runs_folder()?.join(record.run_id.as_str());
    RunState::from_json_text(&disk::read(&folder.join(LEDGER_FILE)).ok()??).ok()
}

/// Returns the folder of the worktrees of a run's workers; `None` without a home.
pub fn worktrees_folder_of_run(run_id: &RunId) -> Option<PathBuf> {
    Some(worktrees_folder_beside(&crate::layout::default_runs_folder()?)?.join(run_id.as_str()))
}

/// Returns the folder of the worktrees of all parallel runs, next to this folder of the records of runs.
fn worktrees_folder_beside(runs_folder: &Path) -> Option<PathBuf> {
    Some(runs_folder.parent()?.join("trees"))
}

/// Loads the state from the ledger; `None` if this user did not start the run in this project.
pub fn load_ledger_state(project: &Project, run_id: &RunId) -> Result<Option<RunState>, StoreError> {
    read_and_parse_ledger_if_run_of_user(project, run_id, RunState::from_json_text)
}

/// The part of a ledger that has the run's cost of a day.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LedgerDayCost {
    cost_of_day: DayCost,
}

/// Returns the cost of this user's runs, in all projects, on a day (formatted as by [`crate::clock::format_local_date`]),
/// without `excluded_run`. Ledgers that cannot be read are ignored.
pub fn cost_of_other_runs_on_day(project: &Project, day: &str, excluded_run: &RunId) -> Cost {
    let Some(runs) = records_folder(project) else { return Cost::default() };
    // A ledger not written for two days has no cost of this day, even if the clock was changed.
    let is_recent = |path: &PathBuf| {
        disk::time_since_modified(path).is_none_or(|age| age < Duration::from_secs(2 * 86_400))
    };
    let other_runs = disk::list_names(&runs).into_iter().filter(|name| name != excluded_run.as_str());
    let ledgers = other_runs.map(|name| runs.join(name).join(LEDGER_FILE)).filter(is_recent);
    let cost_of_run = |path: PathBuf| -> Option<Cost> {
        let ledger: LedgerDayCost = sessions::read_json_if_valid(&path)?;
        Some(ledger.cost_of_day.cost_on_day(day))
    };
    ledgers.filter_map(cost_of_run).sum()
}

/// Reads the ledger's bytes; `None` if there is no ledger, or if a process that does not write it cannot open it.
pub(crate) fn read_ledger_ignoring_errors_unless_writer(
    project: &Project,
    run_id: &RunId,
) -> Result<Option<Vec<u8>>, StoreError> {
    match ledger_path(project, run_id).map(|path| disk::read(&path)) {
        // Processes that do not write the ledger may not have permission to open it.
        Some(Err(_)) if !is_ledger_writer() => Ok(None),
        Some(result) => result,
        None => Ok(None),
    }
}

/// A function that parses a state: all of it, or without its history.
pub(crate) type StateParser = fn(&[u8]) -> serde_json::Result<RunState>;

pub(crate) fn read_and_parse_ledger_if_run_of_user(
    project: &Project,
    run_id: &RunId,
    parse: StateParser,
) -> Result<Option<RunState>, StoreError> {
    if !is_run_of_user_in_project(project, run_id) {
        return Ok(None);
    }
    let Some(path) = ledger_path(project, run_id) else { return Ok(None) };
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let state = parse(&bytes).map_err(|error| newer_format_or_corrupt_error(&path, &bytes, &error))?;
    Ok(if state.run_id == *run_id { Some(state) } else { None })
}

/// Creates the record and the ledger of a new run.
pub(crate) fn create_record_settings_copy_and_ledger(
    project: &Project,
    state: &RunState,
) -> Result<(), StoreError> {
    let Some(path) = run_record_path(project, &state.run_id) else {
        return Err(StoreError::NoHome { project: project.root().to_owned() });
    };
    let record = RunRecord {
        format: FormatVersion,
        run_id: state.run_id.clone(),
        project: canonical_root_text(project),
        command: std::env::args().collect(),
        started_at: state.project_at_start.started_at.clone(),
    };
    // The settings are copied first: a run with a record and no copy would use the project's current settings.
    if let Some(settings_copy) = settings_copy_path(project, &state.run_id) {
        let settings = disk::read(&project.settings_path())?.unwrap_or_else(|| b"{}".to_vec());
        disk::replace(&settings_copy, &settings, Durability::Durable)?;
    }
    // The record is written before the ledger, which is ignored without a record: a kill in between leaves a run
    // without a ledger.
    disk::replace(&path, &serde_json::to_vec_pretty(&record).unwrap_or_default(), Durability::Durable)?;
    write_ledger(project, state)
}

/// Writes the ledger if this process may write it; otherwise does nothing.
pub(crate) fn write_ledger_if_permitted(project: &Project, state: &RunState) -> Result<(), StoreError> {
    // Without a record, this user did not start the run in this project, so no ledger may be created for it.
    if !is_ledger_writer() || !is_run_of_user_in_project(project, &state.run_id) {
        return Ok(());
    }
    match write_ledger(project, state) {
        // An agent may cancel from its sandbox, where the ledger is not writable: the canceled state in the
        // project's file is enough.
        Err(error) if state.lifecycle.status() == RunStatus::Canceled && is_permission_error(&error) => {
            Ok(())
        }
        result => result,
    }
}

fn is_permission_error(error: &StoreError) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error, StoreError::Io { source, .. } if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
}

fn write_ledger(project: &Project, state: &RunState) -> Result<(), StoreError> {
    let Some(path) = ledger_path(project, &state.run_id) else { return Ok(()) };
    disk::replace(&path, &serde_json::to_vec(state).unwrap_or_default(), Durability::Durable)
}

/// Returns the path of the copy of the project's settings from the run's start.
pub(crate) fn settings_copy_path(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    inherited_or_default_run_record_folder(project, run_id).map(|folder| folder.join("preferences.json"))
}

fn ledger_path(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    inherited_or_default_run_record_folder(project, run_id).map(|folder| folder.join(LEDGER_FILE))
}

fn canonical_root_text(project: &Project) -> String {
    disk::canonicalize_or_keep(project.root()).to_string_lossy().into_owned()
}
