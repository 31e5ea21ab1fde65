//! `docs/clients.md`: made of the expectations and the words of the probes.

use super::expected::{all, is_borne};
use super::probes::{Findings, Lack, PROBES};
use plimsoll_protocol::settings::{
    FIRST_CLASSIC_VERSION, FIRST_MODERN_VERSION, FIRST_PLUGIN_VERSION, parse_version,
};
use plimsoll_testkit::workspace_root;
use std::fmt::Write as _;

const HEAD: &str = include_str!("head.md");
const NEWEST: &str = "Newest version at the last refresh: ";

/// The page as it is, or as it must be.
pub(crate) fn check() {
    let path = workspace_root().join("docs/clients.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    // The day is told by the script that refreshes; whoever only compares keeps the page's own.
    let day = std::env::var("PLIMSOLL_MATRIX_DAY").ok().or_else(|| day_of(&page));
    let made = made(&day.unwrap_or_else(|| "an unknown day".to_owned()));
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, made).expect("the page is writable");
    } else {
        assert!(
            page == made,
            "docs/clients.md is not what is known of the clients: PLIMSOLL_UPDATE_GOLDEN=1"
        );
    }
}

fn day_of(page: &str) -> Option<String> {
    let rest = page.split_once(NEWEST)?.1;
    Some(rest.split_once(", ")?.1.split_once('.')?.0.to_owned())
}

fn made(day: &str) -> String {
    let all = all();
    let newest = all.last().map_or("", |(version, _)| version);
    let dotted = |(major, minor, patch): (u32, u32, u32)| format!("{major}.{minor}.{patch}");
    let firsts = [
        ("FIRST_CLASSIC", FIRST_CLASSIC_VERSION),
        ("FIRST_MODERN", FIRST_MODERN_VERSION),
        ("FIRST_PLUGIN", FIRST_PLUGIN_VERSION),
    ];
    let head = firsts
        .into_iter()
        .fold(HEAD.to_owned(), |head, (name, version)| head.replace(name, &dotted(version)));
    let mut page = format!("{head}\n{NEWEST}{newest}, {day}.\n\n");
    page.push_str(&matrix(&all));
    page.push_str(
        "\n## What Plimsoll does without it\n\n| what is missing | versions | instead |\n| --- | --- | --- |\n",
    );
    for probe in PROBES {
        let Lack::Then(then) = probe.lack else { continue };
        let lacking = all.iter().filter(|(version, found)| is_borne(version) && !found.is_yes(probe.key));
        let lacking: Vec<&str> = lacking.map(|(version, _)| version.as_str()).collect();
        if !lacking.is_empty() {
            let _ = writeln!(page, "| {} | {} | {then} |", probe.row, lacking.join(", "));
        }
    }
    page
}

/// A row for each probe, a column for each version.
pub(crate) fn matrix(all: &[(String, Findings)]) -> String {
    let versions: Vec<&str> = all.iter().map(|(version, _)| version.as_str()).collect();
    let mut table = format!("| | {} |\n| --- |{}\n", versions.join(" | "), " :-: |".repeat(all.len()));
    for probe in PROBES {
        let shown = |word: &str| if word == "yes" { word.to_owned() } else { format!("**{word}**") };
        let words: Vec<String> = all.iter().map(|(_, found)| shown(found.word(probe.key))).collect();
        let _ = writeln!(table, "| {} | {} |", probe.row, words.join(" | "));
    }
    table
}

#[test]
fn every_version_is_one() {
    for (version, _) in all() {
        assert!(parse_version(&version).is_some(), "{version}");
    }
}
