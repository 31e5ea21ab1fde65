//! `docs/clients.md`: generated from the expectations and the texts of the probes.

use super::expected::{is_supported_version, load_all_findings};
use super::probes::{Findings, IfMissing, PROBES};
use plimsoll_protocol::settings::{
    FIRST_CLASSIC_VERSION, FIRST_MODERN_VERSION, FIRST_PLUGIN_VERSION, parse_version,
};
use plimsoll_testkit::workspace_root;
use std::fmt::Write as _;

const PAGE_HEAD: &str = include_str!("head.md");
const NEWEST_LABEL: &str = "Newest version at the last refresh: ";

/// Compares the page with its generated content, or writes it if `PLIMSOLL_UPDATE_GOLDEN` is set.
pub(crate) fn check_or_update_page() {
    let path = workspace_root().join("docs/clients.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    // Only the script that refreshes the page sets the day; a comparison keeps the one on the page.
    let refresh_day = std::env::var("PLIMSOLL_MATRIX_DAY").ok().or_else(|| parse_refresh_day(&page));
    let expected_page = render_page(&refresh_day.unwrap_or_else(|| "an unknown day".to_owned()));
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, expected_page).expect("the page is writable");
    } else {
        assert!(
            page == expected_page,
            "docs/clients.md is not what is known of the clients: PLIMSOLL_UPDATE_GOLDEN=1"
        );
    }
}

fn parse_refresh_day(page: &str) -> Option<String> {
    let rest = page.split_once(NEWEST_LABEL)?.1;
    Some(rest.split_once(", ")?.1.split_once('.')?.0.to_owned())
}

fn render_page(day: &str) -> String {
    let clients = load_all_findings();
    let newest = clients.last().map_or("", |(version, _)| version);
    let version_text = |(major, minor, patch): (u32, u32, u32)| format!("{major}.{minor}.{patch}");
    let minimum_versions = [
        ("FIRST_CLASSIC", FIRST_CLASSIC_VERSION),
        ("FIRST_MODERN", FIRST_MODERN_VERSION),
        ("FIRST_PLUGIN", FIRST_PLUGIN_VERSION),
    ];
    let head = minimum_versions
        .into_iter()
        .fold(PAGE_HEAD.to_owned(), |head, (name, version)| head.replace(name, &version_text(version)));
    let versions: Vec<&str> = clients.iter().map(|(version, _)| version.as_str()).collect();
    let mut page = format!("{head}\n{NEWEST_LABEL}{newest}, {day}.\n\nTested: {}.\n", versions.join(", "));
    let _ = write!(page, "\n## What works from {} on\n\n", version_text(FIRST_CLASSIC_VERSION));
    for probe in PROBES.iter().filter(|probe| matches!(probe.if_missing, IfMissing::Required)) {
        let _ = writeln!(page, "- {}", probe.row);
    }
    page.push_str("\n## What older versions lack\n\n");
    page.push_str("| feature | missing | what Plimsoll does instead |\n| --- | --- | --- |\n");
    let first_supported = clients.partition_point(|(version, _)| !is_supported_version(version));
    for probe in PROBES {
        let IfMissing::Fallback(fallback) = probe.if_missing else { continue };
        let missing = missing_version_ranges(&clients[first_supported..], probe.key);
        if !missing.is_empty() {
            let _ = writeln!(page, "| {} | {missing} | {fallback} |", probe.row);
        }
    }
    page
}

/// Returns the versions that lack a feature, as ranges of the tested versions: `up to 2.0.77`. The versions are sorted, oldest
/// first.
fn missing_version_ranges(clients: &[(String, Findings)], key: &str) -> String {
    let oldest = clients.first().map(|(version, _)| version);
    let ranges: Vec<String> = clients
        .chunk_by(|(_, earlier), (_, later)| earlier.is_yes(key) == later.is_yes(key))
        .filter(|range| !range[0].1.is_yes(key))
        .map(|range| {
            let (first, last) = (&range[0].0, &range[range.len() - 1].0);
            if Some(first) == oldest {
                format!("up to {last}")
            } else if first == last {
                first.clone()
            } else {
                format!("{first} to {last}")
            }
        })
        .collect();
    ranges.join(", ")
}

/// Renders a table with a row for each probe and a column for each version, for the output of `scripts/client-matrix.sh`.
pub(crate) fn render_matrix(clients: &[(String, Findings)]) -> String {
    let versions: Vec<&str> = clients.iter().map(|(version, _)| version.as_str()).collect();
    let mut table = format!("| | {} |\n| --- |{}\n", versions.join(" | "), " :-: |".repeat(clients.len()));
    for probe in PROBES {
        let emphasize = |word: &str| if word == "yes" { word.to_owned() } else { format!("**{word}**") };
        let words: Vec<String> =
            clients.iter().map(|(_, findings)| emphasize(findings.word(probe.key))).collect();
        let _ = writeln!(table, "| {} | {} |", probe.row, words.join(" | "));
    }
    table
}

#[test]
fn every_expectation_file_is_named_after_a_valid_version() {
    for (version, _) in load_all_findings() {
        assert!(parse_version(&version).is_some(), "{version}");
    }
}

#[test]
fn versions_that_lack_a_feature_are_shown_as_ranges() {
    let key = "event.PostToolBatch";
    let clients: Vec<(String, Findings)> = ["no", "no", "yes", "no", "yes", "no", "–"]
        .iter()
        .enumerate()
        .map(|(patch, word)| (format!("2.1.{patch}"), Findings::parse_lines(&format!("{key}: {word}"))))
        .collect();
    assert_eq!(missing_version_ranges(&clients, key), "up to 2.1.1, 2.1.3, 2.1.5 to 2.1.6");
    assert_eq!(missing_version_ranges(&clients[2..3], key), "");
}
