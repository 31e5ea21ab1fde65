//! Measures what a handoff keeps in place of a conversation: see `plimsoll_research::handoffs`.
//!
//! `handoffs --plimsoll PATH [--seed N] [--conversations N] [--first N] [--compactions 1,5]
//! [--exchange-tokens 5000,20000,50000] [--tsv FILE] [--texts FOLDER]`

use plimsoll_research::handoffs::report::{render_table, render_tsv};
use plimsoll_research::handoffs::{MeasurementOptions, measure, write_handoffs_that_lost_facts};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "usage: handoffs --plimsoll PATH [--seed N] [--conversations N] [--first N] [--compactions 1,5] \
                     [--exchange-tokens 5000,20000,50000] [--threads N] [--tsv FILE] [--texts FOLDER]";

struct Arguments {
    options: MeasurementOptions,
    tsv_file: PathBuf,
    texts_folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse_arguments(std::env::args().skip(1)) else {
        eprintln!("error: {USAGE}");
        return ExitCode::from(2);
    };
    let started_at = Instant::now();
    let options = &arguments.options;
    let rows = measure(options);
    println!("{}", render_table(&rows, &options.compactions, &options.exchange_token_budgets));
    std::fs::write(&arguments.tsv_file, render_tsv(&rows)).expect("the TSV file is writable");
    if let Some(folder) = &arguments.texts_folder {
        write_handoffs_that_lost_facts(folder, &rows).expect("the folder of the texts is writable");
    }
    println!(
        "seed {}, {} conversations, {:.0} s; details in {}",
        options.seed,
        options.conversations,
        started_at.elapsed().as_secs_f64(),
        arguments.tsv_file.display()
    );
    ExitCode::SUCCESS
}

fn parse_arguments(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut options = MeasurementOptions::default();
    let mut tsv_file = plimsoll_testkit::target_dir().join("handoffs.tsv");
    let mut texts_folder = None;
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        let numbers = || value.split(',').map(|number| number.parse().ok()).collect::<Option<Vec<usize>>>();
        match name.as_str() {
            "--plimsoll" => options.plimsoll = std::fs::canonicalize(&value).ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--conversations" => options.conversations = value.parse().ok()?,
            "--first" => options.first_conversation = value.parse().ok()?,
            "--compactions" => options.compactions = numbers()?,
            "--exchange-tokens" => {
                options.exchange_token_budgets = numbers()?.into_iter().map(Some).collect()
            }
            "--threads" => options.threads = value.parse().ok()?,
            "--tsv" => tsv_file = value.into(),
            "--texts" => texts_folder = Some(value.into()),
            _ => return None,
        }
    }
    let has_program = options.plimsoll.is_file();
    (has_program && !options.compactions.is_empty()).then_some(Arguments { options, tsv_file, texts_folder })
}
