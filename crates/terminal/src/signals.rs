//! Handlers for signals that would otherwise end the program.

/// The number is the same on all supported systems.
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
