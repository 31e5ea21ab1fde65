//! One hook, from its payload to its answer.

use plimsoll_domain::text::one_line;
use plimsoll_flows::HookResponse;
use plimsoll_flows::hook_invocation::is_in_review;
use plimsoll_flows::hooks::{PROGRAMS, Program, program_of};
use plimsoll_flows::install::plugin;
use plimsoll_flows::install::plugin::HookOrigin;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// An image in a batch of tools is a few hundred KB of base64; nothing honest is larger than this.
const LONGEST_INPUT: u64 = 64 * 1024 * 1024;

/// The one word that every hook program knows: then it prints its version, for `plimsoll doctor`, and does nothing else.
const VERSION: &str = "version";

/// Runs one hook: standard input in, the signal out.
pub(crate) fn run(program: Program) -> ExitCode {
    std::panic::set_hook(Box::new(give_up));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Before standard input is read: the client does not mind a hook that leaves it unread (2.1.329).
    let gives_way = HookOrigin::of(&arguments) == HookOrigin::ByPlugin && plugin::gives_way(&own_name());
    if gives_way || is_in_review() {
        return ExitCode::SUCCESS;
    }
    let (input, signal) = match plimsoll_store::disk::read_stdin(LONGEST_INPUT) {
        Ok(input) => {
            let signal = program(&input, &arguments);
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

/// The name under which this program was started. A link of the user's own with another name counts as what it leads to.
pub(crate) fn own_name() -> String {
    let started_as = file_name(std::env::args_os().next().unwrap_or_default());
    let led_to = || std::env::current_exe().ok().map(file_name).filter(|name| program_of(name).is_some());
    if program_of(&started_as).is_some() { started_as } else { led_to().unwrap_or(started_as) }
}

fn file_name(path: impl AsRef<Path>) -> String {
    path.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The program under a name that none of its hooks has. It is no session's fault, so it does not end one.
pub(crate) fn refuse() -> ExitCode {
    let names = PROGRAMS.map(|(name, _)| name);
    let complaint = format!("start it by a link with the name of a hook: {}", names.join(", "));
    emit(&HookResponse::default().with_complaint(Some(complaint)));
    ExitCode::SUCCESS
}

pub(crate) fn is_asked_for_version() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == VERSION)
}

pub(crate) fn tell_version() -> ExitCode {
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
