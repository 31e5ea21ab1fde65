//! `plimsoll fleet log`: prints the fleet's journal as text or JSON. With `--follow` it also prints new events as they are written.

use super::CommandError;
use super::event_text::{describe_event_in_one_line, event_ansi_color_code};
use crate::database_error::FleetError;
use crate::fleet::Fleet;
use crate::fleet::fleet_status::to_utc;
use crate::fleet::journal::FleetEvent;
use crate::fleet::reconnecting_fleet::ReconnectingFleet;
use chrono::{Local, NaiveDate};
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_store::clock;
use plimsoll_terminal::console::{
    PaintedLine, has_colors, print_json, print_notice, print_painted_lines, print_warning,
    wait_and_check_stdout_closed,
};
use plimsoll_terminal::fleet_command_line::LogArguments;
use serde_json::json;
use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

/// Maximum number of events per read.
const EVENTS_PER_READ: u32 = 10_000;
/// Intervals between reads with `--follow`: normally, and while the database is unreachable.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// An event of a slow transaction may appear after events with larger numbers, so this many numbers are read again.
const REREAD_EVENT_COUNT: i64 = 200;

pub(super) fn print_log(arguments: &LogArguments) -> Result<ExitCode, CommandError> {
    let mut printer = EventPrinter::new(arguments.json);
    let mut fleet = ReconnectingFleet::new(&arguments.name);
    let (events, item_texts) = fleet.run_with_reconnect_and_timeout("read the journal", |fleet| {
        Ok((read_all_events(fleet)?, read_item_texts(fleet)?))
    })?;
    printer.item_texts = item_texts;
    let first_index = arguments.lines.map_or(0, |lines| events.len().saturating_sub(lines));
    printer.last_sequence_number = events.last().map_or(0, |event| event.sequence_number);
    printer.printed_sequence_numbers.extend(events.iter().map(|event| event.sequence_number));
    let is_reader_connected = events[first_index..].iter().all(|event| printer.try_print_event(event));
    if arguments.follow && is_reader_connected {
        print_new_events_until_fleet_ends(fleet, &mut printer)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read_all_events(fleet: &mut Fleet) -> Result<Vec<FleetEvent>, FleetError> {
    let mut events: Vec<FleetEvent> = Vec::new();
    loop {
        let last_sequence_number = events.last().map_or(0, |event| event.sequence_number);
        let next_events = fleet.read_events_after(last_sequence_number, EVENTS_PER_READ)?;
        if next_events.is_empty() {
            return Ok(events);
        }
        events.extend(next_events);
    }
}

/// Reads the items' texts, which never change.
fn read_item_texts(fleet: &mut Fleet) -> Result<Vec<String>, FleetError> {
    Ok(fleet.read_item_statuses()?.into_iter().map(|item| item.text).collect())
}

/// Prints new events until the fleet has ended and no worker is active, or standard output is closed. Retries while the database is
/// unreachable.
fn print_new_events_until_fleet_ends(
    mut fleet: ReconnectingFleet,
    printer: &mut EventPrinter,
) -> Result<(), CommandError> {
    let mut wait_duration = POLL_INTERVAL;
    while !wait_and_check_stdout_closed(wait_duration) {
        let after_sequence_number = printer.last_sequence_number.saturating_sub(REREAD_EVENT_COUNT);
        let result = fleet.run_with_reconnect_and_timeout("read the journal", move |fleet| {
            // Read the status first: if the fleet has ended, all of its events are then among those read.
            Ok((fleet.read_status()?, fleet.read_events_after(after_sequence_number, EVENTS_PER_READ)?))
        });
        let (status, events) = match result {
            Ok(status_and_events) => status_and_events,
            Err(error) if error.is_transient() => {
                if wait_duration != RETRY_INTERVAL {
                    print_warning(&format!("{error}; retrying"));
                }
                wait_duration = RETRY_INTERVAL;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        wait_duration = POLL_INTERVAL;
        let new_events: Vec<FleetEvent> = events
            .into_iter()
            .filter(|event| printer.printed_sequence_numbers.insert(event.sequence_number))
            .collect();
        printer.last_sequence_number =
            new_events.iter().map(|event| event.sequence_number).fold(printer.last_sequence_number, i64::max);
        if !new_events.iter().all(|event| printer.try_print_event(event)) {
            break;
        }
        if let (Some(end_reason), true, 0) =
            (&status.end_reason, new_events.is_empty(), status.active_workers)
        {
            print_notice(&format!(
                "the fleet `{}` has ended ({})",
                to_safe_single_line(&fleet.name),
                to_safe_single_line(end_reason)
            ));
            break;
        }
    }
    Ok(())
}

/// Prints events, each once.
struct EventPrinter {
    as_json: bool,
    has_colors: bool,
    last_printed_date: Option<NaiveDate>,
    item_texts: Vec<String>,
    last_sequence_number: i64,
    printed_sequence_numbers: HashSet<i64>,
}

impl EventPrinter {
    fn new(as_json: bool) -> EventPrinter {
        let (item_texts, printed_sequence_numbers) = (Vec::new(), HashSet::new());
        EventPrinter {
            as_json,
            has_colors: has_colors(),
            last_printed_date: None,
            item_texts,
            last_sequence_number: 0,
            printed_sequence_numbers,
        }
    }

    /// Prints an event. Returns false if text cannot be written because standard output is closed; with JSON it always
    /// returns true.
    fn try_print_event(&mut self, event: &FleetEvent) -> bool {
        if self.as_json {
            print_json(event_to_json(event));
            return true;
        }
        print_painted_lines(&self.render_event_with_heading_on_new_day(event), 10).is_ok()
    }

    /// Renders an event, below a heading with the date if the day has changed.
    fn render_event_with_heading_on_new_day(&mut self, event: &FleetEvent) -> Vec<PaintedLine> {
        let local_time = to_utc(event.occurred_at).with_timezone(&Local);
        let new_day = Some(local_time.date_naive()).filter(|day| self.last_printed_date != Some(*day));
        self.last_printed_date = new_day.or(self.last_printed_date);
        let heading = new_day.map(|day| PaintedLine::plain(&day.format("── %A, %-d %B %Y").to_string()));
        let item_text = event.item_index.and_then(|index| self.item_texts.get(index)).map(String::as_str);
        let color_code = if self.has_colors { event_ansi_color_code(event) } else { None };
        let line = PaintedLine::plain(&local_time.format("%H:%M:%S  ").to_string())
            .with_text(color_code, &describe_event_in_one_line(event, item_text));
        heading.into_iter().chain([line]).collect()
    }
}

fn event_to_json(event: &FleetEvent) -> serde_json::Value {
    json!({
        "number": event.sequence_number,
        "at": clock::to_millis_timestamp(to_utc(event.occurred_at)),
        "item": event.item_index.map(|index| index + 1),
        "epoch": event.epoch,
        "worker": event.worker,
        "kind": event.kind,
        "detail": event.detail,
    })
}
