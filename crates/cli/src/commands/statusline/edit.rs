//! `plimsoll statusline edit`: edits the look of the status line on the full screen, with a live preview.

mod draw;
mod editor;
mod paint;
#[cfg(test)]
mod tests;

use super::payload;
use crate::full_screen;
use crate::full_screen::SanitizedTerminal;
use clap::Args;
use editor::{Editor, EditorAction};
use plimsoll_domain::Settings;
use plimsoll_domain::statusline::StatusLine;
use plimsoll_store::{Durability, Project, StoreError, config, disk};
use plimsoll_terminal::console::{fail, fail_with_store_error};
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

/// How long to wait for a key before signals are checked.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Edits the settings. Exits with 0 even if nothing was changed, and with 1 if they cannot be read or
/// written.
pub(crate) fn edit_status_line(arguments: &EditArguments) -> ExitCode {
    let project = Project::find_upwards_from_current_dir();
    let path = if arguments.user { config::user_settings_path() } else { Some(project.settings_path()) };
    let Some(path) = path else {
        return fail("no home directory: neither XDG_CONFIG_HOME nor HOME is set");
    };
    let (settings, settings_error) = config::load_settings(&project);
    if let Some(error) = settings_error {
        // Saving would overwrite, and so lose, a file that cannot be parsed.
        return fail_with_store_error(&error);
    }
    let view = plimsoll_flows::hooks::statusline::build_full_view_with_settings(
        payload::sample_payload().to_string().as_bytes(),
        &settings,
    );
    let editor = Editor::new(settings.statusline, view);
    let mut write_result = Ok(());
    let code = full_screen::run_full_screen(
        "`statusline edit` needs a terminal: edit \"statusline\" in the settings by hand, and look with `plimsoll statusline explain`",
        |terminal, signal| {
            run_editor_loop(editor, terminal, signal, &mut |status_line| {
                write_result = write_status_line_settings(&path, status_line, arguments.user);
                write_result.is_ok()
            })
        },
    );
    match write_result {
        Ok(()) => code,
        Err(error) => fail_with_store_error(&error),
    }
}

fn run_editor_loop(
    mut editor: Editor,
    mut terminal: SanitizedTerminal,
    signal: &AtomicUsize,
    save: &mut dyn FnMut(&StatusLine) -> bool,
) -> io::Result<()> {
    while signal.load(Ordering::SeqCst) == 0 {
        terminal.draw_sanitized(|frame| draw::draw_editor(&editor, frame))?;
        if !full_screen::wait_for_event(KEY_POLL_INTERVAL)? {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        match editor.handle_key(key) {
            EditorAction::Continue => {}
            EditorAction::Save if save(editor.status_line()) => editor.mark_saved(),
            EditorAction::Save | EditorAction::Quit => return Ok(()),
        }
    }
    Ok(())
}

/// Writes the fields that differ from the defaults, and keeps everything else in the file.
fn write_status_line_settings(
    path: &Path,
    status_line: &StatusLine,
    is_user_file: bool,
) -> Result<(), StoreError> {
    let settings_error =
        |error: serde_json::Error| StoreError::Settings { path: path.to_owned(), reason: error.to_string() };
    let text = disk::read_text(path)?.unwrap_or_default();
    let mut document: Map<String, Value> = match text.trim() {
        "" => Map::new(),
        text => serde_json::from_str(text).map_err(settings_error)?,
    };
    let mut changed_fields = non_default_fields(status_line);
    if !is_user_file {
        remove_segment_commands(&mut changed_fields);
    }
    if changed_fields.is_empty() {
        document.shift_remove("statusline");
    } else {
        document.insert("statusline".to_owned(), Value::Object(changed_fields));
    }
    let text = serde_json::to_string_pretty(&document).map_err(settings_error)? + "\n";
    // Checked before writing, so that the settings can always be read again.
    serde_json::from_str::<Settings>(&text).map_err(settings_error)?;
    disk::remove_leftover_temporary_files_of(path);
    disk::replace(path, text.as_bytes(), Durability::Durable)
}

/// Removes the commands of segments: a project's file may not start programs, so a command there would be
/// ignored.
fn remove_segment_commands(fields: &mut Map<String, Value>) {
    let Some(Value::Object(segments)) = fields.get_mut("segments") else { return };
    segments.retain(|_, segment| {
        let Some(segment) = segment.as_object_mut() else { return true };
        segment.shift_remove("command").is_none() || !segment.is_empty()
    });
    if segments.is_empty() {
        fields.shift_remove("segments");
    }
}

fn non_default_fields(status_line: &StatusLine) -> Map<String, Value> {
    let fields = |status_line: &StatusLine| match serde_json::to_value(status_line) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let default_fields = fields(&StatusLine::default());
    fields(status_line).into_iter().filter(|(name, value)| default_fields.get(name) != Some(value)).collect()
}
