//! Handlers for signals that would otherwise end the program.

use crate::console;
use plimsoll_launcher::process;
pub use plimsoll_system::signals::{
    END_SIGNALS, SIGHUP, SIGINT, SIGTERM, SignalListener, end_process_on_signal_if_set, set_flag_on_signal,
    turn_file_size_signal_into_error,
};

/// Spawns one thread that calls `record` for each signal, and another that passes its result to `respond`. A response may block on
/// output that nobody reads, and the next signal must still be recorded.
pub fn spawn_signal_record_and_respond_threads<T: Send + 'static>(
    signal: i32,
    record: impl Fn() -> T + Send + 'static,
    respond: impl Fn(T) + Send + 'static,
) -> std::io::Result<()> {
    let mut listener = SignalListener::new(&[signal])?;
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while listener.wait_for_signal().is_some() {
            let _ = sender.send(record());
        }
    });
    std::thread::spawn(move || receiver.iter().for_each(respond));
    Ok(())
}

/// Returns those of [`END_SIGNALS`] that were not ignored when this program started. Handling an ignored signal
/// would undo it, such as nohup's protection against SIGHUP.
pub fn end_signals_not_ignored_at_start() -> Vec<i32> {
    let has_terminal = console::is_terminal() || console::is_error_terminal();
    end_signals_not_ignored(END_SIGNALS, process::ignored_signal_mask(), has_terminal)
}

/// Without a mask, SIGHUP counts as ignored unless standard output or standard error is a terminal: nohup redirects both.
fn end_signals_not_ignored(
    end_signals: &[i32],
    ignored_signal_mask: Option<u64>,
    has_terminal: bool,
) -> Vec<i32> {
    let is_ignored = |signal: i32| match ignored_signal_mask {
        Some(mask) => mask & (1 << (signal - 1)) != 0,
        None => signal == SIGHUP && !has_terminal,
    };
    end_signals.iter().copied().filter(|signal| !is_ignored(*signal)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_stays_ignored() {
        let table: [(Option<u64>, bool, &[i32]); 6] = [
            (Some(0), true, &[SIGINT, SIGTERM, SIGHUP]),
            (Some(0), false, &[SIGINT, SIGTERM, SIGHUP]),
            (Some(0b1), true, &[SIGINT, SIGTERM]),
            // A shell without job control starts programs in the background with SIGINT ignored.
            (Some(0b11), false, &[SIGTERM]),
            (None, true, &[SIGINT, SIGTERM, SIGHUP]),
            (None, false, &[SIGINT, SIGTERM]),
        ];
        for (mask, has_terminal, expected) in table {
            let signals = end_signals_not_ignored(&[SIGINT, SIGTERM, SIGHUP], mask, has_terminal);
            assert_eq!(signals, expected, "{mask:?} {has_terminal}");
        }
    }
}
