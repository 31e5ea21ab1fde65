//! Files in a format of a newer version of ours, for `plimsoll doctor`: they are read and written by nothing here.

use crate::{Project, TurnLog, disk, ledger, memory, sessions, state_file};
use plimsoll_domain::RunId;
use plimsoll_domain::format;
use plimsoll_domain::log_line::LogLine;
use std::path::PathBuf;

/// The files of a project that a newer version has written: the state with its copy, the ledgers of this user's runs, session
/// records, turn logs and the memory's log.
pub fn newer(project: &Project) -> Vec<PathBuf> {
    let runs = ledger::all_records(project).map(|runs| disk::names(&runs)).unwrap_or_default();
    let of_run = |run: String| ledger::folder(project, &RunId::from(run));
    let ledgers = runs.into_iter().filter_map(of_run);
    let ledgers = ledgers
        .flat_map(|folder| ["ledger.json", "workers.json", "protected.json"].map(|name| folder.join(name)));
    let records = sessions::ids(project).into_iter().filter_map(|id| project.session(&id));
    let states = [project.state().to_owned(), state_file::copy_path(project)];
    let documents = states.into_iter().chain(ledgers).chain(records);
    let is_newer =
        |path: &PathBuf| disk::read(path).ok().flatten().is_some_and(|text| format::newer(&text).is_some());
    let mut found: Vec<PathBuf> = documents.filter(is_newer).collect();
    // One that is compressed would have to be read whole; its next writer finds out.
    let logs = TurnLog::all_copies(project).into_iter().filter(|log| !log.is_packed());
    let logs = logs.chain([memory::log(project)]);
    found.extend(logs.filter(ends_newer).map(|log| log.path()));
    found
}

/// True if the last line of a log is a newer version's.
fn ends_newer(log: &TurnLog) -> bool {
    let last = log.backwards().ok().and_then(|mut lines| lines.next()?.ok());
    last.is_some_and(|line| LogLine::newer(&line.bytes, LogLine::parse(&line.bytes).as_ref()).is_some())
}
