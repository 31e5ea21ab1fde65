//! What each version is known to give: a file for each in `expected/`. `PLIMSOLL_UPDATE_GOLDEN=1` renews it; what must
//! never lack, it does not let pass even so.

use super::probes::{Findings, Lack, PROBES};
use plimsoll_protocol::settings::{FIRST_CLASSIC_VERSION, parse_version};
use plimsoll_testkit::workspace_root;
use std::path::PathBuf;

fn folder() -> PathBuf {
    workspace_root().join("tests/tests/client/client_matrix/expected")
}

/// All versions that have been tried, oldest first, with what was found.
pub(crate) fn all() -> Vec<(String, Findings)> {
    let files = std::fs::read_dir(folder()).expect("the expectations");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let mut versions: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".txt")?.to_owned())).collect();
    versions.sort_by_key(|version| parse_version(version));
    versions.into_iter().map(|version| (version.clone(), of(&version).expect("a file"))).collect()
}

pub(crate) fn of(version: &str) -> Option<Findings> {
    let text = std::fs::read_to_string(folder().join(format!("{version}.txt"))).ok()?;
    Some(Findings::of_lines(&text))
}

/// Whether Plimsoll works with such a client at all.
pub(crate) fn is_borne(version: &str) -> bool {
    parse_version(version) >= Some(FIRST_CLASSIC_VERSION)
}

/// What lacks and must not.
pub(crate) fn broken_promises(version: &str, findings: &Findings) -> Vec<&'static str> {
    let promised = PROBES.iter().filter(|probe| matches!(probe.lack, Lack::Never) && is_borne(version));
    promised.filter(|probe| !findings.is_yes(probe.key)).map(|probe| probe.key).collect()
}

/// Compares what was found with what is known, line by line.
pub(crate) fn check(version: &str, found: &Findings) {
    let broken = broken_promises(version, found);
    assert!(broken.is_empty(), "client {version} lacks what must never lack: {broken:#?}");
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        let path = folder().join(format!("{version}.txt"));
        std::fs::write(path, found.lines()).expect("the expectations are writable");
        return;
    }
    let known =
        of(version).unwrap_or_else(|| panic!("nothing is known of {version}: PLIMSOLL_UPDATE_GOLDEN=1"));
    let (known, found) = (known.lines(), found.lines());
    let changed: Vec<String> = known
        .lines()
        .zip(found.lines())
        .filter(|(known, found)| known != found)
        .map(|(known, found)| format!("known is  {known}\nfound was {found}"))
        .collect();
    assert!(changed.is_empty(), "client {version} is not what is known of it:\n{}", changed.join("\n"));
}
