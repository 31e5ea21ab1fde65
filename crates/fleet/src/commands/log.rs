//! `plimsoll fleet log`: the fleet's journal in words, as it grows with `--follow`.

use super::CommandError;
use super::event_words::{colour, sentence};
use crate::fault::FleetError;
use crate::fleet::Fleet;
use crate::fleet::journal::Event;
use crate::fleet::standing::time;
use crate::fleet::watched::WatchedFleet;
use chrono::{Local, NaiveDate};
use plimsoll_domain::text::one_line;
use plimsoll_store::clock;
use plimsoll_terminal::console::{Painted, has_colours, is_closed_after, json, paint, say_error};
use plimsoll_terminal::fleet_line::LogArguments;
use serde_json::json;
use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

/// So many lines are read at a time.
const PIECE: u32 = 10_000;
/// How often `--follow` looks, and how often while the database is away.
const NAP: Duration = Duration::from_secs(1);
const LONG_NAP: Duration = Duration::from_secs(5);
/// A line of a transaction that took its time may come after lines with larger numbers: so far back it is looked for.
const OVERLAP: i64 = 200;

/// Shows it.
pub(super) fn log(arguments: &LogArguments) -> Result<ExitCode, CommandError> {
    let mut page = Page::new(arguments.json);
    let mut fleet = WatchedFleet::new(&arguments.name);
    let (events, texts) = fleet.ask("read the journal", |fleet| Ok((all(fleet)?, texts(fleet)?)))?;
    page.texts = texts;
    let first = arguments.lines.map_or(0, |lines| events.len().saturating_sub(lines));
    page.last = events.last().map_or(0, |event| event.number);
    page.seen.extend(events.iter().map(|event| event.number));
    let is_read = events[first..].iter().all(|event| page.print(event));
    if arguments.follow && is_read {
        follow(fleet, &mut page)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn all(fleet: &mut Fleet) -> Result<Vec<Event>, FleetError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.number);
        let more = fleet.events(after, PIECE)?;
        if more.is_empty() {
            return Ok(events);
        }
        events.extend(more);
    }
}

/// The items' words: they do not change.
fn texts(fleet: &mut Fleet) -> Result<Vec<String>, FleetError> {
    Ok(fleet.items()?.into_iter().map(|item| item.text).collect())
}

/// Prints what comes until the fleet is over and nothing more does, or nobody reads. A database that is away may come back.
fn follow(mut fleet: WatchedFleet, page: &mut Page) -> Result<(), CommandError> {
    let mut nap = NAP;
    while !is_closed_after(nap) {
        let after = page.last.saturating_sub(OVERLAP);
        let news = fleet.ask("read the journal", move |fleet| {
            // The standing first: what comes before the end is then among the events.
            Ok((fleet.standing()?, fleet.events(after, PIECE)?))
        });
        let (standing, events) = match news {
            Ok(news) => news,
            Err(error) if error.may_pass() => {
                if nap != LONG_NAP {
                    say_error(&format!("{error}; it is tried again"));
                }
                nap = LONG_NAP;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        nap = NAP;
        let new: Vec<Event> = events.into_iter().filter(|event| page.seen.insert(event.number)).collect();
        page.last = new.iter().map(|event| event.number).fold(page.last, i64::max);
        if !new.iter().all(|event| page.print(event)) {
            break;
        }
        if let (Some(how), true, 0) = (&standing.ended, new.is_empty(), standing.workers) {
            say_error(&format!("the fleet `{}` is over ({})", one_line(&fleet.name), one_line(how)));
            break;
        }
    }
    Ok(())
}

/// What has been printed.
struct Page {
    is_json: bool,
    has_colours: bool,
    day: Option<NaiveDate>,
    texts: Vec<String>,
    last: i64,
    seen: HashSet<i64>,
}

impl Page {
    fn new(is_json: bool) -> Page {
        let (texts, seen) = (Vec::new(), HashSet::new());
        Page { is_json, has_colours: has_colours(), day: None, texts, last: 0, seen }
    }

    /// Prints a line at once; false when the reader is gone.
    fn print(&mut self, event: &Event) -> bool {
        if self.is_json {
            json(document(event));
            return true;
        }
        paint(&self.lines(event)).is_ok()
    }

    /// The line, with the date above it where it is another day's.
    fn lines(&mut self, event: &Event) -> Vec<Painted> {
        let at = time(event.at).with_timezone(&Local);
        let day = Some(at.date_naive()).filter(|day| self.day != Some(*day));
        self.day = day.or(self.day);
        let heading = day.map(|day| Painted::plain(&day.format("── %A, %-d %B %Y").to_string()));
        let text = event.item.and_then(|place| self.texts.get(place)).map(String::as_str);
        let code = if self.has_colours { colour(event) } else { None };
        let line = Painted::plain(&at.format("%H:%M:%S  ").to_string()).then(code, &sentence(event, text));
        heading.into_iter().chain([line]).collect()
    }
}

fn document(event: &Event) -> serde_json::Value {
    json!({
        "number": event.number,
        "at": clock::fine_stamp(time(event.at)),
        "item": event.item.map(|place| place + 1),
        "epoch": event.epoch,
        "worker": event.worker,
        "kind": event.kind,
        "detail": event.detail,
    })
}
