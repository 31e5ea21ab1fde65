//! Simulates nights and reports them. Each finished night is stored as a line of `target/nights.jsonl`, so that
//! an interrupted command continues where it stopped: `scripts/nights.sh` calls `nights COMMAND`.
//!
//! play FIRST LAST [WAY,… [CHARACTER,…]]   simulates the nights of these seeds that this build has not yet stored
//! report FIRST LAST [BUILD]               writes docs/nights.md and docs/nights.tsv from those seeds of which
//!                                         this build, or BUILD, has stored all nights

use plimsoll_research::handovers::{
    find_harder_simulations_section, replace_or_append_harder_simulations_section,
};
use plimsoll_research::nights::page::{render_page, render_tsv, rows_of_complete_seeds};
use plimsoll_research::nights::simulator::AgentPersona;
use plimsoll_research::nights::ways::{LOOP_SETUPS, LoopSetup, find_loop_setup};
use plimsoll_research::nights::{ITEMS_PER_SIMULATION, SimulationRow, build_id, simulate_unattended_run};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

/// Nights mostly wait, so several can run on each processor.
const PARALLEL_SIMULATIONS: usize = 5;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match &args[..] {
        ["play", first, last, filters @ ..] => {
            parse_seed_range(first, last).and_then(|seeds| try_run_missing_simulations(seeds, filters))
        }
        ["report", first, last] => {
            parse_seed_range(first, last).map(|seeds| write_report_of_complete_seeds(seeds, &build_id()))
        }
        ["report", first, last, build] => {
            parse_seed_range(first, last).map(|seeds| write_report_of_complete_seeds(seeds, build))
        }
        _ => None,
    };
    if result.is_none() {
        eprintln!("usage: nights play FIRST LAST [WAY,… [CHARACTER,…]] | nights report FIRST LAST [BUILD]");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn parse_seed_range(first: &str, last: &str) -> Option<std::ops::RangeInclusive<u64>> {
    Some(first.parse().ok()?..=last.parse().ok()?)
}

fn stored_rows_path() -> PathBuf {
    plimsoll_testkit::target_dir().join("nights.jsonl")
}

/// Reads the stored rows. Skips a line that was cut off by a kill, so its night is simulated again.
fn read_rows(path: &Path) -> Vec<SimulationRow> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn try_run_missing_simulations(
    seeds: std::ops::RangeInclusive<u64>,
    setup_and_character_filters: &[&str],
) -> Option<()> {
    let setups: Vec<&LoopSetup> = match setup_and_character_filters.first() {
        Some(setup_keys) => setup_keys.split(',').map(find_loop_setup).collect::<Option<_>>()?,
        None => LOOP_SETUPS.iter().collect(),
    };
    let find_character = |name: &str| AgentPersona::ALL.into_iter().find(|persona| persona.name() == name);
    let characters: Vec<AgentPersona> = match setup_and_character_filters.get(1) {
        Some(character_names) => character_names.split(',').map(find_character).collect::<Option<_>>()?,
        None => AgentPersona::ALL.to_vec(),
    };
    let build = build_id();
    let stored_nights: BTreeSet<(u64, String, AgentPersona)> = read_rows(&stored_rows_path())
        .into_iter()
        .filter(|row| row.build == build)
        .map(|row| (row.seed, row.way, row.persona))
        .collect();
    let mut missing_nights = Vec::new();
    for seed in seeds {
        for persona in &characters {
            let missing_setups = setups
                .iter()
                .filter(|setup| !stored_nights.contains(&(seed, setup.key.to_owned(), *persona)));
            missing_nights.extend(missing_setups.map(|setup| (seed, *setup, *persona)));
        }
    }
    println!("build {build}: {} nights to play", missing_nights.len());
    run_simulations_and_append_rows(missing_nights);
    Some(())
}

fn run_simulations_and_append_rows(simulations: Vec<(u64, &'static LoopSetup, AgentPersona)>) {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(stored_rows_path())
        .expect("target/ is writable");
    // Ends the last line, which is incomplete if an earlier run was killed while it wrote.
    file.write_all(b"\n").expect("target/ is writable");
    let (remaining_nights, file) = (Mutex::new(simulations.into_iter()), Mutex::new(file));
    let run_remaining_simulations = || {
        loop {
            let simulation = remaining_nights.lock().expect("no panic").next();
            let Some((seed, setup, persona)) = simulation else { break };
            let row = simulate_unattended_run(setup, persona, seed, ITEMS_PER_SIMULATION);
            let line = serde_json::to_string(&row).expect("JSON");
            println!("{line}");
            writeln!(file.lock().expect("no panic"), "{line}").expect("target/ is writable");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_SIMULATIONS {
            scope.spawn(run_remaining_simulations);
        }
    });
}

fn write_report_of_complete_seeds(seeds: std::ops::RangeInclusive<u64>, build: &str) {
    let all_rows = read_rows(&stored_rows_path());
    let mut rows = rows_of_complete_seeds(&all_rows, build, seeds);
    let other_build_count = all_rows.iter().filter(|row| row.build != build).count();
    println!(
        "build {build}: {} nights in whole seeds; {other_build_count} nights of other builds are left out",
        rows.len()
    );
    rows.sort_by_key(|row| {
        (row.seed, row.persona, LOOP_SETUPS.iter().position(|setup| setup.key == row.way))
    });
    let docs_folder = plimsoll_testkit::workspace_root().join("docs");
    let old_page = fs::read_to_string(docs_folder.join("nights.md")).unwrap_or_default();
    let mut page = render_page(&rows, build);
    if let Some(harder_nights_section) = find_harder_simulations_section(&old_page) {
        page = replace_or_append_harder_simulations_section(&page, harder_nights_section);
    }
    if page.contains("DRAFT") {
        println!("finish the part that is marked DRAFT in research/src/nights/tail.md, then report again");
    }
    fs::write(docs_folder.join("nights.md"), page).expect("docs/ is writable");
    fs::write(docs_folder.join("nights.tsv"), render_tsv(&rows)).expect("docs/ is writable");
}
