//! What is recorded of sessions and runs, as far as it may go: which files belong together, what they take, and how they are
//! removed. A kill on the way leaves less than there was, and nothing that another record needs.

use crate::{HandoffIndex, Project, StoreError, TurnLog, disk, layout, ledger};
use plimsoll_domain::{RunId, SessionId};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a record takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of its files.
    pub bytes: u64,
    /// Seconds since one of them was written last; none if there is none, or the clock went back.
    pub age: Option<u64>,
}

/// Deeper than this nothing of ours lies.
const DEEPEST: u32 = 6;
/// Caches are not ours; a command that nests deeper keeps the rest.
const DEEPEST_OF_CACHE: u32 = 64;

/// The sessions that have a record or a turn log, also those from before the project had files of ours in it.
pub fn sessions(project: &Project) -> Vec<SessionId> {
    let of = |folder: PathBuf, ending: &'static str| {
        let names = disk::names(&folder).into_iter();
        names.filter_map(move |name| Some(name.strip_suffix(ending)?.to_owned()))
    };
    let mut all: BTreeSet<String> = BTreeSet::new();
    for place in project.with_earlier() {
        let records = of(place.own().join("sessions"), ".json").filter(|id| !id.ends_with(".status"));
        // Also what a removal has left that was killed on its way: the blobs go last.
        let logs = [".jsonl", ".jsonl.zst", ".head", ".torn", ".blobs"]
            .into_iter()
            .flat_map(|ending| of(place.turns(), ending));
        all.extend(records.chain(logs));
    }
    all.into_iter().filter(|id| layout::is_plain(id)).map(SessionId::from).collect()
}

/// The handoffs, by their names.
pub fn handoffs(project: &Project) -> Vec<String> {
    let mut names = disk::names(&project.handoffs());
    names.retain(|name| layout::is_plain(name) && name.ends_with(".md"));
    names
}

/// The runs whose output or caches are kept.
pub fn runs(project: &Project) -> Vec<RunId> {
    let folder = project.own().join("runs");
    let names = disk::names(&folder).into_iter();
    let is_run = |name: &String| layout::is_plain(name) && disk::is_folder_itself(&folder.join(name));
    let mut runs: Vec<RunId> = names.filter(is_run).map(RunId::from).collect();
    for id in ledger::runs_with_cache(project) {
        if !runs.contains(&id) {
            runs.push(id);
        }
    }
    runs
}

/// The files in the caches of a run.
fn cached(project: &Project, id: &RunId) -> Vec<PathBuf> {
    ledger::run_cache(project, id).map(|cache| below(&cache, DEEPEST_OF_CACHE)).unwrap_or_default()
}

/// What a session takes.
pub fn of_session(project: &Project, id: &SessionId) -> Held {
    held(&files_of(project, id))
}

/// What a handoff takes.
pub fn of_handoff(project: &Project, name: &str) -> Held {
    held(&[project.handoffs().join(name)])
}

/// What the output of a run takes.
pub fn of_run(project: &Project, id: &RunId) -> Held {
    let output = below(&project.run_folder(id), DEEPEST);
    held(&[output, cached(project, id)].concat())
}

/// What all our files of a project take, also those from before it had any of ours in it.
pub fn bytes(project: &Project) -> u64 {
    let own = project.with_earlier().iter().flat_map(|place| below(place.own(), DEEPEST)).collect::<Vec<_>>();
    let handoffs = project.handoffs();
    let apart = if handoffs.starts_with(project.own()) { Vec::new() } else { below(&handoffs, 1) };
    let cached = ledger::runs_with_cache(project).into_iter().flat_map(|id| cached(project, &id));
    held(&own).bytes + held(&apart).bytes + held(&cached.collect::<Vec<_>>()).bytes
}

/// Copies all records of a project to another one: sessions with their turn logs, handoffs, what runs put out, and the journal,
/// beside the output of this run. What is there under the same name stays as it is: a folder in which an agent works must not
/// change the records of another, and a copy that a kill cut short is made again, file by file.
pub fn copy_all(from: &Project, to: &Project, run_id: &RunId) -> Result<(), StoreError> {
    let copy = |file: PathBuf| match file.strip_prefix(from.own()) {
        Ok(rest) => copy_file(&file, &to.own().join(rest)),
        Err(_) => Ok(()),
    };
    for session in sessions(from) {
        files_of(from, &session).into_iter().try_for_each(copy)?;
    }
    for run in runs(from) {
        below(&from.run_folder(&run), DEEPEST).into_iter().try_for_each(copy)?;
    }
    for name in handoffs(from) {
        copy_file(&from.handoffs().join(&name), &to.handoffs().join(&name))?;
    }
    copy_file(&from.journal(), &to.run_folder(run_id).join("journal.jsonl"))
}

