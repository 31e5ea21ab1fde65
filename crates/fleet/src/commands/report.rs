//! `plimsoll fleet report`: the morning's report in Markdown. What looks like a secret in foreign words is left out.

use super::CommandError;
use super::status::{Whole, whole};
use super::words::{cost, count, items, merge_command, reason, state, why_aside};
use crate::fleet::standing::{ItemStanding, WorkerStanding, time};
use plimsoll_domain::text::{one_line, tokens};
use plimsoll_store::clock;
use plimsoll_terminal::console::say;
use plimsoll_terminal::fleet_line::NameArgument;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Prints it.
pub(super) fn report(arguments: &NameArgument) -> Result<ExitCode, CommandError> {
    say(page(&whole(&arguments.name)?));
    Ok(ExitCode::SUCCESS)
}

fn page(whole: &Whole) -> String {
    let Whole { fleet, items: rows, workers } = whole;
    let mut parts = vec![
        format!("# Fleet {}", words(&fleet.name)),
        format!(
            "Created {}; {}. {}; {}.",
            clock::for_people(time(fleet.created)),
            state(fleet),
            items(fleet),
            used(whole)
        ),
    ];
    parts.extend(merge_command(fleet).map(|command| format!("To merge it: `{command}`")));
    let is_question = |row: &ItemStanding| row.aside.as_deref() == Some("question");
    let question = |row: &ItemStanding| {
        let asked = reason(row.reason.as_deref().unwrap_or_default());
        format!(
            "{}: {} (`plimsoll fleet answer {} {} TEXT`)",
            named(row),
            words(&asked),
            one_line(&fleet.name),
            row.number
        )
    };
    let aside = |row: &ItemStanding| format!("{}: {}", named(row), words(&why_aside(row)));
    parts.extend(section("Questions", rows, &is_question, &question));
    parts.extend(section("Set aside", rows, &|row| row.stage == "aside" && !is_question(row), &aside));
    parts.extend(section("Merged", rows, &|row| row.stage == "merged", &merged));
    parts.extend(section("To be merged", rows, &|row| row.stage == "offered", &named));
    parts.extend(section("At work", rows, &|row| row.stage == "leased", &at_work));
    parts.extend(section("Open", rows, &|row| row.stage == "open", &named));
    parts.extend(machines(workers));
    parts.join("\n\n")
}

fn used(whole: &Whole) -> String {
    let fleet = &whole.fleet;
    format!("{}, {}, {} tokens", cost(fleet), count(fleet.sessions, "session"), tokens(fleet.tokens))
}

fn section(
    title: &str,
    items: &[ItemStanding],
    is_in: &dyn Fn(&ItemStanding) -> bool,
    line: &dyn Fn(&ItemStanding) -> String,
) -> Option<String> {
    let lines: Vec<String> =
        items.iter().filter(|item| is_in(item)).map(|item| format!("- {}", line(item))).collect();
    (!lines.is_empty()).then(|| format!("## {title} ({})\n\n{}", lines.len(), lines.join("\n")))
}

fn named(item: &ItemStanding) -> String {
    format!("**{}** {}", item.number, words(&reason(&item.text)))
}

fn merged(item: &ItemStanding) -> String {
    let commit = match item.landings.last() {
        Some(commit) => format!(" ({})", one_line(commit).chars().take(12).collect::<String>()),
        // Its box was ticked when the fleet was created.
        None if item.epoch == 0 => " (ticked before)".to_owned(),
        None => " (nothing to do)".to_owned(),
    };
    let cost = if item.sessions > 0 { format!(", ${:.2}", item.cost) } else { String::new() };
    let tries = if item.tries > 0 {
        format!(", after {}", count(item.tries.into(), "refusal"))
    } else {
        String::new()
    };
    format!("{}{commit}{cost}{tries}", named(item))
}

fn at_work(item: &ItemStanding) -> String {
    format!("{} ({})", named(item), words(item.worker.as_deref().unwrap_or_default()))
}

/// What each machine has cost.
fn machines(workers: &[WorkerStanding]) -> Option<String> {
    let mut by_machine: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for worker in workers {
        let machine = by_machine.entry(&worker.machine).or_default();
        machine.0 += 1;
        machine.1 += worker.cost;
    }
    let row = |(machine, (workers, cost)): (&&str, &(u64, f64))| {
        format!("| {} | {workers} | ${cost:.2} |", words(machine))
    };
    let rows: Vec<String> = by_machine.iter().map(row).collect();
    let head = "## Machines\n\n| machine | workers | cost |\n| --- | --- | --- |";
    (!rows.is_empty()).then(|| format!("{head}\n{}", rows.join("\n")))
}

/// Foreign words in a line of Markdown: nothing in them is markup or HTML.
fn words(text: &str) -> String {
    let mut plain = String::new();
    for letter in one_line(text).chars() {
        if "\\`*_[]<>|#&".contains(letter) {
            plain.push('\\');
        }
        plain.push(letter);
    }
    plain
}
