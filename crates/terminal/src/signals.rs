//! Signals that a program handles instead of being ended by them.

/// This number is the same on every system that we support.
const SIGXFSZ: i32 = 25;

/// Makes exceeding a file size limit (`ulimit -f`) a write error, as a full disk is, instead of a fatal signal.
pub fn turn_file_size_signal_into_error() {
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
}

/// Handles a signal in threads: `note` records it, and `answer` responds in another thread. A response may block on output that nobody
/// reads, and the next signal must still be recorded.
pub fn handle_signal_in_threads<T: Send + 'static>(
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
