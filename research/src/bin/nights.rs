//! Plays nights and reports them. What is finished is kept in `target/nights.jsonl`, a line for each night, so a play that was
//! ended goes on where it stopped: `scripts/nights.sh` calls `nights COMMAND`.
//!
//!     play FIRST LAST [WAY,… [CHARACTER,…]]   the nights of these seeds that this build has not played yet
//!     report FIRST LAST [BUILD]               docs/nights.md and docs/nights.tsv, of the seeds that this build, or another one
//!                                             that is kept, has played whole

use plimsoll_research::handovers::{section_of, with_section};
use plimsoll_research::nights::page::{page, table_of_rows, whole};
use plimsoll_research::nights::simulator::Character;
use plimsoll_research::nights::ways::{WAYS, Way, way};
use plimsoll_research::nights::{ITEMS, Row, build, play};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

/// Nights wait more than they work.
const AT_ONCE: usize = 5;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match &words[..] {
        ["play", first, last, rest @ ..] => seeds(first, last).and_then(|seeds| play_all(seeds, rest)),
        ["report", first, last] => seeds(first, last).map(|seeds| report(seeds, &build())),
        ["report", first, last, build] => seeds(first, last).map(|seeds| report(seeds, build)),
        _ => None,
    };
    if done.is_none() {
        eprintln!("usage: nights play FIRST LAST [WAY,… [CHARACTER,…]] | nights report FIRST LAST [BUILD]");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn seeds(first: &str, last: &str) -> Option<std::ops::RangeInclusive<u64>> {
    Some(first.parse().ok()?..=last.parse().ok()?)
}

fn ledger() -> PathBuf {
    plimsoll_testkit::target_dir().join("nights.jsonl")
}

/// The rows that are kept; a line that a kill has cut is played again.
fn read(kept: &Path) -> Vec<Row> {
    let text = fs::read_to_string(kept).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn play_all(seeds: std::ops::RangeInclusive<u64>, only: &[&str]) -> Option<()> {
    let ways: Vec<&Way> = match only.first() {
        Some(keys) => keys.split(',').map(way).collect::<Option<_>>()?,
        None => WAYS.iter().collect(),
    };
    let named = |name: &str| Character::ALL.into_iter().find(|one| one.name() == name);
    let characters: Vec<Character> = match only.get(1) {
        Some(names) => names.split(',').map(named).collect::<Option<_>>()?,
        None => Character::ALL.to_vec(),
    };
    let build = build();
    let done: BTreeSet<(u64, String, Character)> = read(&ledger())
        .into_iter()
        .filter(|row| row.build == build)
        .map(|row| (row.seed, row.way, row.character))
        .collect();
    let mut nights = Vec::new();
    for seed in seeds {
        for character in &characters {
            let open = ways.iter().filter(|way| !done.contains(&(seed, way.key.to_owned(), *character)));
            nights.extend(open.map(|way| (seed, *way, *character)));
        }
    }
    println!("build {build}: {} nights to play", nights.len());
    play_each(nights);
    Some(())
}

fn play_each(nights: Vec<(u64, &'static Way, Character)>) {
    let mut file =
        fs::OpenOptions::new().create(true).append(true).open(ledger()).expect("target/ is writable");
    // What a kill has cut ends here.
    file.write_all(b"\n").expect("target/ is writable");
    let (left, file) = (Mutex::new(nights.into_iter()), Mutex::new(file));
    let work = || {
        loop {
            let next = left.lock().expect("no panic").next();
            let Some((seed, way, character)) = next else { break };
            let row = play(way, character, seed, ITEMS);
            let line = serde_json::to_string(&row).expect("JSON");
            println!("{line}");
            writeln!(file.lock().expect("no panic"), "{line}").expect("target/ is writable");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
}

fn report(seeds: std::ops::RangeInclusive<u64>, build: &str) {
    let all = read(&ledger());
    let mut rows = whole(&all, build, seeds);
    let other = all.iter().filter(|row| row.build != build).count();
    println!(
        "build {build}: {} nights in whole seeds; {other} nights of other builds are left out",
        rows.len()
    );
    rows.sort_by_key(|row| (row.seed, row.character, WAYS.iter().position(|way| way.key == row.way)));
    let docs = plimsoll_testkit::workspace_root().join("docs");
    let before = fs::read_to_string(docs.join("nights.md")).unwrap_or_default();
    let mut text = page(&rows, build);
    if let Some(harder) = section_of(&before) {
        text = with_section(&text, harder);
    }
    if text.contains("DRAFT") {
        println!("finish the part that is marked DRAFT in research/src/nights/tail.md, then report again");
    }
    fs::write(docs.join("nights.md"), text).expect("docs/ is writable");
    fs::write(docs.join("nights.tsv"), table_of_rows(&rows)).expect("docs/ is writable");
}
