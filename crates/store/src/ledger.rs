//! The run's record and ledger: among the user's state, where no sandboxed command of an agent writes and no clone brings a
//! file. The record says whose run it is, where and by which command it began, and never changes. The ledger is the
//! state as `plimsoll run`, `gate`, `start`, `stop`, `prompt --checkpoint` and `fleet join` last left it; it takes precedence over
//! the project's file (`crate::authority`).

use crate::{Durability, Project, StoreError, disk, environment, sessions, unreadable};
use plimsoll_domain::cost::Cost;
use plimsoll_domain::format::Format;
use plimsoll_domain::limits::DayCost;
use plimsoll_domain::{RunId, RunState, Status, Timestamp};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LEDGER: &str = "ledger.json";

/// Names the record for a loop, or for a shell that has another home.
pub const RECORD_VARIABLE: &str = "PLIMSOLL_RUN_RECORD";

/// Whose run it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The format of the file.
    pub format: Format,
    /// The run's id.
    pub run_id: RunId,
    /// The project's folder, every link resolved.
    pub project: String,
    /// The command that began it, word by word.
    pub command: Vec<String>,
    /// RFC 3339 UTC.
    pub started_at: Timestamp,
}

/// Names the run to every program that is started inside one of its sessions.
pub const RUN_VARIABLE: &str = "PLIMSOLL_RUN_ID";

/// The run that this process was started for; none outside of one.
pub fn run_of_environment() -> Option<RunId> {
    environment::variable(RUN_VARIABLE).map(RunId::from)
}

static KEEPS: AtomicBool = AtomicBool::new(false);

/// From now on this process writes the ledger of the run that it changes: it is `plimsoll run` or one of its like, started
/// by the user. Every other process only claims.
pub fn keep() {
    KEEPS.store(true, Ordering::Relaxed);
}

/// True in a process that writes the ledger.
pub fn is_kept_here() -> bool {
    KEEPS.load(Ordering::Relaxed)
}

/// The folder of the records of all runs; none without a home.
pub fn all_records(project: &Project) -> Option<PathBuf> {
    project.runs()
}

/// The folder of a run's record; none without a home.
pub fn folder(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    if !crate::layout::is_plain(run_id) {
        return None;
    }
    let named = environment::variable(RECORD_VARIABLE).map(PathBuf::from);
    let named = named.and_then(|record| record.parent().map(Path::to_owned));
    // The variable may be another run's, inherited: the folder it names must bear this run's id.
    let is_of_run = |folder: &PathBuf| {
        folder.is_absolute() && folder.file_name().is_some_and(|name| name == run_id.as_str())
    };
    named.filter(is_of_run).or_else(|| Some(project.runs()?.join(run_id.as_str())))
}

/// The folder below a run's record in which its sandboxed commands keep caches.
const CACHE: &str = "cache";

/// The folder of the worktrees of all parallel runs, beside the records of runs; none without a home.
fn all_trees(project: &Project) -> Option<PathBuf> {
    Some(all_records(project)?.parent()?.join("trees"))
}

/// The cache folder of commands that run in a sandbox; none without a home. In a worktree of a parallel run it is below that run's
/// record, one for each worktree: what an item's commands leave there must not reach the commands that verify the merge.
pub fn command_cache(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    let trees = disk::canonical(&all_trees(project)?);
    let root = disk::canonical(project.root());
    let mut parts = root.strip_prefix(trees).map(Path::components).into_iter().flatten();
    match (parts.next(), parts.next()) {
        (Some(run), Some(tree)) => Some(all_records(project)?.join(run).join(CACHE).join(tree)),
        _ => run_cache(project, run_id),
    }
}

/// The folder of all caches of a run, whether it is there or not; none without a home.
pub fn run_cache(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    Some(folder(project, run_id)?.join(CACHE))
}

/// The runs of this project that have caches.
pub(crate) fn runs_with_cache(project: &Project) -> Vec<RunId> {
    let Some(records) = all_records(project) else { return Vec::new() };
    let has_cache = |name: &String| disk::is_folder_itself(&records.join(name).join(CACHE));
    let runs = disk::names(&records).into_iter().filter(has_cache).map(RunId::from);
    runs.filter(|id| knows(project, id)).collect()
}

/// The path of the record, for `PLIMSOLL_RUN_RECORD`.
pub fn record_path(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    folder(project, run_id).map(|folder| folder.join("record.json"))
}

/// The record of a run; none if this user has none.
pub fn record(project: &Project, run_id: &RunId) -> Option<Record> {
    let record: Record = sessions::load_parsed(&record_path(project, run_id)?)?;
    (record.run_id == *run_id).then_some(record)
}

/// True if a run was begun by this user in this project.
pub fn knows(project: &Project, run_id: &RunId) -> bool {
    record(project, run_id).is_some_and(|record| record.project == place(project))
}

