//! Where the records of runs are: a run does not begin, and is not resumed, where its sessions may write them.

use super::StartError;
use crate::install::places::settings_files;
use plimsoll_policy::records_location::{Ground, added_by, unfit};
use plimsoll_store::{Project, disk, environment, ledger};
use std::path::{Path, PathBuf};

/// Refuses a place that a session may write; the arguments are those for the client.
pub(super) fn refuse_unfit(project: &Project, client_arguments: &[String]) -> Result<(), StartError> {
    let Some(records) = ledger::all_records(project) else { return Ok(()) };
    let temporary = ["TMPDIR", "CLAUDE_CODE_TMPDIR"].into_iter().filter_map(environment::variable);
    let temporary = temporary.chain(["/tmp", "/var/tmp", "/dev/shm"].map(str::to_owned)).map(PathBuf::from);
    let in_settings = settings_files(project.root()).flat_map(|file| {
        let text = disk::read_text(&file).ok().flatten().unwrap_or_default();
        plimsoll_protocol::settings::added_folders(&text)
    });
    let by_arguments = added_by(client_arguments).into_iter().map(str::to_owned);
    let added = in_settings.chain(by_arguments).map(|folder| absolute(project, &folder));
    let ground = Ground {
        records: resolved(&records),
        project: disk::canonical(project.root()),
        home: environment::home().map(disk::canonical),
        temporary: temporary
            .filter(|folder| folder.is_absolute())
            .map(|folder| disk::canonical(&folder))
            .collect(),
        added: added.map(|folder| disk::canonical(&folder)).collect(),
    };
    unfit(&ground).map_or(Ok(()), |why| Err(StartError::UnfitRecords(why)))
}

fn absolute(project: &Project, folder: &str) -> PathBuf {
    match (folder.strip_prefix("~/"), environment::home()) {
        (Some(below), Some(home)) => home.join(below),
        (None, Some(home)) if folder == "~" => home.to_owned(),
        _ => project.root().join(folder),
    }
}

/// With the links of all that is there already resolved: the folder itself may still have to be made.
fn resolved(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|ancestor| disk::exists(ancestor));
    let below = there.and_then(|there| path.strip_prefix(there).ok().map(|below| (there, below)));
    below.map_or_else(|| path.to_owned(), |(there, below)| disk::canonical(there).join(below))
}
