//! `plimsoll fleet status`: every fleet of the database in a line, or how far one has come.

use super::words::{ago, cost, count, item, items, merge_command, reason, state, why_aside};
use super::{CommandError, ask, ask_fleet};
use crate::fleet::standing::{ItemStanding, Standing, WorkerStanding, standings, time};
use plimsoll_domain::text::{clip, one_line, tokens};
use plimsoll_store::clock;
use plimsoll_terminal::console::{json, say};
use plimsoll_terminal::fleet_line::StatusArguments;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;

/// So many lines of one kind are shown; `--json` has all.
const MOST: usize = 20;
/// Where the words begin behind a title.
const INDENT: usize = 13;

/// Shows it.
pub(super) fn status(arguments: &StatusArguments) -> Result<ExitCode, CommandError> {
    match &arguments.name {
        Some(name) => one(name, arguments.json)?,
        None => all(arguments.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn all(as_json: bool) -> Result<(), CommandError> {
    let fleets = ask("look at the fleets", |mut database| standings(&mut database))?;
    if as_json {
        json(json!({ "fleets": fleets }));
    } else if fleets.is_empty() {
        say("There is no fleet in the database. Create one with `plimsoll fleet create NAME`.");
    } else {
        fleets.iter().map(line).for_each(say);
    }
    Ok(())
}

fn line(fleet: &Standing) -> String {
    let workers = match fleet.workers {
        0 => String::new(),
        workers => format!("; {} on {}", count(workers, "worker"), count(fleet.machines, "machine")),
    };
    format!("{}: {}; {}{workers}; {}", one_line(&fleet.name), state(fleet), items(fleet), cost(fleet))
}

/// Everything that is known of one fleet.
#[derive(Serialize)]
pub(super) struct Whole {
    pub(super) fleet: Standing,
    pub(super) items: Vec<ItemStanding>,
    pub(super) workers: Vec<WorkerStanding>,
}

/// Reads it.
pub(super) fn whole(name: &str) -> Result<Whole, CommandError> {
    Ok(ask_fleet(name, "look at the fleet", |fleet| {
        Ok(Whole { fleet: fleet.standing()?, items: fleet.items()?, workers: fleet.workers()? })
    })?)
}

fn one(name: &str, as_json: bool) -> Result<(), CommandError> {
    let whole = whole(name)?;
    if as_json {
        json(json!(whole));
    } else {
        say(screen(&whole).join("\n"));
    }
    Ok(())
}

fn titled(title: &str, words: &str) -> String {
    format!("{title:<INDENT$}{words}").trim_end().to_owned()
}

/// Lines under one title, as many as there is room for.
fn list(title: &str, lines: &[String]) -> Vec<String> {
    let titles = std::iter::once(title).chain(std::iter::repeat(""));
    let more = lines.len().saturating_sub(MOST);
    let more = (more > 0).then(|| titled("", &format!("and {more} more: --json has all")));
    lines.iter().take(MOST).zip(titles).map(|(line, title)| titled(title, line)).chain(more).collect()
}

fn screen(whole: &Whole) -> Vec<String> {
    let Whole { fleet, items: rows, workers } = whole;
    let name = one_line(&fleet.name);
    let used = match fleet.sessions {
        0 => String::new(),
        sessions => format!(", {}, {} tokens", count(sessions, "session"), tokens(fleet.tokens)),
    };
    let mut lines = vec![
        titled("Fleet", &name),
        titled("Status", &state(fleet)),
        titled("Items", &items(fleet)),
        titled("Cost", &format!("{}{used}", cost(fleet))),
        titled("Created", &clock::for_people(time(fleet.created))),
        titled("Remote", &one_line(&fleet.repo)),
        titled("Branch", &branch(fleet)),
    ];
    lines.extend(list(
        "Workers",
        &workers.iter().filter_map(|worker| worker_line(fleet, rows, worker)).collect::<Vec<_>>(),
    ));
    let of = |is_it: &dyn Fn(&ItemStanding) -> bool, words: &dyn Fn(&ItemStanding) -> String| {
        rows.iter().filter(|row| is_it(row)).map(words).collect::<Vec<_>>()
    };
    let is_question = |row: &ItemStanding| row.aside.as_deref() == Some("question");
    lines.extend(list("To be merged", &of(&|row| row.stage == "offered", &item)));
    let aside = |row: &ItemStanding| format!("{}: {}", item(row), why_aside(row));
    lines.extend(list("Set aside", &of(&|row| row.stage == "aside" && !is_question(row), &aside)));
    let question =
        |row: &ItemStanding| format!("{}: {}", item(row), reason(row.reason.as_deref().unwrap_or_default()));
    lines.extend(list("Questions", &of(&is_question, &question)));
    lines.extend(next(fleet, rows).map(|words| titled("Next", &words)));
    lines
}

fn branch(fleet: &Standing) -> String {
    let begun = match fleet.began_at.get(..12) {
        Some(commit) => format!(", begun at {commit}"),
        None => String::new(),
    };
    format!("{}{begun}", one_line(&fleet.target))
}

/// A worker that is there, or that has left an item behind.
fn worker_line(fleet: &Standing, items: &[ItemStanding], worker: &WorkerStanding) -> Option<String> {
    let is_held = |row: &&ItemStanding| row.worker.as_deref() == Some(&worker.name);
    let held = items.iter().find(is_held);
    if !worker.is_there && held.is_none() {
        return None;
    }
    let held = held.map_or_else(|| "no item".to_owned(), item);
    let percent = worker.percent.map(|percent| format!("  {percent:.0} %")).unwrap_or_default();
    let heard = if worker.is_there { "heard of" } else { "NOT heard of since" };
    let seen = ago(fleet.now, worker.seen);
    Some(format!(
        "{}  {held}{percent}  ${:.2}  {heard} {seen}",
        clip(&one_line(&worker.name), 40),
        worker.cost
    ))
}

fn next(fleet: &Standing, items: &[ItemStanding]) -> Option<String> {
    let name = one_line(&fleet.name);
    let question = items.iter().find(|row| row.aside.as_deref() == Some("question"));
    match (fleet.ended.as_deref(), question) {
        (None, Some(row)) => Some(format!("plimsoll fleet answer {name} {} TEXT", row.number)),
        (None, None) if fleet.draining => {
            Some(format!("plimsoll fleet resume {name}, to begin new items again"))
        }
        (None, None) if fleet.workers == 0 => {
            Some(format!("in a clone: plimsoll fleet join {name} --workers N -- CLIENT ARGS"))
        }
        (None, None) => None,
        (Some(_), _) => merge_command(fleet),
    }
}