/// The state as the ledger has it; none if the run is not this user's in this project.
pub fn load(project: &Project, run_id: &RunId) -> Result<Option<RunState>, StoreError> {
    load_by(project, run_id, RunState::from_text)
}

/// What of a ledger says what its run has spent on a day.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CostOfDay {
    cost_of_day: DayCost,
}

/// What the runs of this user, in all projects, have spent on a day (as [`crate::clock::day`] names it), without one of them. A
/// ledger that cannot be read counts for nothing.
pub fn spent_on(project: &Project, day: &str, but: &RunId) -> Cost {
    let Some(runs) = all_records(project) else { return Cost::default() };
    // What was not written for two days holds nothing of this one, wherever the clock was set to.
    let is_recent = |path: &PathBuf| disk::age(path).is_none_or(|age| age < Duration::from_secs(2 * 86_400));
    let others = disk::names(&runs).into_iter().filter(|name| name != but.as_str());
    let ledgers = others.map(|name| runs.join(name).join(LEDGER)).filter(is_recent);
    let cost = |path: PathBuf| -> Option<Cost> {
        let ledger: CostOfDay = sessions::load_parsed(&path)?;
        Some(ledger.cost_of_day.on(day))
    };
    ledgers.filter_map(cost).sum()
}

/// The ledger's bytes; none where there is none.
pub(crate) fn bytes(project: &Project, run_id: &RunId) -> Result<Option<Vec<u8>>, StoreError> {
    match ledger_path(project, run_id).map(|path| disk::read(&path)) {
        // Who only claims may not be allowed to look there.
        Some(Err(_)) if !is_kept_here() => Ok(None),
        Some(read) => read,
        None => Ok(None),
    }
}

/// How a state is read off its text: all of it, or without its history.
pub(crate) type ReadState = fn(&[u8]) -> serde_json::Result<RunState>;

pub(crate) fn load_by(
    project: &Project,
    run_id: &RunId,
    read: ReadState,
) -> Result<Option<RunState>, StoreError> {
    if !knows(project, run_id) {
        return Ok(None);
    }
    let Some(path) = ledger_path(project, run_id) else { return Ok(None) };
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let state = read(&bytes).map_err(|error| unreadable(&path, &bytes, &error))?;
    Ok(if state.run_id == *run_id { Some(state) } else { None })
}

/// Begins the record and the ledger of a new run.
pub(crate) fn create(project: &Project, state: &RunState) -> Result<(), StoreError> {
    let Some(path) = record_path(project, &state.run_id) else {
        return Err(StoreError::NoHome { project: project.root().to_owned() });
    };
    let record = Record {
        format: Format,
        run_id: state.run_id.clone(),
        project: place(project),
        command: std::env::args().collect(),
        started_at: state.at_start.started_at.clone(),
    };
    // The settings first: a run that has a record, and none of them, would go by the project's file as it is now.
    if let Some(kept) = preferences_path(project, &state.run_id) {
        let own = disk::read(&project.settings())?.unwrap_or_else(|| b"{}".to_vec());
        disk::replace(&kept, &own, Durability::Durable)?;
    }
    // The record before the ledger, which counts only beside one: a kill in between leaves a run without a ledger.
    disk::replace(&path, &serde_json::to_vec_pretty(&record).unwrap_or_default(), Durability::Durable)?;
    write(project, state)
}

/// Writes the ledger, where this process keeps it.
pub(crate) fn note(project: &Project, state: &RunState) -> Result<(), StoreError> {
    // Without a record this user did not begin the run here, and no ledger makes it the user's.
    if !is_kept_here() || !knows(project, &state.run_id) {
        return Ok(());
    }
    match write(project, state) {
        // An agent may cancel from its sandbox: the project's file says so, and that is enough.
        Err(error) if state.lifecycle.status() == Status::Cancelled && is_not_allowed(&error) => Ok(()),
        written => written,
    }
}

fn is_not_allowed(error: &StoreError) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error, StoreError::Io { source, .. } if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
}

fn write(project: &Project, state: &RunState) -> Result<(), StoreError> {
    let Some(path) = ledger_path(project, &state.run_id) else { return Ok(()) };
    disk::replace(&path, &serde_json::to_vec(state).unwrap_or_default(), Durability::Durable)
}

/// The project's settings file as it was when the run began.
pub(crate) fn preferences_path(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    folder(project, run_id).map(|folder| folder.join("preferences.json"))
}

fn ledger_path(project: &Project, run_id: &RunId) -> Option<PathBuf> {
    folder(project, run_id).map(|folder| folder.join(LEDGER))
}

fn place(project: &Project) -> String {
    disk::canonical(project.root()).to_string_lossy().into_owned()
}