/// A file of the same name with other bytes keeps it, and this one gets another.
fn copy_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    let Some(bytes) = (if disk::is_link(from) { None } else { disk::read(from)? }) else { return Ok(()) };
    let name = to.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digest = plimsoll_domain::digest::sha256(&[&bytes]);
    let beside = to.with_file_name(format!("{}-{name}", &digest[..8]));
    for place in [to, &beside] {
        match disk::read(place)? {
            Some(there) if there == bytes => return Ok(()),
            Some(_) => {}
            None => return disk::replace(place, &bytes, disk::Durability::Durable),
        }
    }
    Ok(())
}

/// Removes a session, in both folders of the project's files. The records first: by them a later `turns sync` would read the
/// transcript once more. The caller holds the session's lock, whose file stays.
pub fn remove_session(project: &Project, id: &SessionId) -> Result<(), StoreError> {
    let files = files_of(project, id);
    files.iter().try_for_each(|path| disk::remove(path))?;
    for place in project.with_earlier() {
        disk::remove_empty_folder(&place.turns().join(format!("{id}.blobs")));
    }
    Ok(())
}

/// Removes a handoff, then what the index has of it.
pub fn remove_handoff(project: &Project, name: &str) -> Result<(), StoreError> {
    disk::remove(&project.handoffs().join(name))?;
    HandoffIndex::of(project).forget(name);
    Ok(())
}

/// Removes the output and the caches of a run.
pub fn remove_run(project: &Project, id: &RunId) -> Result<(), StoreError> {
    let folder = project.run_folder(id);
    below(&folder, DEEPEST).iter().try_for_each(|path| disk::remove(path))?;
    remove_empty(&folder, DEEPEST);
    // Commands wrote there: a folder that they closed must not prevent what else is to go.
    cached(project, id).iter().for_each(|path| drop(disk::remove(path)));
    if let Some(cache) = ledger::run_cache(project, id) {
        remove_empty(&cache, DEEPEST_OF_CACHE);
    }
    Ok(())
}

/// The files of one session in both folders of the project's files, its records first; its locks stay, as every lock of ours.
fn files_of(project: &Project, id: &SessionId) -> Vec<PathBuf> {
    let places = project.with_earlier();
    let records = places.iter().flat_map(|place| record_files(place, id));
    let logs = places.iter().flat_map(|place| log_files(place, id));
    records.chain(logs).collect()
}

/// The files that begin with the name of a session, and are no locks.
fn files_named(folder: &Path, id: &SessionId) -> Vec<PathBuf> {
    let begins = format!("{id}.");
    let names = disk::names(folder).into_iter();
    let ours = names.filter(|name| name.starts_with(&begins) && !name.ends_with(".lock"));
    ours.map(|name| folder.join(name)).collect()
}

fn record_files(place: &Project, id: &SessionId) -> Vec<PathBuf> {
    let mut files = files_named(&place.own().join("sessions"), id);
    // `one.two` is another session's name, and its files begin with `one.` too.
    files.retain(|path| is_of(path, id, &[".json", ".status.json"]) || is_aside(path, id));
    files
}

fn log_files(place: &Project, id: &SessionId) -> Vec<PathBuf> {
    let folder = place.turns();
    // What an erasure or a packing that was killed has left.
    let mut files = TurnLog::in_folder_of(place, id).map(|log| log.drafts()).unwrap_or_default();
    let is_of_log =
        |path: &PathBuf| is_of(path, id, &[".jsonl", ".jsonl.zst", ".head", ".torn"]) || is_aside(path, id);
    files.extend(files_named(&folder, id).into_iter().filter(is_of_log));
    files.extend(below(&folder.join(format!("{id}.blobs")), 1));
    files
}

fn is_of(path: &Path, id: &SessionId, endings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    endings.iter().any(|ending| name.strip_suffix(ending) == Some(id.as_str()))
}

/// A record or a compressed log that did not parse, and was moved out of the way.
fn is_aside(path: &Path, id: &SessionId) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".json", ".jsonl.zst"].iter().any(|ending| name.starts_with(&format!("{id}{ending}.corrupt-")))
}

/// The files below a folder. Links are not followed: their names are among them.
fn below(folder: &Path, deepest: u32) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in disk::names(folder) {
        let path = folder.join(name);
        if disk::is_folder_itself(&path) {
            if deepest > 1 {
                files.extend(below(&path, deepest - 1));
            }
        } else {
            files.push(path);
        }
    }
    files
}

fn remove_empty(folder: &Path, deepest: u32) {
    if deepest > 1 {
        for name in disk::names(folder) {
            let path = folder.join(name);
            if disk::is_folder_itself(&path) {
                remove_empty(&path, deepest - 1);
            }
        }
    }
    disk::remove_empty_folder(folder);
}

fn held(files: &[PathBuf]) -> Held {
    let bytes = files.iter().filter_map(|path| disk::size(path)).fold(0, u64::saturating_add);
    let age = files.iter().filter_map(|path| disk::age(path)).min().map(|age| age.as_secs());
    Held { bytes, age }
}
