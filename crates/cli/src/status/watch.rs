//! `plimsoll status --watch`: the run on the whole screen, until a person has seen enough.

mod draw;
mod keys;
mod scene;
#[cfg(test)]
mod tests;

use crate::fail;
use crate::log::{Diary, has_colours};
use keys::Look;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use scene::Scene;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::{Project, environment};

/// So long it waits for a key before it looks whether anything has been written.
const GLANCE: Duration = Duration::from_millis(200);
/// So often everything is looked at: a pause counts down, a process may have gone.
const LOOK: Duration = Duration::from_secs(1);
/// Wrong usage.
const USAGE: u8 = 2;
/// What a shell says of a program that a signal has ended, less the signal's number.
const BY_SIGNAL: usize = 128;

/// Shows the run until the person leaves; 2 where there is no terminal.
pub(super) fn watch(project: &Project) -> ExitCode {
    let both = io::stdout().is_terminal() && io::stdin().is_terminal();
    if !both || environment::variable("TERM").is_some_and(|term| term == "dumb") {
        return fail(
            "--watch needs a terminal: use `plimsoll status --json`, or `plimsoll log --follow`",
            USAGE,
        );
    }
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [1, 2, 15] {
        let caught = signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize);
        if let Err(error) = caught {
            return fail(format!("cannot listen for signals: {error}"), 1);
        }
    }
    // A panic gives the terminal back, too.
    let shown = ratatui::try_init().and_then(|terminal| stay(project, terminal, &signal));
    ratatui::restore();
    match (shown, signal.load(Ordering::SeqCst)) {
        (_, number @ 1..) => ExitCode::from(u8::try_from(BY_SIGNAL + number).unwrap_or(1)),
        (Ok(()), _) => ExitCode::SUCCESS,
        (Err(error), _) => fail(format!("the terminal cannot be used: {error}"), 1),
    }
}

fn stay(project: &Project, mut terminal: DefaultTerminal, signal: &AtomicUsize) -> io::Result<()> {
    let mut diary = Diary::of(project);
    let mut scene = Scene::of(project);
    scene.log.extend(diary.news());
    let mut look = Look { colours: has_colours(), ..Look::default() };
    let mut looked = Instant::now();
    terminal.draw(|frame| draw::draw(&scene, &look, frame.area(), frame.buffer_mut()))?;
    while signal.load(Ordering::SeqCst) == 0 {
        let mut has_changed = false;
        while event::poll(if has_changed { Duration::ZERO } else { GLANCE })? {
            match event::read()? {
                Event::Key(key) if look.press(key, scene.log.len()) => return Ok(()),
                _ => has_changed = true,
            }
        }
        let news = diary.news();
        if !news.is_empty() || looked.elapsed() >= LOOK {
            look.keep_place(news.len());
            let log = std::mem::take(&mut scene.log);
            scene = Scene { log: log.into_iter().chain(news).collect(), ..Scene::of(project) };
            looked = Instant::now();
            has_changed = true;
        }
        if has_changed {
            terminal.draw(|frame| draw::draw(&scene, &look, frame.area(), frame.buffer_mut()))?;
        }
    }
    Ok(())
}
