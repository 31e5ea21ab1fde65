//! The expected findings of each version: a file for each in `expected/`. `PLIMSOLL_UPDATE_GOLDEN=1` rewrites it, but fails if a
//! required feature is missing.

use super::probes::{Findings, IfMissing, PROBES};
use plimsoll_protocol::settings::{FIRST_CLASSIC_VERSION, parse_version};
use plimsoll_testkit::workspace_root;
use std::path::PathBuf;

fn expectations_folder() -> PathBuf {
    workspace_root().join("tests/tests/client/client_matrix/expected")
}

/// Loads the findings of all versions that have been tried, oldest first.
pub(crate) fn load_all_findings() -> Vec<(String, Findings)> {
    let files = std::fs::read_dir(expectations_folder()).expect("the expectations");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let mut versions: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".txt")?.to_owned())).collect();
    versions.sort_by_key(|version| parse_version(version));
    versions.into_iter().map(|version| (version.clone(), load_findings(&version).expect("a file"))).collect()
}

pub(crate) fn load_findings(version: &str) -> Option<Findings> {
    let text = std::fs::read_to_string(expectations_folder().join(format!("{version}.txt"))).ok()?;
    Some(Findings::parse_lines(&text))
}

/// Returns true if Plimsoll works with this version at all.
pub(crate) fn is_supported_version(version: &str) -> bool {
    parse_version(version) >= Some(FIRST_CLASSIC_VERSION)
}

/// Returns the keys of required features that this version lacks, though Plimsoll supports it.
pub(crate) fn missing_required_probes(version: &str, findings: &Findings) -> Vec<&'static str> {
    let required = PROBES
        .iter()
        .filter(|probe| matches!(probe.if_missing, IfMissing::Required) && is_supported_version(version));
    required.filter(|probe| !findings.is_yes(probe.key)).map(|probe| probe.key).collect()
}

/// Compares the findings with the expectations line by line, or writes them if `PLIMSOLL_UPDATE_GOLDEN` is set.
pub(crate) fn check_or_update_findings(version: &str, findings: &Findings) {
    let missing = missing_required_probes(version, findings);
    assert!(missing.is_empty(), "client {version} lacks what must never lack: {missing:#?}");
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        let path = expectations_folder().join(format!("{version}.txt"));
        std::fs::write(path, findings.render_lines()).expect("the expectations are writable");
        return;
    }
    let expected = load_findings(version)
        .unwrap_or_else(|| panic!("nothing is known of {version}: PLIMSOLL_UPDATE_GOLDEN=1"));
    let (expected_text, found_text) = (expected.render_lines(), findings.render_lines());
    let changed: Vec<String> = expected_text
        .lines()
        .zip(found_text.lines())
        .filter(|(known, found)| known != found)
        .map(|(known, found)| format!("known is  {known}\nfound was {found}"))
        .collect();
    assert!(changed.is_empty(), "client {version} is not what is known of it:\n{}", changed.join("\n"));
}
