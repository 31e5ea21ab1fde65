//! The hook programs: each reads one JSON document, decides and writes (in `flows`), and signals. No options,
//! no shell, no thread, and never the session's end by a fault of our own.

use flows::Signal;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// A static program has musl's allocator otherwise, which takes three times as long and a third of a hook's time.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// An image in a batch of tools is a few hundred KB of base64; nothing honest is larger than this.
const LONGEST_INPUT: u64 = 64 * 1024 * 1024;

/// Runs one hook: standard input in, the signal out.
pub fn run(flow: fn(&[u8]) -> Signal) -> ExitCode {
    // A panic is a fault of ours: one line for a person, and a reply that changes nothing.
    std::panic::set_hook(Box::new(|_| ()));
    let signal = match store::disk::read_stdin(LONGEST_INPUT) {
        Ok(input) => catch_unwind(AssertUnwindSafe(|| flow(&input))).unwrap_or_else(|panic| broken(&panic)),
        Err(error) => Signal::default().with_complaint(Some(format!("cannot read standard input: {error}"))),
    };
    emit(&signal);
    ExitCode::from(signal.exit)
}

fn broken(panic: &Box<dyn std::any::Any + Send>) -> Signal {
    let words = panic.downcast_ref::<String>().cloned();
    let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
    Signal::default().with_complaint(Some(format!("internal error: {}", words.unwrap_or_default())))
}

/// A reader that has gone away is a normal end.
fn emit(signal: &Signal) {
    if let Some(text) = &signal.stdout {
        let _ = std::io::stdout().write_all(format!("{text}\n").as_bytes());
    }
    let program = std::env::args().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    for complaint in &signal.complaints {
        let _ = std::io::stderr().write_all(format!("{name}: {complaint}\n").as_bytes());
    }
}
