//! Signals that a program answers instead of ending by them.

/// As every system that we run on numbers it.
const SIGXFSZ: i32 = 25;

/// Makes a file that grows beyond a limit (`ulimit -f`) an error with a name, as on a full disk, and no end by a signal.
pub fn survive_file_size_limit() {
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
}

/// Notes a signal wherever the program is, and answers what it was noted as: from another thread, for a reader who takes none of
/// our output must not keep the second signal from being heard.
pub fn listen<T: Send + 'static>(
    signal: i32,
    note: impl Fn() -> T + Send + 'static,
    answer: impl Fn(T) + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([signal])?;
    let (sender, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        signals.forever().for_each(|_| {
            let _ = sender.send(note());
        });
    });
    std::thread::spawn(move || heard.iter().for_each(answer));
    Ok(())
}
