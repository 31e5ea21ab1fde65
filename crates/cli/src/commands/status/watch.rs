//! `plimsoll status --watch`: the run on the full screen, until the user quits.

mod draw;
mod keys;
mod screen_content;
#[cfg(test)]
mod tests;

use crate::full_screen;
use crate::full_screen::SanitizedTerminal;
use crate::journal_lines::JournalTail;
use keys::WatchViewState;
use plimsoll_flows::run_figures::RunFiguresReader;
use plimsoll_store::Project;
use plimsoll_terminal::console::has_colors;
use ratatui::crossterm::event::{self, Event};
use screen_content::ScreenContent;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long to wait for a key before the journal is checked for new lines.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often everything is refreshed even without new lines: a pause counts down, and a process may have
/// ended.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Shows the run until the user quits. Exits with 2 if there is no terminal.
pub(super) fn watch_run(project: &Project) -> ExitCode {
    full_screen::run_full_screen(
        "--watch needs a terminal: use `plimsoll status --json`, or `plimsoll log --follow`",
        |terminal, signal| run_watch_loop(project, terminal, signal),
    )
}

fn run_watch_loop(
    project: &Project,
    mut terminal: SanitizedTerminal,
    signal: &AtomicUsize,
) -> io::Result<()> {
    let mut journal_tail = JournalTail::from_current_run(project);
    let mut reader = RunFiguresReader::default();
    let mut content = ScreenContent::read_without_log(project, &mut reader);
    content.log.extend(journal_tail.read_new_lines());
    let mut view_state = WatchViewState { use_colors: has_colors(), ..WatchViewState::default() };
    let mut refreshed_at = Instant::now();
    terminal
        .draw_sanitized(|frame| draw::draw_screen(&content, &view_state, frame.area(), frame.buffer_mut()))?;
    while signal.load(Ordering::SeqCst) == 0 {
        let mut has_changed = false;
        while full_screen::wait_for_event(if has_changed { Duration::ZERO } else { KEY_POLL_INTERVAL })? {
            match event::read()? {
                Event::Key(key) if view_state.handle_key_and_check_quit(key, content.log.len()) => {
                    return Ok(());
                }
                _ => has_changed = true,
            }
        }
        let new_lines = journal_tail.read_new_lines();
        if !new_lines.is_empty() || refreshed_at.elapsed() >= REFRESH_INTERVAL {
            view_state.keep_scroll_position(new_lines.len());
            let old_lines = std::mem::take(&mut content.log);
            content = ScreenContent {
                log: old_lines.into_iter().chain(new_lines).collect(),
                ..ScreenContent::read_without_log(project, &mut reader)
            };
            refreshed_at = Instant::now();
            has_changed = true;
        }
        if has_changed {
            terminal.draw_sanitized(|frame| {
                draw::draw_screen(&content, &view_state, frame.area(), frame.buffer_mut());
            })?;
        }
    }
    Ok(())
}
