//! Handlers for signals that would otherwise end the program.

use crate::console;
use plimsoll_launcher::process;

// The numbers are the same on all supported systems.
pub const SIGHUP: i32 = 1;
pub const SIGINT: i32 = 2;
pub const SIGTERM: i32 = 15;
const SIGXFSZ: i32 = 25;

/// Turns exceeding the file size limit (`ulimit -f`) into a write error, like a full disk, instead of a fatal signal.
pub fn turn_file_size_signal_into_error() {
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
}

/// Spawns one thread that calls `record` for each signal, and another that passes its result to `respond`. A response may block on
/// output that nobody reads, and the next signal must still be recorded.
pub fn spawn_signal_record_and_respond_threads<T: Send + 'static>(
    signal: i32,
    record: impl Fn() -> T + Send + 'static,
    respond: impl Fn(T) + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([signal])?;
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        signals.forever().for_each(|_| {
            let _ = sender.send(record());
        });
    });
    std::thread::spawn(move || receiver.iter().for_each(respond));
    Ok(())
}

/// Returns those of SIGINT, SIGTERM and SIGHUP that were not ignored when this program started. Handling an ignored signal
/// would undo it, such as nohup's protection against SIGHUP.
pub fn end_signals_not_ignored_at_start() -> Vec<i32> {
    let has_terminal = console::is_terminal() || console::is_error_terminal();
    end_signals_not_ignored(process::ignored_signal_mask(), has_terminal)
}

/// Without a mask, SIGHUP counts as ignored unless standard output or standard error is a terminal: nohup redirects both.
fn end_signals_not_ignored(ignored_signal_mask: Option<u64>, has_terminal: bool) -> Vec<i32> {
    let is_ignored = |signal: i32| match ignored_signal_mask {
        Some(mask) => mask & (1 << (signal - 1)) != 0,
        None => signal == SIGHUP && !has_terminal,
    };
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect()
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
            assert_eq!(end_signals_not_ignored(mask, has_terminal), expected, "{mask:?} {has_terminal}");
        }
    }
}
