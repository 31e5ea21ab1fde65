//! The hook programs: each reads one JSON document, decides and writes (in `flows`), and signals. No options (but for
//! the part that an entry of `plimsoll-memory` tells, the word by which a plugin's entry is known, and the word `version`), no
//! shell, no thread, and never the session's end by a fault of our own.

use flows::Signal;
use flows::plugin::{self, Brought};
use session::text::one_line;
use std::io::Write;
use std::process::ExitCode;

/// A static program has musl's allocator otherwise, which takes three times as long and a third of a hook's time.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// An image in a batch of tools is a few hundred KB of base64; nothing honest is larger than this.
const LONGEST_INPUT: u64 = 64 * 1024 * 1024;

/// The one word that every hook program knows: then it tells its version, for `plimsoll doctor`, and does nothing else.
const VERSION: &str = "version";

/// Runs one hook: standard input in, the signal out.
pub fn run(flow: impl FnOnce(&[u8]) -> Signal) -> ExitCode {
    std::panic::set_hook(Box::new(give_up));
    if std::env::args_os().nth(1).is_some_and(|word| word == VERSION) {
        return tell_version();
    }
    if brought() == Brought::ByPlugin && plugin::gives_way(&own_name()) {
        return ExitCode::SUCCESS;
    }
    let (input, signal) = match store::disk::read_stdin(LONGEST_INPUT) {
        Ok(input) => {
            let signal = flow(&input);
            (input, signal)
        }
        Err(error) => {
            let complaint = format!("cannot read standard input: {error}");
            (Vec::new(), Signal::default().with_complaint(Some(complaint)))
        }
    };
    emit(&signal);
    if !signal.complaints.is_empty() {
        flows::faults::note(&input, &own_name(), &signal.complaints);
    }
    ExitCode::from(signal.exit)
}

/// Whose entry has started this program.
pub fn brought() -> Brought {
    Brought::of(std::env::args().skip(1))
}

fn own_name() -> String {
    let program = std::env::args().next().unwrap_or_default();
    program.rsplit('/').next().unwrap_or_default().to_owned()
}

fn tell_version() -> ExitCode {
    let version = format!("{} {}", own_name(), env!("CARGO_PKG_VERSION"));
    emit(&Signal::text(Some(version)));
    ExitCode::SUCCESS
}

/// A panic is a fault of ours: one line for a person, nothing for the client, and its session goes on. A release
/// build has no unwinding, so nobody above could catch it.
#[expect(clippy::exit, reason = "the alternative is an abort, which the client shows as an error")]
fn give_up(panic: &std::panic::PanicHookInfo<'_>) {
    let signal = Signal::default().with_complaint(Some(format!("internal error: {panic}")));
    emit(&signal);
    flows::faults::note_without_payload(&own_name(), &signal.complaints);
    std::process::exit(0);
}

/// A reader that has gone away is a normal end. The client reads the one; people read the other, as words that steer no
/// terminal.
#[expect(clippy::disallowed_methods, reason = "a hook answers on its standard output")]
fn emit(signal: &Signal) {
    if let Some(text) = &signal.stdout {
        let _ = std::io::stdout().write_all(format!("{text}\n").as_bytes());
    }
    let name = own_name();
    for complaint in &signal.complaints {
        let _ = std::io::stderr().write_all(format!("{name}: {}\n", one_line(complaint)).as_bytes());
    }
}
