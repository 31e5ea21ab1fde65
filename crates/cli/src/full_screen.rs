//! Full-screen mode of the terminal. The terminal is restored in every case.

use plimsoll_domain::exit_status::ExitStatus;
use plimsoll_protocol::untrusted_text::escape_hidden_characters;
use plimsoll_store::environment;
use plimsoll_terminal::console::{fail, fail_with};
use plimsoll_terminal::signals::{END_SIGNALS, SignalListener};
use plimsoll_terminal::standard_input::wait_for_terminal_input_and_return_remaining_time;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event;
use ratatui::{DefaultTerminal, Frame};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Exit code of a program that a signal ended, minus the signal's number (shell convention).
const SIGNAL_EXIT_BASE: usize = 128;
/// How long a signal may stay unhandled before the process exits by itself.
const SIGNAL_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Waits for a key or a resize; returns true if there is one. Fails if the terminal is closed: crossterm would
/// read end of file again and again, and never return.
pub(crate) fn wait_for_event(timeout: Duration) -> io::Result<bool> {
    wait_for_terminal_input_and_return_remaining_time(Duration::ZERO)?;
    if event::poll(Duration::ZERO)? {
        return Ok(true);
    }
    event::poll(wait_for_terminal_input_and_return_remaining_time(timeout)?)
}

/// A terminal whose cells are sanitized after drawing, so that no text can control the terminal.
pub(crate) struct SanitizedTerminal(DefaultTerminal);

impl SanitizedTerminal {
    /// Redraws the whole screen, and replaces cells with hidden characters.
    #[expect(clippy::disallowed_methods, reason = "each cell is cleaned here")]
    pub(crate) fn draw_sanitized(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let result = self.0.draw(|frame| {
            render(frame);
            replace_cells_with_hidden_characters(frame.buffer_mut());
        });
        result.map(|_| ())
    }
}

/// Replaces each cell that has hidden characters with U+FFFD. ratatui appends zero-width characters, such as
/// joiners and tag characters, to the previous cell, so its own width check does not remove them.
fn replace_cells_with_hidden_characters(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if escape_hidden_characters(cell.symbol()) != cell.symbol() {
            cell.set_symbol("\u{fffd}");
        }
    }
}

/// Runs a full-screen program until it returns; `run` gets the number of a received signal, or 0. Exits with
/// 2 and the message `no_terminal_message` if there is no terminal.
pub(crate) fn run_full_screen(
    no_terminal_message: &str,
    run: impl FnOnce(SanitizedTerminal, &AtomicUsize) -> io::Result<()>,
) -> ExitCode {
    let has_terminal = plimsoll_terminal::console::is_terminal() && io::stdin().is_terminal();
    if !has_terminal || environment::variable("TERM").is_some_and(|term| term == "dumb") {
        return fail_with(no_terminal_message, ExitStatus::Usage);
    }
    let received_signal = Arc::new(AtomicUsize::new(0));
    if let Err(error) = spawn_signal_listener_with_delayed_exit(Arc::clone(&received_signal)) {
        return fail(format!("cannot listen for signals: {error}"));
    }
    // `try_init` also restores the terminal on a panic.
    #[expect(clippy::disallowed_methods, reason = "only this module draws the screen")]
    let terminal = ratatui::try_init();
    let result = terminal.and_then(|terminal| run(SanitizedTerminal(terminal), &received_signal));
    ratatui::restore();
    match (result, received_signal.load(Ordering::SeqCst)) {
        (_, signal_number @ 1..) => ExitCode::from(signal_exit_code(signal_number)),
        (Ok(()), _) => ExitCode::SUCCESS,
        (Err(error), _) => fail(format!("the terminal cannot be used: {error}")),
    }
}

fn signal_exit_code(signal_number: usize) -> u8 {
    u8::try_from(SIGNAL_EXIT_BASE + signal_number).unwrap_or(1)
}

/// Stores the number of the first signal of [`END_SIGNALS`], and exits the process after
/// [`SIGNAL_GRACE_PERIOD`]. The exit is needed because crossterm never returns from reading a closed terminal,
/// and uses a whole core for it.
#[expect(clippy::exit, reason = "the thread that would return an exit code is caught in a library")]
fn spawn_signal_listener_with_delayed_exit(received_signal: Arc<AtomicUsize>) -> io::Result<()> {
    // Each of them would end the process with the terminal in raw mode.
    let mut listener = SignalListener::new(END_SIGNALS)?;
    std::thread::spawn(move || {
        let Some(signal_number) = listener.wait_for_signal() else { return };
        let signal_number = usize::try_from(signal_number).unwrap_or_default();
        received_signal.store(signal_number, Ordering::SeqCst);
        std::thread::sleep(SIGNAL_GRACE_PERIOD);
        let _ = ratatui::try_restore();
        std::process::exit(signal_exit_code(signal_number).into());
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn no_cell_of_the_screen_can_control_the_terminal() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 60, 1));
        let hostile = "a\u{e0041}b\u{200d}c\u{ad}d\u{1b}[2Je\u{202e}f 👩\u{200d}🔬 é";
        buffer.set_string(0, 0, hostile, Style::default());
        buffer[(50, 0)].set_symbol("\u{9b}31m");
        let buffer_text =
            |buffer: &Buffer| buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
        assert!(
            buffer_text(&buffer).contains('\u{e0041}'),
            "the library lets it pass: {:?}",
            buffer_text(&buffer)
        );
        replace_cells_with_hidden_characters(&mut buffer);
        let text = buffer_text(&buffer);
        assert!(!text.contains(['\u{e0041}', '\u{ad}', '\u{1b}', '\u{9b}', '\u{202e}']), "{text:?}");
        assert!(text.contains("👩\u{200d}🔬") && text.contains('é'), "{text:?}");
    }
}
