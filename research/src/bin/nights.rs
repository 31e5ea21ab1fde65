//! Simulates unattended runs and reports them. Each finished simulation is stored as a line of
//! `target/nights.jsonl`, so that an interrupted command continues where it stopped: `scripts/nights.sh`
//! calls `nights COMMAND`. WAY is the key of a loop setup, CHARACTER the name of an agent persona.
//!
//! play FIRST LAST [WAY,… [CHARACTER,…]]   runs the simulations of these seeds that this build has
//!                                         not stored
//! report FIRST LAST [BUILD]               writes docs/nights.md and docs/nights.tsv from those seeds of
//!                                         which this build, or BUILD, has stored all simulations
//! page                                    writes docs/nights.md again from docs/nights.tsv

use plimsoll_research::handovers::{
    find_harder_simulations_section, replace_or_append_harder_simulations_section,
};
use plimsoll_research::nights::loop_setups::{LOOP_SETUPS, LoopSetup, find_loop_setup};
use plimsoll_research::nights::page::{
    parse_tsv, render_page, render_tsv, rows_of_seeds_with_every_setup_and_persona,
};
use plimsoll_research::nights::simulator::AgentPersona;
use plimsoll_research::nights::{
    ITEMS_PER_SIMULATION, SimulationRow, hash_programs_and_simulation_sources, simulate_unattended_run,
};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

/// The number of simulations that run at the same time. They mostly wait, so several share a processor.
const PARALLEL_SIMULATIONS: usize = 5;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match &args[..] {
        ["play", first, last, setup_and_persona_filters @ ..] => parse_seed_range(first, last)
            .and_then(|seeds| run_missing_simulations_if_filters_valid(seeds, setup_and_persona_filters)),
        ["report", first, last] => parse_seed_range(first, last)
            .map(|seeds| write_report_of_complete_seeds(seeds, &hash_programs_and_simulation_sources())),
        ["report", first, last, build] => {
            parse_seed_range(first, last).map(|seeds| write_report_of_complete_seeds(seeds, build))
        }
        ["page"] => write_page_from_published_rows(),
        _ => None,
    };
    if result.is_none() {
        eprintln!(
            "usage: nights play FIRST LAST [WAY,… [CHARACTER,…]] | nights report FIRST LAST [BUILD] | nights page"
        );
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

/// Reads the stored rows. Skips a line that was cut off by a kill, so its simulation runs once more.
fn read_rows(path: &Path) -> Vec<SimulationRow> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn run_missing_simulations_if_filters_valid(
    seeds: std::ops::RangeInclusive<u64>,
    setup_and_persona_filters: &[&str],
) -> Option<()> {
    let setups: Vec<&LoopSetup> = match setup_and_persona_filters.first() {
        Some(setup_keys) => setup_keys.split(',').map(find_loop_setup).collect::<Option<_>>()?,
        None => LOOP_SETUPS.iter().collect(),
    };
    let find_persona = |name: &str| AgentPersona::ALL.into_iter().find(|persona| persona.name() == name);
    let personas: Vec<AgentPersona> = match setup_and_persona_filters.get(1) {
        Some(persona_names) => persona_names.split(',').map(find_persona).collect::<Option<_>>()?,
        None => AgentPersona::ALL.to_vec(),
    };
    let build = hash_programs_and_simulation_sources();
    let stored_simulations: BTreeSet<(u64, String, AgentPersona)> = read_rows(&stored_rows_path())
        .into_iter()
        .filter(|row| row.build == build)
        .map(|row| (row.seed, row.setup_key, row.persona))
        .collect();
    let mut missing_simulations = Vec::new();
    for seed in seeds {
        for persona in &personas {
            let missing_setups = setups
                .iter()
                .filter(|setup| !stored_simulations.contains(&(seed, setup.key.to_owned(), *persona)));
            missing_simulations.extend(missing_setups.map(|setup| (seed, *setup, *persona)));
        }
    }
    println!("build {build}: {} nights to play", missing_simulations.len());
    run_simulations_and_append_rows(missing_simulations);
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
    let (remaining_simulations, file) = (Mutex::new(simulations.into_iter()), Mutex::new(file));
    let run_remaining_simulations = || {
        loop {
            let simulation = remaining_simulations.lock().expect("no panic").next();
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
    let mut rows = rows_of_seeds_with_every_setup_and_persona(&all_rows, build, seeds);
    let other_build_count = all_rows.iter().filter(|row| row.build != build).count();
    println!(
        "build {build}: {} nights in whole seeds; {other_build_count} nights of other builds are left out",
        rows.len()
    );
    rows.sort_by_key(|row| {
        (row.seed, row.persona, LOOP_SETUPS.iter().position(|setup| setup.key == row.setup_key))
    });
    write_page(&rows, build);
    fs::write(docs_folder().join("nights.tsv"), render_tsv(&rows)).expect("docs/ is writable");
    println!("check the figures in the words of research/src/nights/head.md and tail.md, then report again");
}

fn docs_folder() -> PathBuf {
    plimsoll_testkit::workspace_root().join("docs")
}

fn write_page_from_published_rows() -> Option<()> {
    let rows = parse_tsv(&fs::read_to_string(docs_folder().join("nights.tsv")).ok()?)?;
    write_page(&rows, &rows.first()?.build);
    Some(())
}

/// Writes the page, and keeps its section about the harder simulations.
fn write_page(rows: &[SimulationRow], build: &str) {
    let page_path = docs_folder().join("nights.md");
    let old_page = fs::read_to_string(&page_path).unwrap_or_default();
    let mut page = render_page(rows, build);
    if let Some(harder_simulations_section) = find_harder_simulations_section(&old_page) {
        page = replace_or_append_harder_simulations_section(&page, harder_simulations_section);
    }
    fs::write(page_path, page).expect("docs/ is writable");
}
