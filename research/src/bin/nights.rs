//! Plays nights and reports them. Each finished night is stored as a line of `target/nights.jsonl`, so that
//! an interrupted play continues where it stopped: `scripts/nights.sh` calls `nights COMMAND`.
//!
//! play FIRST LAST [WAY,… [CHARACTER,…]]   plays the nights of these seeds that this build has not played yet
//! report FIRST LAST [BUILD]               writes docs/nights.md and docs/nights.tsv from those seeds of
//! which this                                             build, or the stored BUILD, has played all nights

use plimsoll_research::handovers::{find_section, with_section};
use plimsoll_research::nights::page::{render_page, render_tsv, rows_of_complete_seeds};
use plimsoll_research::nights::simulator::Character;
use plimsoll_research::nights::ways::{WAYS, Way, find_way};
use plimsoll_research::nights::{ITEMS_PER_NIGHT, NightRow, build_id, play_night};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

/// Nights mostly wait, so several can run on each processor.
const PARALLEL_NIGHTS: usize = 5;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match &args[..] {
        ["play", first, last, rest @ ..] => {
            parse_seeds(first, last).and_then(|seeds| play_missing_nights(seeds, rest))
        }
        ["report", first, last] => parse_seeds(first, last).map(|seeds| write_report(seeds, &build_id())),
        ["report", first, last, build] => parse_seeds(first, last).map(|seeds| write_report(seeds, build)),
        _ => None,
    };
    if result.is_none() {
        eprintln!("usage: nights play FIRST LAST [WAY,… [CHARACTER,…]] | nights report FIRST LAST [BUILD]");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn parse_seeds(first: &str, last: &str) -> Option<std::ops::RangeInclusive<u64>> {
    Some(first.parse().ok()?..=last.parse().ok()?)
}

fn nights_file() -> PathBuf {
    plimsoll_testkit::target_dir().join("nights.jsonl")
}

/// Reads the stored rows. A line that was cut off by a kill is skipped, so its night is played again.
fn read_rows(nights_file: &Path) -> Vec<NightRow> {
    let text = fs::read_to_string(nights_file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn play_missing_nights(seeds: std::ops::RangeInclusive<u64>, filters: &[&str]) -> Option<()> {
    let ways: Vec<&Way> = match filters.first() {
        Some(keys) => keys.split(',').map(find_way).collect::<Option<_>>()?,
        None => WAYS.iter().collect(),
    };
    let character_named = |name: &str| Character::ALL.into_iter().find(|character| character.name() == name);
    let characters: Vec<Character> = match filters.get(1) {
        Some(names) => names.split(',').map(character_named).collect::<Option<_>>()?,
        None => Character::ALL.to_vec(),
    };
    let build = build_id();
    let played: BTreeSet<(u64, String, Character)> = read_rows(&nights_file())
        .into_iter()
        .filter(|row| row.build == build)
        .map(|row| (row.seed, row.way, row.character))
        .collect();
    let mut missing_nights = Vec::new();
    for seed in seeds {
        for character in &characters {
            let missing = ways.iter().filter(|way| !played.contains(&(seed, way.key.to_owned(), *character)));
            missing_nights.extend(missing.map(|way| (seed, *way, *character)));
        }
    }
    println!("build {build}: {} nights to play", missing_nights.len());
    play_nights(missing_nights);
    Some(())
}

fn play_nights(nights: Vec<(u64, &'static Way, Character)>) {
    let mut file =
        fs::OpenOptions::new().create(true).append(true).open(nights_file()).expect("target/ is writable");
    // Ends a line that a kill has cut off.
    file.write_all(b"\n").expect("target/ is writable");
    let (remaining_nights, file) = (Mutex::new(nights.into_iter()), Mutex::new(file));
    let play_next_nights = || {
        loop {
            let next = remaining_nights.lock().expect("no panic").next();
            let Some((seed, way, character)) = next else { break };
            let row = play_night(way, character, seed, ITEMS_PER_NIGHT);
            let line = serde_json::to_string(&row).expect("JSON");
            println!("{line}");
            writeln!(file.lock().expect("no panic"), "{line}").expect("target/ is writable");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_NIGHTS {
            scope.spawn(play_next_nights);
        }
    });
}

fn write_report(seeds: std::ops::RangeInclusive<u64>, build: &str) {
    let all_rows = read_rows(&nights_file());
    let mut rows = rows_of_complete_seeds(&all_rows, build, seeds);
    let other_count = all_rows.iter().filter(|row| row.build != build).count();
    println!(
        "build {build}: {} nights in whole seeds; {other_count} nights of other builds are left out",
        rows.len()
    );
    rows.sort_by_key(|row| (row.seed, row.character, WAYS.iter().position(|way| way.key == row.way)));
    let docs = plimsoll_testkit::workspace_root().join("docs");
    let old_page = fs::read_to_string(docs.join("nights.md")).unwrap_or_default();
    let mut text = render_page(&rows, build);
    if let Some(harder_nights) = find_section(&old_page) {
        text = with_section(&text, harder_nights);
    }
    if text.contains("DRAFT") {
        println!("finish the part that is marked DRAFT in research/src/nights/tail.md, then report again");
    }
    fs::write(docs.join("nights.md"), text).expect("docs/ is writable");
    fs::write(docs.join("nights.tsv"), render_tsv(&rows)).expect("docs/ is writable");
}
