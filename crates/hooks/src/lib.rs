//! RULE: the hook programs. Each reads one JSON document from standard input, calls its use case in `plimsoll_flows`, and
//! writes one answer.
//!
//! They take no options, but for the part that an entry of `plimsoll-memory` plays, the word by which a plugin's entry is
//! known, and `version`. They start no shell and no thread, link nothing that costs start-up, and never end a session by a
//! fault of their own: then they answer `{}` and say one line on standard error.

use plimsoll_domain::text::one_line;
use plimsoll_flows::HookResponse;
use plimsoll_flows::install::plugin;
use plimsoll_flows::install::plugin::HookOrigin;
use std::io::Write;
use std::process::ExitCode;

/// A static program has musl's allocator otherwise, which takes three times as long and a third of a hook's time.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// An image in a batch of tools is a few hundred KB of base64; nothing honest is larger than this.
const LONGEST_INPUT: u64 = 64 * 1024 * 1024;

/// The one word that every hook program knows: then it prints its version, for `plimsoll doctor`, and does nothing else.
const VERSION: &str = "version";

/// Runs one hook: standard input in, the signal out.
pub fn run(flow: impl FnOnce(&[u8]) -> HookResponse) -> ExitCode {
    std::panic::set_hook(Box::new(give_up));
    if std::env::args_os().nth(1).is_some_and(|word| word == VERSION) {
        return tell_version();
    }
    // Before standard input is read: the client does not mind a hook that leaves it unread (2.1.329).
    if brought() == HookOrigin::ByPlugin && plugin::gives_way(&own_name()) {
        return ExitCode::SUCCESS;
    }
    let (input, signal) = match plimsoll_store::disk::read_stdin(LONGEST_INPUT) {
        Ok(input) => {
            let signal = flow(&input);
            (input, signal)
        }
        Err(error) => {
            let complaint = format!("cannot read standard input: {error}");
            (Vec::new(), HookResponse::default().with_complaint(Some(complaint)))
        }
    };
    emit(&signal);
    // After the answer: what goes wrong while it is noted must not cost the client its reply.
    if !signal.complaints.is_empty() {
        plimsoll_flows::hooks::faults::note(&input, &own_name(), &signal.complaints);
    }
    ExitCode::from(signal.exit)
}

/// Whose entry has started this program.
pub fn brought() -> HookOrigin {
    HookOrigin::of(std::env::args().skip(1))
}

fn own_name() -> String {
    let program = std::env::args().next().unwrap_or_default();
    program.rsplit('/').next().unwrap_or_default().to_owned()
}

fn tell_version() -> ExitCode {
    let version = format!("{} {}", own_name(), env!("CARGO_PKG_VERSION"));
    emit(&HookResponse::text(Some(version)));
    ExitCode::SUCCESS
}

/// A panic is a fault of ours: one line for the user, nothing for the client, and its session continues. A release
/// build has no unwinding, so no caller could catch it.
#[expect(clippy::exit, reason = "the alternative is an abort, which the client shows as an error")]
fn give_up(panic: &std::panic::PanicHookInfo<'_>) {
    let signal = HookResponse::default().with_complaint(Some(format!("internal error: {panic}")));
    emit(&signal);
    plimsoll_flows::hooks::faults::note_without_payload(&own_name(), &signal.complaints);
    std::process::exit(0);
}

/// A reader that has gone away is a normal end. The client reads the one; people read the other, as words that steer no
/// terminal.
#[expect(clippy::disallowed_methods, reason = "a hook answers on its standard output")]
fn emit(signal: &HookResponse) {
    if let Some(text) = &signal.stdout {
        let _ = std::io::stdout().write_all(format!("{text}\n").as_bytes());
    }
    let name = own_name();
    for complaint in &signal.complaints {
        let _ = std::io::stderr().write_all(format!("{name}: {}\n", one_line(complaint)).as_bytes());
    }
}
