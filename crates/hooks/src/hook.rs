//! One hook, from its payload to its answer.

use plimsoll_domain::build::Build;
use plimsoll_domain::text::one_line;
use plimsoll_flows::HookResponse;
use plimsoll_flows::hook_invocation::is_in_review;
use plimsoll_flows::hooks::{PROGRAMS, Program, Started, program_of};
use plimsoll_flows::install::plugin::Halves;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

/// An image in a batch of tools is a few hundred KB of base64; nothing honest is larger than this.
const LONGEST_INPUT: u64 = 64 * 1024 * 1024;

/// The one word that every hook program knows: then it prints its version, for `plimsoll doctor`, and does nothing else.
const VERSION: &str = "version";
/// Behind that word: then it prints the rest of what it knows of its build, too.
const JSON: &str = "--json";

/// An answer that is complete while something comes behind it: a panic there must not cost the client its answer.
static KEPT: Mutex<Option<HookResponse>> = Mutex::new(None);

/// Whatever panics from here on costs the client no session.
pub(crate) fn survive_panics() {
    std::panic::set_hook(Box::new(give_up));
}

/// Runs one hook: standard input in, the signal out.
pub(crate) fn run(program: Program, name: &str, arguments: &[String]) -> ExitCode {
    // Before standard input is read: the client does not mind a hook that leaves it unread (2.1.329).
    let halves = Halves::of(name, arguments);
    if halves.is_none() || is_in_review() {
        return ExitCode::SUCCESS;
    }
    let (input, signal) = match plimsoll_store::disk::read_stdin(LONGEST_INPUT) {
        Ok(input) => {
            let started = Started { input: &input, arguments, halves, keep: &keep };
            let signal = program(&started);
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
        plimsoll_flows::hooks::faults::note(&input, name, &signal.complaints);
    }
    signal.exit.into()
}

/// The name under which this program was started.
fn own_name() -> String {
    name_of(std::env::args_os().next())
}

/// The same of the first word of its command line. A link of the user's own with another name counts as what it leads to.
pub(crate) fn name_of(started_as: Option<OsString>) -> String {
    let started_as = file_name(started_as.unwrap_or_default());
    let led_to = || std::env::current_exe().ok().map(file_name).filter(|name| program_of(name).is_some());
    if program_of(&started_as).is_some() { started_as } else { led_to().unwrap_or(started_as) }
}

fn file_name(path: impl AsRef<Path>) -> String {
    path.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The program as nobody can have meant to start it. It is no session's fault, so it does not end one.
pub(crate) fn refuse(complaint: &str) -> ExitCode {
    emit(&HookResponse::default().with_complaint(Some(complaint)));
    ExitCode::SUCCESS
}

/// What to do where it has a name that none of its hooks has.
pub(crate) fn names() -> String {
    let names = PROGRAMS.map(|(name, _)| name);
    format!("start it by a link with the name of a hook: {}", names.join(", "))
}

pub(crate) fn is_asked_for_version(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|word| word == VERSION)
}

pub(crate) fn tell_version(name: &str, arguments: &[String]) -> ExitCode {
    let build = Build::own(name);
    let is_json = arguments.get(1).is_some_and(|word| word == JSON);
    let version = if is_json { build.to_json() } else { format!("{} {}", build.program, build.version) };
    emit(&HookResponse::text(Some(version)));
    ExitCode::SUCCESS
}

fn keep(answer: &HookResponse) {
    if let Ok(mut kept) = KEPT.lock() {
        *kept = Some(answer.clone());
    }
}

/// A panic is a fault of ours: one line for the user, for the client what was decided before it, else nothing, and its
/// session continues. A release build has no unwinding, so no caller could catch it.
#[expect(clippy::exit, reason = "the alternative is an abort, which the client shows as an error")]
fn give_up(panic: &std::panic::PanicHookInfo<'_>) {
    let signal = after_panic(panic);
    emit(&signal);
    plimsoll_flows::hooks::faults::note_without_payload(&own_name(), &signal.complaints);
    std::process::exit(signal.exit.code().into());
}

fn after_panic(panic: impl std::fmt::Display) -> HookResponse {
    let kept = KEPT.try_lock().ok().and_then(|mut kept| kept.take()).unwrap_or_default();
    kept.with_complaint(Some(format!("internal error: {panic}")))
}

/// A reader that has gone away is a normal end. The client reads the one; people read the other, as words that steer no
/// terminal.
#[expect(clippy::disallowed_methods, reason = "a hook answers on its standard output")]
fn emit(signal: &HookResponse) {
    if let Some(mut text) = signal.stdout() {
        text.push('\n');
        let _ = plimsoll_store::disk::write_stdout(text.as_bytes());
    }
    for complaint in &signal.complaints {
        let line = format!("{}: {}\n", own_name(), one_line(complaint));
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::exit_status::ExitStatus;

    #[test]
    fn a_panic_costs_no_answer_that_was_complete_and_no_exit_code() {
        let nothing = after_panic("before any answer");
        assert_eq!((nothing.stdout(), nothing.exit), (None, ExitStatus::Success));
        let complete = HookResponse::text(Some("what was decided".to_owned())).exit(ExitStatus::Failure);
        keep(&complete);
        let after = after_panic("in the memory's half");
        assert_eq!((after.stdout(), after.exit), (complete.stdout(), ExitStatus::Failure));
        assert_eq!(after.complaints, ["internal error: in the memory's half"]);
    }
}
