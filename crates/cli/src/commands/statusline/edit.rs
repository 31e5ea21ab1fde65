//! `plimsoll statusline edit`: choose how the line looks, with the line before your eyes.

mod draw;
mod editor;
mod paint;
#[cfg(test)]
mod tests;

use super::payload;
use crate::full_screen;
use crate::full_screen::Screen;
use clap::Args;
use editor::{Action, Editor};
use plimsoll_domain::Settings;
use plimsoll_domain::statusline::StatusLine;
use plimsoll_store::{Durability, Project, StoreError, config, disk};
use plimsoll_terminal::console::{fail, refused};
use ratatui::crossterm::event::{self, Event};
use serde_json::{Map, Value};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Whose settings.
#[derive(Debug, Args)]
pub(crate) struct EditArguments {
    /// Your own settings, for every project (~/.config/plimsoll/settings.json)
    #[arg(long)]
    user: bool,
}

/// How long it waits for a key before it looks whether a signal has come.
const GLANCE: Duration = Duration::from_millis(200);

/// Edits: 0 also where nothing was changed, 1 where the settings cannot be read or written.
pub(crate) fn edit(arguments: &EditArguments) -> ExitCode {
    let project = Project::of_command();
    let path = if arguments.user { config::user_file() } else { Some(project.settings()) };
    let Some(path) = path else {
        return fail("no home directory: neither XDG_CONFIG_HOME nor HOME is set");
    };
    let (settings, complaint) = config::load(&project);
    if let Some(complaint) = complaint {
        // What is written over what cannot be read would be lost.
        return refused(&complaint);
    }
    let view =
        plimsoll_flows::hooks::statusline::preview(payload::sample().to_string().as_bytes(), &settings);
    let desk = Editor::new(settings.statusline, view);
    let mut written = Ok(());
    let code = full_screen::show(
        "`statusline edit` needs a terminal: edit \"statusline\" in the settings by hand, and look with `plimsoll statusline explain`",
        |terminal, signal| {
            stay(desk, terminal, signal, &mut |look| {
                written = write(&path, look, arguments.user);
                written.is_ok()
            })
        },
    );
    match written {
        Ok(()) => code,
        Err(error) => refused(&error),
    }
}

fn stay(
    mut desk: Editor,
    mut terminal: Screen,
    signal: &AtomicUsize,
    save: &mut dyn FnMut(&StatusLine) -> bool,
) -> io::Result<()> {
    while signal.load(Ordering::SeqCst) == 0 {
        terminal.draw(|frame| draw::draw(&desk, frame))?;
        if !full_screen::event_within(GLANCE)? {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        match desk.press(key) {
            Action::Stay => {}
            Action::Save if save(desk.look()) => desk.saved(),
            Action::Save | Action::Leave => return Ok(()),
        }
    }
    Ok(())
}

/// Writes what differs from the defaults, and leaves everything else in the file.
fn write(path: &Path, look: &StatusLine, is_users: bool) -> Result<(), StoreError> {
    let fault = |why: serde_json::Error| StoreError::Settings { path: path.to_owned(), why: why.to_string() };
    let text = disk::read_text(path)?.unwrap_or_default();
    let mut document: Map<String, Value> = match text.trim() {
        "" => Map::new(),
        text => serde_json::from_str(text).map_err(fault)?,
    };
    let mut chosen = differing(look);
    if !is_users {
        withhold_commands(&mut chosen);
    }
    if chosen.is_empty() {
        document.shift_remove("statusline");
    } else {
        document.insert("statusline".to_owned(), Value::Object(chosen));
    }
    let text = serde_json::to_string_pretty(&document).map_err(fault)? + "\n";
    // Settings that could not be read again are not written.
    serde_json::from_str::<Settings>(&text).map_err(fault)?;
    disk::sweep_drafts_of(path);
    disk::replace(path, text.as_bytes(), Durability::Durable)
}

/// A project's file starts no program: there a command of the user's would only be ignored.
fn withhold_commands(look: &mut Map<String, Value>) {
    let Some(Value::Object(segments)) = look.get_mut("segments") else { return };
    segments.retain(|_, segment| {
        let Some(segment) = segment.as_object_mut() else { return true };
        segment.shift_remove("command").is_none() || !segment.is_empty()
    });
    if segments.is_empty() {
        look.shift_remove("segments");
    }
}

fn differing(look: &StatusLine) -> Map<String, Value> {
    let fields = |look: &StatusLine| match serde_json::to_value(look) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let usual = fields(&StatusLine::default());
    fields(look).into_iter().filter(|(name, value)| usual.get(name) != Some(value)).collect()
}
