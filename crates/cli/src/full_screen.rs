//! The whole terminal, given back whatever happens.

use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_protocol::foreign_words::visible;
use plimsoll_store::environment;
use plimsoll_terminal::console::{fail, fail_with};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event;
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What a shell says of a program that a signal has ended, less the signal's number.
const BY_SIGNAL: usize = 128;
/// Who does not use a signal for so long never will.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Waits so long for a key or a new size. Fails as soon as the terminal is gone: crossterm would read its end
/// again and again, and never come back.
pub(crate) fn event_within(limit: Duration) -> io::Result<bool> {
    look_for(Duration::ZERO)?;
    if event::poll(Duration::ZERO)? {
        return Ok(true);
    }
    look_for(limit)?;
    event::poll(Duration::ZERO)
}

/// Waits until something has been typed, or so long; fails where nobody can type any more.
fn look_for(limit: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = Timespec::try_from(limit).ok();
    // A signal that wakes it is looked at by who asked.
    let _ = poll(&mut watched, limit.as_ref());
    if watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

/// The screen of a terminal: no cell of it steers the terminal, whatever was drawn.
pub(crate) struct Screen(DefaultTerminal);

impl Screen {
    /// Draws all of it again.
    #[expect(clippy::disallowed_methods, reason = "each cell is cleaned here")]
    pub(crate) fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let drawn = self.0.draw(|frame| {
            paint(frame);
            clean(frame.buffer_mut());
        });
        drawn.map(|_| ())
    }
}

/// A letter that joins the one before it in a cell (a tag character, a joiner) has no width that would stop it.
fn clean(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if visible(cell.symbol()) != cell.symbol() {
            cell.set_symbol("\u{fffd}");
        }
    }
}

/// Stays on it until the user leaves, or a signal other than 0 is noted. Without a terminal: 2, with these words.
pub(crate) fn show(without: &str, stay: impl FnOnce(Screen, &AtomicUsize) -> io::Result<()>) -> ExitCode {
    let both = plimsoll_terminal::console::is_terminal() && io::stdin().is_terminal();
    if !both || environment::variable("TERM").is_some_and(|term| term == "dumb") {
        return fail_with(without, ExitStatus::Usage);
    }
    let signal = Arc::new(AtomicUsize::new(0));
    if let Err(error) = listen(Arc::clone(&signal)) {
        return fail(format!("cannot listen for signals: {error}"));
    }
    // A panic gives the terminal back, too.
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    let terminal = ratatui::try_init();
    let shown = terminal.and_then(|terminal| stay(Screen(terminal), &signal));
    ratatui::restore();
    match (shown, signal.load(Ordering::SeqCst)) {
        (_, number @ 1..) => ExitCode::from(code(number)),
        (Ok(()), _) => ExitCode::SUCCESS,
        (Err(error), _) => fail(format!("the terminal cannot be used: {error}")),
    }
}

fn code(signal: usize) -> u8 {
    u8::try_from(BY_SIGNAL + signal).unwrap_or(1)
}

/// Notes a signal. The library that reads the keys of a terminal that was closed never comes back, and takes a whole core
/// for that: then nobody is left to use what was noted.
#[expect(clippy::exit, reason = "the thread that would return an exit code is caught in a library")]
fn listen(noted: Arc<AtomicUsize>) -> io::Result<()> {
    // HUP, INT, TERM: every one would end us with the terminal in raw mode.
    let mut signals = signal_hook::iterator::Signals::new([1, 2, 15])?;
    std::thread::spawn(move || {
        let Some(number) = signals.forever().next() else { return };
        let number = usize::try_from(number).unwrap_or_default();
        noted.store(number, Ordering::SeqCst);
        std::thread::sleep(TIMEOUT);
        let _ = ratatui::try_restore();
        std::process::exit(code(number).into());
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn no_cell_of_the_screen_steers_the_terminal() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 60, 1));
        let hostile = "a\u{e0041}b\u{200d}c\u{ad}d\u{1b}[2Je\u{202e}f 👩\u{200d}🔬 é";
        buffer.set_string(0, 0, hostile, Style::default());
        buffer[(50, 0)].set_symbol("\u{9b}31m");
        let text =
            |buffer: &Buffer| buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
        assert!(text(&buffer).contains('\u{e0041}'), "the library lets it pass: {:?}", text(&buffer));
        clean(&mut buffer);
        let text = text(&buffer);
        assert!(!text.contains(['\u{e0041}', '\u{ad}', '\u{1b}', '\u{9b}', '\u{202e}']), "{text:?}");
        assert!(text.contains("👩\u{200d}🔬") && text.contains('é'), "{text:?}");
    }
}
