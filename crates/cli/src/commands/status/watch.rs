//! `plimsoll status --watch`: the run on the whole screen, until the user has seen enough.

mod draw;
mod keys;
mod scene;
#[cfg(test)]
mod tests;

use crate::full_screen;
use crate::full_screen::Screen;
use crate::journal_lines::JournalTail;
use keys::Look;
use plimsoll_flows::run_figures::FiguresReader;
use plimsoll_store::Project;
use plimsoll_terminal::console::has_colours;
use ratatui::crossterm::event::{self, Event};
use scene::Scene;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long it waits for a key before it looks whether anything has been written.
const GLANCE: Duration = Duration::from_millis(200);
/// So often everything is looked at: a pause counts down, a process may have gone.
const LOOK: Duration = Duration::from_secs(1);
/// Shows the run until the user leaves; 2 where there is no terminal.
pub(super) fn watch(project: &Project) -> ExitCode {
    full_screen::show(
        "--watch needs a terminal: use `plimsoll status --json`, or `plimsoll log --follow`",
        |terminal, signal| stay(project, terminal, signal),
    )
}

fn stay(project: &Project, mut terminal: Screen, signal: &AtomicUsize) -> io::Result<()> {
    let mut diary = JournalTail::of(project);
    let mut reader = FiguresReader::default();
    let mut scene = Scene::of(project, &mut reader);
    scene.log.extend(diary.news());
    let mut look = Look { colours: has_colours(), ..Look::default() };
    let mut looked = Instant::now();
    terminal.draw(|frame| draw::draw(&scene, &look, frame.area(), frame.buffer_mut()))?;
    while signal.load(Ordering::SeqCst) == 0 {
        let mut has_changed = false;
        while full_screen::event_within(if has_changed { Duration::ZERO } else { GLANCE })? {
            match event::read()? {
                Event::Key(key) if look.press(key, scene.log.len()) => return Ok(()),
                _ => has_changed = true,
            }
        }
        let news = diary.news();
        if !news.is_empty() || looked.elapsed() >= LOOK {
            look.keep_place(news.len());
            let log = std::mem::take(&mut scene.log);
            scene = Scene { log: log.into_iter().chain(news).collect(), ..Scene::of(project, &mut reader) };
            looked = Instant::now();
            has_changed = true;
        }
        if has_changed {
            terminal.draw(|frame| draw::draw(&scene, &look, frame.area(), frame.buffer_mut()))?;
        }
    }
    Ok(())
}
